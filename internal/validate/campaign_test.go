package validate

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/markdown"
)

const soundCampaign = `apiVersion: vignette.dev/v1alpha1
kind: Campaign
metadata: {name: try}
spec:
  repeats: 2
  parallelism: 3
  matrix:
    axes:
    - {name: link, path: "networks[wan].waveform", values: [baseline, satcom]}
    - name: load
      levels:
      - {name: light}
      - name: heavy
        set:
        - {path: "apps[bft].publisher.period", value: 500ms}
  template:
    spec:
      duration: 75s
      drain: {max: 30s, quietFor: 5s}
      networks:
      - {name: wan, waveform: baseline, subnet: 198.18.0.0/24}
      apps:
      - {name: hub, mosquitto: {}}
      - {name: bft, publisher: {protocol: mqtt, to: hub, period: 2s}, subscriber: {protocol: mqtt, to: hub, topics: ["#"]}}
      nodes:
      - {name: nor, networks: [wan], apps: [hub, bft]}
      - {name: prt, networks: [wan], apps: [bft]}
      timeline:
      - {at: 5s, start: [bft]}
      - {at: 65s, stop: [bft]}
`

func TestASoundCampaignSaysWhatItComesTo(t *testing.T) {
	report := Text("campaign.yaml", []byte(soundCampaign))
	want := map[string]Expansion{"Campaign/try": {Points: 4, Runs: 8, Duration: 8 * 105 * time.Second, Longest: 105 * time.Second, Parallelism: 3}}
	if diff := cmp.Diff(want, report.Expansions); diff != "" || len(report.Findings) > 0 {
		t.Errorf("(-want +got):\n%s\n%s", diff, join(report.Findings))
	}
}

func TestACampaignTakesAtLeastAsLongAsItsLongestRun(t *testing.T) {
	e := Expansion{Runs: 6, Duration: 60 * time.Minute, Longest: 25 * time.Minute, Parallelism: 2}
	if took := e.Takes(); took != 30*time.Minute {
		t.Errorf("two at a time: %v; want half of the hour", took)
	}
	e.Parallelism = 36
	if took := e.Takes(); took != e.Longest {
		t.Errorf("all at once: %v; want the longest run's %v", took, e.Longest)
	}
}

