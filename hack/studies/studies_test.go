package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

const root = "../../scenarios"

func TestTheStudiesFilesAreAsGenerated(t *testing.T) {
	for path, want := range All() {
		got, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is not what `go run ./hack/studies` writes (-generated +file):\n%s", path, diff)
		}
	}
}

func TestEveryFileOfAStudyIsGenerated(t *testing.T) {
	all := All()
	for _, study := range []string{"e1", "e2", "e3", "e4", "e5", "e6", "e8", "further", "battalion"} {
		err := filepath.WalkDir(filepath.Join(root, study), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".yaml") {
				return err
			}
			name, _ := filepath.Rel(root, path)
			if _, ok := all[filepath.ToSlash(name)]; !ok {
				t.Errorf("%s is no file of the studies: hack/studies does not make it", name)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestTheStudiesHaveAllTheirRuns(t *testing.T) {
	want := map[string]int{
		"e1/": 3, "e1/emane/": 1, "e2/": 24, "e2/emane/": 1, "e3/": 4, "e4/setting1-mosquitto": 6, "e4/setting1-vernemq": 6, "e4/setting2-mosquitto": 6, "e4/setting2-vernemq": 6,
		"e4/setting2-mqtt-udp": 6, "e4/setting1-rabbitmq": 6, "e4/setting2-rabbitmq": 6, "e8/satcom/": 14, "e8/low-band-5g/": 14, "e8/tactical-broadband/": 14,
		"e8/nbwf/": 14, "e8/cnr-1/": 28, "e8/cnr-10/": 14, "e8/short/": 14,
		"e5/cnr-1/": 28, "e5/short/": 28, "e6/messages-": 9, "e6/bft-": 6, "e6/short/": 15,
	}
	got := map[string]int{}
	for path := range All() {
		for prefix := range want {
			if strings.Contains(path, "/campaigns/") {
				continue
			}
			if strings.HasPrefix(path, prefix) && (strings.HasSuffix(prefix, "/short/") || !strings.Contains(path, "/short/")) {
				got[prefix]++
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestLinksInFilesAreTheWaveforms compares the links written in files with the waveforms that they repeat.
func TestLinksInFilesAreTheWaveforms(t *testing.T) {
	for _, p := range pairs() {
		text, err := os.ReadFile("../../charts/vignette/files/waveforms/" + string(p.link) + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var waveform v1alpha1.Waveform
		var network v1alpha1.Network
		if err := yaml.Unmarshal(text, &waveform); err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict([]byte("{"+p.Network()+"}"), &network); err != nil {
			t.Fatal(err)
		}
		if network.Link == nil {
			continue
		}
		got, want := network.Link, waveform.Spec.Link
		same := *got.Rate == *want.Rate && got.Delay == want.Delay && (got.Loss == want.Loss || got.Loss == "" && want.Loss == "0%")
		if !same {
			t.Errorf("%s has %s; the waveform has %+v", p.path(), p.Network(), want)
		}
	}
}

// crosses reports whether the message leaves its sender's platoon.
func (s scripted) crosses() bool {
	own := platoonUnits[platoonOf(s.From)]
	return s.To != platoonOf(s.From) && !slices.Contains(own, s.To)
}

// platoonOf returns the platoon of a unit.
func platoonOf(unit string) string {
	for name, units := range platoonUnits {
		if slices.Contains(units, unit) {
			return name
		}
	}
	return ""
}

func TestTheScriptOfE6HasThePublishedShape(t *testing.T) {
	crossing := map[string]int{}
	for _, m := range script() {
		if m.crosses() {
			crossing[platoonOf(m.From)]++
		}
	}
	if got := len(script()); got != 97 {
		t.Errorf("the script has %d messages; want 97", got)
	}
	if got := crossing["a"] + crossing["b"]; got != 17 {
		t.Errorf("%d messages cross between the platoons (%v); want 17", got, crossing)
	}
}

func TestSomeMessagesOfTheTrafficScriptCross(t *testing.T) {
	all, crossing := trafficScript(), 0
	for _, m := range all {
		if m.crosses() {
			crossing++
		}
	}
	if len(all) != 97 || crossing < 10 || crossing > 48 {
		t.Errorf("%d of %d messages cross between the platoons; want some of 97, and not most", crossing, len(all))
	}
}

func TestMessagesOfE6sShortFormCrossBothWays(t *testing.T) {
	crossing := map[string]int{}
	for _, m := range shortScript() {
		if m.crosses() {
			crossing[platoonOf(m.From)]++
		}
		if end := 10 * (platoons{form: form{true}}.Duration() - platoons{form: form{true}}.Start()); m.tenths >= end {
			t.Errorf("the message of %s falls due after the run's end", m.At())
		}
	}
	if crossing["a"] == 0 || crossing["b"] == 0 {
		t.Errorf("messages that cross, by their sender's platoon: %v; want some of both", crossing)
	}
}
