package emane

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"vignette.dev/vignette/internal/antenna"
	"vignette.dev/vignette/internal/emane/emanepb"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/scenariotest"
)

// directed is a scenario: platform 1 has profile 0 from 5 s on, platform 2 profile 7 from the start.
func directed(t *testing.T) *scenario.Scenario {
	t.Helper()
	sector := &antenna.Pattern{Elevations: []antenna.Elevation{{Min: -90, Max: 90, Bearings: []antenna.Bearing{{Min: 0, Max: 30, Gain: 6.5}, {Min: 330, Max: 359, Gain: -6}}}}}
	mast := &antenna.Pattern{Elevations: []antenna.Elevation{{Min: -5, Max: 5, Bearings: []antenna.Bearing{{Min: 170, Max: 190, Gain: -200}}}}}
	b := scenario.NewBuilder(scenario.Options{})
	b.Antennas(antenna.Profiles{{ID: 0, Antenna: sector}, {ID: 7, Antenna: sector, Blockage: mast, Placement: antenna.Placement{North: -1.5, Up: 2}}})
	for nem := range 3 {
		if err := b.Position(0, nem+1, geo.Position{Latitude: 58, Longitude: 8 + float64(nem)/100}); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{b.AntennaProfile(5*time.Second, 1, scenario.AntennaProfile{Azimuth: 90, Elevation: -3.5}), b.AntennaProfile(0, 2, scenario.AntennaProfile{ID: 7})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return scenariotest.Open(t, b)
}

func TestFilesOfAProcessWithAntennaProfilesAreAsAccepted(t *testing.T) {
	spec := pipe()
	all := ""
	for i := range spec.Members[:2] {
		p := process()
		p.Antennas = NewAntennas(spec, directed(t))
		files, err := Render(spec, &spec.Members[2*i], p)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if f.Shared != (f.Name == PCR || strings.HasPrefix(f.Name, "antenna")) {
				t.Errorf("%s is shared: %t", f.Name, f.Shared)
			}
			if i == 0 && f.Name != PCR && f.Name != "mac.xml" && f.Name != "transport.xml" || f.Name == "phy.xml" {
				all += fmt.Sprintf("# %s of %s\n%s", f.Name, spec.Members[2*i].Node, f.Text)
			}
		}
	}
	golden.Check(t, "antennas.txt", all)
}

func TestTheSizeOfAntennaFilesIsThatOfAPodWithoutTheFixedGains(t *testing.T) {
	s, spec := directed(t), pipe()
	p := Process{Directory: PodDirectory, Antennas: NewAntennas(spec, s)}
	files, err := Render(spec, &spec.Members[0], p)
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, f := range files {
		if strings.HasPrefix(f.Name, "antenna") {
			size += len(f.Name) + len(f.Text)
		}
	}
	// The fixed gain of platform 1 has a profile and a pattern of a few lines.
	if got := AntennaFileBytes(s); got <= size-600 || got >= size {
		t.Errorf("%d bytes; want a few hundred less than the %d of the pod", got, size)
	}
	if got := AntennaFileBytes(compiled(t)); got != 0 {
		t.Errorf("%d bytes without profiles; want none", got)
	}
}

func TestNetworksWithoutProfilesHaveNoAntennas(t *testing.T) {
	spec := pipe()
	other := int32(3)
	spec.Members[0].Platform, spec.Members[1].Platform = &other, nil
	if NewAntennas(spec, directed(t)) != nil || NewAntennas(pipe(), compiled(t)) != nil || NewAntennas(pipe(), nil) != nil {
		t.Error("a network whose members have fixed gains has antennas")
	}
}

func TestAProfileOfTheFixedGainTakesAFreeID(t *testing.T) {
	a := &Antennas{profiles: antenna.Profiles{{ID: 0}, {ID: 1}, {ID: 3}}}
	if first, second := a.addOmni(2), a.addOmni(3); first != 2 || second != 4 {
		t.Errorf("IDs %d and %d; want 2 and 4", first, second)
	}
	for i, p := range a.profiles {
		if p.ID != i {
			t.Errorf("profile %d is at place %d", p.ID, i)
		}
	}
}

// pointing is which profile a NEM has, and where its antenna points.
type pointing struct {
	nem, profile       uint32
	azimuth, elevation float64
}

func pointingsIn(t *testing.T, events []Event) (all []pointing) {
	t.Helper()
	for _, e := range events {
		if e.ID != AntennaProfileEvent {
			continue
		}
		profiles := &emanepb.AntennaProfiles{}
		if err := proto.Unmarshal(e.Data, profiles); err != nil || e.NEM != 0 {
			t.Errorf("a profile for NEM %d, %v; want one for all", e.NEM, err)
		}
		for _, p := range profiles.GetProfiles() {
			all = append(all, pointing{p.GetNem(), p.GetProfile(), p.GetAzimuth(), p.GetElevation()})
		}
	}
	return all
}

func TestAnAntennaProfileEventHasTheBytesOfItsDefinition(t *testing.T) {
	feed, err := NewFeed(pipe(), directed(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := feed.Changes(0); err != nil {
		t.Fatal(err)
	}
	events, _, _, err := feed.Changes(5 * time.Second)
	if err != nil || len(events) == 0 {
		t.Fatal(events, err)
	}
	// NEM 1: 1, profile 2: 0, azimuth 3: 90.0, elevation 4: -3.5
	want := []byte{0x0a, 0x16, 0x08, 0x01, 0x10, 0x00, 0x19, 0, 0, 0, 0, 0, 0x80, 0x56, 0x40, 0x21, 0, 0, 0, 0, 0, 0, 0x0c, 0xc0}
	if got := events[len(events)-1]; got.ID != 102 || !bytes.Equal(got.Data, want) {
		t.Errorf("event %d % x; want 102 % x", got.ID, got.Data, want)
	}
}

func TestTheFeedHasEachMembersProfileFromTheStartOn(t *testing.T) {
	feed, err := NewFeed(pipe(), directed(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		at   time.Duration
		want []pointing
	}{
		{0, []pointing{{nem: 1, profile: 1}, {nem: 2, profile: 7}}}, // 1 is that of the fixed gain
		{time.Second, nil},
		{5 * time.Second, []pointing{{1, 0, 90, -3.5}}},
	} {
		events, _, _, err := feed.Changes(step.at)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, pointingsIn(t, events), cmp.AllowUnexported(pointing{})); diff != "" {
			t.Errorf("at %s: %s", step.at, diff)
		}
	}
	if diff := cmp.Diff([]pointing{{1, 0, 90, -3.5}, {2, 7, 0, 0}}, pointingsIn(t, feed.All()), cmp.AllowUnexported(pointing{})); diff != "" {
		t.Error("for late ones:", diff)
	}
}