func TestThePointsOfACampaignAreJudgedAsTheExperimentsThatTheyBecome(t *testing.T) {
	for name, c := range map[string]struct {
		old, with string
		// The expected findings, by File:Line.
		want []string
		// The API server accepts the complete text.
		sound bool
	}{
		"two points of one name":              {"    axes:", "    include: [{name: satcom-light}]\n    axes:", []string{`spec.matrix: the points satcom-light and satcom-light both have the name satcom-light: give one of them, or a level of it, another name`}, false},
		"a value that is refused":             {"500ms", "0s", []string{"campaign.yaml:24: spec.template.spec.apps[1].publisher.period: in points baseline-heavy, satcom-heavy: period must be 1ms or more"}, false},
		"the template":                        {"75s", "60s", []string{"campaign.yaml:30: spec.template.spec.timeline[65s].at: in all 4 points: 65s is after the end of the experiment, or starts an app at its end: its duration is 60s"}, false},
		"a path that is none":                 {"publisher.period", "publisher.perod", []string{"in points baseline-heavy, satcom-heavy: apps[bft].publisher.perod: there is no such field: did you mean period?"}, false},
		"a waveform nobody knows":             {"baseline, satcom]", "baseline, mars]", []string{"campaign.yaml:21: warning: spec.template.spec.networks[0].waveform: in points mars-light, mars-heavy: mars is not in the library of the chart"}, true},
		"what the operator refuses":           {"nodes:\n      - {name: nor, networks: [wan]", "nodes:\n      - {name: nor, networks: []", []string{"campaign.yaml:24: spec.template.spec.apps[1].publisher.to: in all 4 points:", "no network in common"}, false},
		"two levels of one name":              {"baseline, satcom]", "satcom, satcom]", []string{"campaign.yaml:9: spec.matrix.axes[link].values[1]: has the name of an earlier entry"}, false},
		"an exclusion of no axis":             {"    axes:", "    exclude: [{lnk: satcom}]\n    axes:", []string{"campaign.yaml:8: spec.matrix.exclude[0]: \"lnk\": there is no such axis: did you mean link?"}, false},
		"everything excluded":                 {"    axes:", "    exclude: [{load: light}, {load: heavy}]\n    axes:", []string{"spec.matrix.exclude", "no point is left"}, false},
		"a seed among what is set":            {"apps[bft].publisher.period\", value: 500ms", "seed\", value: 9", []string{"spec.matrix.axes[load]", "give the campaign repeats and seeds"}, false},
		"a mistake of the schema":             {"repeats: 2", "repeats: 0", []string{"campaign.yaml:5: spec.repeats: "}, false},
		"a number for a duration":             {"500ms", "500", []string{"campaign.yaml:15: spec.matrix.axes[load].levels[1].set[0]: apps[bft].publisher.period is the number 500: it must be a duration with its unit, not negative, such as 100ms"}, false},
		"numbers for a delay":                 {`path: "networks[wan].waveform", values: [baseline, satcom]`, `path: "networks[wan].link.delay", values: [100, 200ms]`, []string{"campaign.yaml:9: spec.matrix.axes[link].values[0]: networks[wan].link.delay is the number 100: it must be a duration with its unit"}, false},
		"a value that names no level":         {"[baseline, satcom]", `[baseline, "sat com"]`, []string{`spec.matrix.axes[link].values[1]: "sat com": the name of a level has 1 to 24 letters`}, false},
		"a number for a percentage":           {`path: "networks[wan].waveform", values: [baseline, satcom]`, `path: "networks[wan].link.loss", values: [0.5]`, []string{"networks[wan].link.loss is the number 0.5: it must be a percentage from 0% to 100%"}, false},
		"degrees without quotes":              {`path: "networks[wan].waveform", values: [baseline, satcom]`, `path: "nodes[nor].position.latitude", values: [58.2]`, []string{`nodes[nor].position.latitude is the number 58.2: it must be text: write it in quotes, "58.2"`}, false},
		"a height without a unit":             {`path: "networks[wan].waveform", values: [baseline, satcom]`, `path: "nodes[nor].position.altitude", values: [20]`, []string{`is the number 20: it must be a length with its unit`}, false},
		"text for a number":                   {`path: "networks[wan].waveform", values: [baseline, satcom]`, `path: "networks[wan].mtu", values: ["1400"]`, []string{`networks[wan].mtu is text, 1400: it must be a whole number, such as 5`}, false},
		"a share for a whole number":          {`path: "networks[wan].waveform", values: [baseline, satcom]`, `path: "networks[wan].mtu", values: [1400.5]`, []string{`networks[wan].mtu is the number 1400.5: it must be a whole number, such as 5`}, false},
		"a number for an object":              {`path: "networks[wan].waveform", values: [baseline, satcom]`, `path: "networks[wan].link", values: [5]`, []string{`networks[wan].link is the number 5: it must be an object, such as {name: value}`}, false},
		"a number within an object":           {`publisher.period", value: 500ms`, `publisher", value: {protocol: mqtt, to: hub, period: 500}`, []string{`apps[bft].publisher.period is the number 500: it must be a duration`}, false},
		"a field of no name within an object": {`publisher.period", value: 500ms`, `publisher", value: {protocol: mqtt, to: hub, perod: 1s}`, []string{`apps[bft].publisher.perod: there is no such field: did you mean period?`}, false},
		"a number in a list":                  {`path: "networks[wan].waveform", values: [baseline, satcom]`, `path: "nodes[nor].apps", values: [[5]]`, []string{`nodes[nor].apps[0] is the number 5: it must be text: write it in quotes, "5"`}, false},
		"a minute that no hour has":           {"repeats: 2", "repeats: 2\n  schedule: {cron: \"61 * * * *\"}", []string{`campaign.yaml:6: spec.schedule.cron: "61 * * * *": use five fields (minute 0-59, hour 0-23`}, false},
		"a zone that is none":                 {"repeats: 2", "repeats: 2\n  schedule: {cron: \"@daily\", timeZone: Europe/Olso}", []string{"campaign.yaml:6: spec.schedule.timeZone: Europe/Olso is no IANA time zone"}, false},
		"a day that never comes":              {"repeats: 2", "repeats: 2\n  schedule: {cron: \"0 0 31 2 *\"}", []string{`spec.schedule.cron: "0 0 31 2 *" never comes`}, false},
		"a schedule":                          {"repeats: 2", "repeats: 2\n  schedule: {cron: \"0 2 * * *\"}", nil, true},
		"null as a value":                     {"[baseline, satcom]", "[baseline, null]", []string{"spec.matrix.axes[link].values[1]: only strings, numbers, true and false name a level", "networks[wan].waveform: the value is null"}, false},
		"a field that nobody knows":           {"parallelism: 3", "paralelism: 3", []string{"campaign.yaml:6: spec.paralelism: there is no such field: did you mean parallelism?"}, false},
		"a run that would never end":          {"      duration: 75s\n", "", []string{"duration: a run needs one, or it would never end"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(soundCampaign, c.old, c.with, 1)
			if text == soundCampaign {
				t.Fatalf("%q is not in the campaign", c.old)
			}
			report := Text("campaign.yaml", []byte(text))
			all := join(report.Findings)
			for _, want := range c.want {
				if !strings.Contains(all, want) {
					t.Errorf("findings:\n%s\nwant %s", all, want)
				}
			}
			for _, foreign := range []string{"json", "JSON", "Go ", "end of range", "cannot unmarshal", "Invalid value: \"\""} {
				if strings.Contains(all, foreign) {
					t.Errorf("findings:\n%s\nin words of a library: %q", all, foreign)
				}
			}
			if report.Failed() == c.sound {
				t.Errorf("refused: %v; want %v", report.Failed(), !c.sound)
			}
		})
	}
}

func TestACampaignOfMoreRunsThanARoundHasIsRefused(t *testing.T) {
	var sizes []string
	for mtu := range 64 {
		sizes = append(sizes, strconv.Itoa(1400+mtu))
	}
	axis := "    axes:\n    - {name: mtu, path: \"networks[wan].mtu\", values: [" + strings.Join(sizes, ", ") + "]}\n"
	text := strings.Replace(strings.Replace(soundCampaign, "    axes:\n", axis, 1), "repeats: 2", "repeats: 4", 1)
	findings := join(judgeText(t, text))
	if want := "256 points × 4 repeats are more than 1000 runs"; !strings.Contains(findings, want) {
		t.Errorf("findings:\n%s\nwant %q", findings, want)
	}
}

func TestReferenceFiguresInTheFilesAreChecked(t *testing.T) {
	with := strings.Replace(soundCampaign, "spec:\n", "spec:\n  reference: {ref: paper}\n", 1)
	object := func(data string) string {
		return with + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: paper}\n" + data
	}
	for name, c := range map[string]struct{ text, want string }{
		"good ones":          {object("data: {a.csv: \"run,metric,value\\nbaseline-light,medianSeconds,0.5\\n\"}\n"), ""},
		"a ConfigMap apart":  {with, "campaign.yaml:5: warning: spec.reference.ref: ConfigMap paper is not among these objects: until the cluster has it, the campaign waits with Accepted=False"},
		"an unknown point":   {object("data: {a.csv: \"run,metric,value\\nbaseline-lite,medianSeconds,0.5\\n\"}\n"), `campaign.yaml:5: spec.reference: ConfigMap paper, key a.csv, row 2, column run: "baseline-lite" is unknown: did you mean baseline-light? want one of baseline-light, baseline-heavy, satcom-light, satcom-heavy`},
		"two keys":           {object("data: {a.csv: x, b.csv: y}\n"), "campaign.yaml:5: spec.reference: ConfigMap paper has keys a.csv, b.csv: name one in key"},
		"a key that lacks":   {strings.Replace(object("data: {a.csv: x}\n"), "ref: paper", "ref: paper, key: c.csv", 1), "campaign.yaml:5: warning: spec.reference.ref: ConfigMap paper has no key c.csv (did you mean a.csv?): until it has, the campaign waits with Accepted=False"},
		"a key without name": {strings.Replace(with, "ref: paper", "key: c.csv", 1), "campaign.yaml:5: spec.reference.ref: "},
	} {
		t.Run(name, func(t *testing.T) {
			got := join(Text("campaign.yaml", []byte(c.text)).Findings)
			if c.want == "" && strings.Contains(got, "reference") || !strings.Contains(got, c.want) {
				t.Errorf("findings:\n%s\nwant %s", got, c.want)
			}
		})
	}
}

func TestTheExampleOfReferenceFiguresFitsTheCampaignOfTheTutorial(t *testing.T) {
	page, err := os.ReadFile("../../docs/tutorials/campaign.md")
	if err != nil {
		t.Fatal(err)
	}
	figures, err := os.ReadFile("../../docs/examples/reference/links.csv")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range markdown.Blocks(string(page)) {
		if block.Language != "yaml" {
			continue
		}
		campaign := strings.Replace(block.Text, "spec:\n", "spec:\n  reference: {ref: published}\n", 1)
		object := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: published}\ndata:\n  links.csv: |\n    " + strings.ReplaceAll(strings.TrimSpace(string(figures)), "\n", "\n    ") + "\n"
		report := Text("links.yaml", []byte(campaign+object))
		if report.Failed() || len(report.Expansions) != 1 || strings.Contains(join(report.Findings), "reference") {
			t.Errorf("findings:\n%s\nwant none about the reference", join(report.Findings))
		}
		return
	}
	t.Error("the tutorial has no campaign")
}
