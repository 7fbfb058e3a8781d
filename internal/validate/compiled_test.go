package validate

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/scenario/compile"
	"vignette.dev/vignette/internal/testtool"
)

const patrol = `apiVersion: v1
kind: ConfigMap
metadata: {name: patrol}
data:
  rows.csv: |
    time,name,latitude,longitude
    0,hq,58.1,7.9
    0,veh,58.2,7.9
    60,veh,58.3,7.9
---
apiVersion: vignette.dev/v1alpha1
kind: Scenario
metadata: {name: patrol}
spec:
  format: csv
  source: {configMap: patrol, key: rows.csv}
  propagation: {model: FreeSpace, frequency: 300MHz}
---
apiVersion: vignette.dev/v1alpha1
kind: Experiment
metadata: {name: e}
spec:
  duration: 1m
  scenario: {ref: patrol}
  networks: [{name: vhf, waveform: rfpipe-wideband, subnet: 198.18.1.0/24}]
  apps:
  - {name: broker, mosquitto: {}}
  - {name: bft, publisher: {protocol: mqtt, to: hq/broker, payload: nffi, period: 10s}}
  nodes:
  - {name: hq, platform: "1", networks: [vhf], apps: [broker]}
  - {name: veh, platform: "2", networks: [vhf], apps: [bft]}
`

func TestAScenarioIsCompiledFromTheConfigMapBesideIt(t *testing.T) {
	for name, c := range map[string]struct {
		old, new string
		want     string
		failed   bool
	}{
		"sound":                  {"", "", "warning: spec: platforms are numbered in the order of the tracks (tracks.named says other numbers): hq is 1, veh is 2", false},
		"the ConfigMap":          {"", "", "ConfigMap of v1 is not an object of vignette: only what the other objects take from it is checked", false},
		"a slip in a row":        {"58.3,7.9", "58,3,7.9", "spec: patrol/rows.csv:4: the row has 5 columns: want 4 (the cluster takes this, but the scenario would not be compiled)", true},
		"no such key":            {"key: rows.csv", "key: rows.gpx", "spec: patrol/rows.gpx: the ConfigMap has no such key", true},
		"packed by nobody":       {"rows.csv", "rows.csv.gz", "its name ends in .gz, but it is not packed by gzip", true},
		"a platform too many":    {`platform: "2"`, `platform: "3"`, "scenario patrol has the platforms 1-2, and not 3, which is to carry node veh", true},
		"no pathloss":            {"  propagation: {model: FreeSpace, frequency: 300MHz}\n", "", "has no pathloss, which network vhf needs", true},
		"no pathloss to another": {"veh,58", "hq,58", `spec.scenario.ref: "patrol" has one platform, and network vhf needs a pathloss between two: give the Scenario the tracks of the others`, true},
		"a scenario that ends":   {"duration: 1m", "duration: 2m", "the scenario ends at 1m, and the experiment at 2m: nothing moves in between", false},
		"a scenario that goes on": {"duration: 1m", "duration: 30s",
			"the scenario lasts until 1m, and the experiment ends at 30s: the rest of the scenario is not used", false},
		"a lead beyond the run":         {"period: 10s", "period: 10s, lead: 1m", "spec.apps[1].publisher.lead: the app runs for 1m at most: it publishes nothing", false},
		"terrain given to free space":   {"frequency: 300MHz}", "frequency: 300MHz, syntheticTerrain: 1}", "FreeSpace takes nothing of the terrain but the heights of antennas", false},
		"something that is passed over": {"    60,veh", "    12:00:00.0 LISTEN proto>UDP\n    60,veh", "want times that are all seconds", true},
	} {
		t.Run(name, func(t *testing.T) {
			text := patrol
			if c.old != "" {
				text = strings.ReplaceAll(patrol, c.old, c.new)
			}
			report := Text("all.yaml", []byte(text))
			if said := join(report.Findings); !strings.Contains(said, c.want) || report.Failed() != c.failed {
				t.Errorf("findings:\n%s\nwant %q, refused %t", said, c.want, c.failed)
			}
		})
	}
}

func TestAScenarioWithoutItsConfigMapIsForTheClusterToCompile(t *testing.T) {
	_, text, _ := strings.Cut(patrol, "---\n")
	report := Text("all.yaml", []byte(text))
	if findings := report.Findings; len(findings) != 1 || !findings[0].Elsewhere || !strings.Contains(findings[0].Message, "ConfigMap patrol is not among these objects") {
		t.Errorf("findings:\n%s\nwant that the cluster may have the ConfigMap", join(findings))
	}
}

func TestTracksOfACompiledScenarioAreRefused(t *testing.T) {
	text := "apiVersion: vignette.dev/v1alpha1\nkind: Scenario\nmetadata: {name: s}\nspec: {format: gpx, compiled: 'sha256:" + strings.Repeat("0", 64) + "', tracks: {speed: 5m/s}}\n"
	if findings := join(Text("s.yaml", []byte(text)).Findings); !strings.Contains(findings, "tracks: the scenario is compiled already: leave the field out") {
		t.Errorf("findings:\n%s", findings)
	}
}

// slotted has the vehicles of patrol on a network of EMANE whose slots have an overhead of 10 µs, enough for 2.7 km.
var slotted = strings.Replace(patrol, "{name: vhf, waveform: rfpipe-wideband, subnet: 198.18.1.0/24}",
	"{name: vhf, engine: emane, subnet: 198.18.1.0/24, tdma: {rate: 1Mbit, phy: {pathloss: FreeSpace}, structure: {slotDuration: 10ms, slotOverhead: 10us}}}", 1)

func TestSlotsThatAreTooShortForAMovementAreRefused(t *testing.T) {
	_, withoutTracks, _ := strings.Cut(slotted, "---\n")
	_, alone, _ := strings.Cut(withoutTracks, "---\n")
	const doubt = "warning: spec.networks[0]: EMANE drops bursts that fill their slots beyond 2.7 km"
	generated := func(pattern string) string {
		return strings.Replace(withoutTracks, "format: csv\n  source: {configMap: patrol, key: rows.csv}", "format: synthetic\n  synthetic: "+pattern, 1)
	}
	for name, c := range map[string]struct {
		text, want string
		failed     bool
	}{
		"tracks": {slotted, "spec.networks[0].engine: nodes hq and veh are 22.3 km apart at 1m, and EMANE drops bursts that fill their slots beyond 2.7 km, " +
			"by their propagation delay: want a slotOverhead of at least 76µs, or engine native", true},
		"more, for a minute":       {strings.Replace(slotted, "10us", "60us", 1), "are 22.3 km apart at 1m, and EMANE drops bursts that fill their slots beyond 17.7 km", true},
		"more, for a short run":    {strings.NewReplacer("10us", "60us", "duration: 1m", "drain: {max: 5s, quietFor: 1s}\n  duration: 10s").Replace(slotted), "", false},
		"enough for the tracks":    {strings.Replace(slotted, "10us", "76us", 1), "", false},
		"a line of platforms":      {generated("{pattern: Line, platforms: 2, spacing: 5km, duration: 1m}"), "nodes hq and veh are 5.0 km apart at 0s", true},
		"a line that is short":     {generated("{pattern: Line, platforms: 2, spacing: 2km, duration: 1m}"), "", false},
		"tracks that are not here": {withoutTracks, doubt, false},
		"an unknown scenario":      {alone, doubt, false},
		"its pathlosses":           {strings.Replace(alone, ", phy: {pathloss: FreeSpace}", "", 1), "warning: spec.networks[0]: if scenario patrol has antenna profiles or fading, EMANE drops bursts", false},
		"pathlosses of the tracks": {strings.Replace(slotted, ", phy: {pathloss: FreeSpace}", "", 1), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			report := Text("all.yaml", []byte(c.text))
			said := join(report.Findings)
			if report.Failed() != c.failed || !strings.Contains(said, c.want) || c.want == "" && strings.Contains(said, "EMANE") {
				t.Errorf("findings:\n%s\nwant %q, refused %t", said, c.want, c.failed)
			}
		})
	}
}

func TestDistancesThatTakeTooLongAreUnknown(t *testing.T) {
	before := compilationTimeout
	compilationTimeout = 0
	defer func() { compilationTimeout = before }()
	_, text, _ := strings.Cut(slotted, "---\n")
	text = strings.Replace(text, "format: csv\n  source: {configMap: patrol, key: rows.csv}", "format: synthetic\n  synthetic: {pattern: Line, platforms: 2, spacing: 5km, duration: 1m}", 1)
	report := Text("all.yaml", []byte(text))
	if said := join(report.Findings); report.Failed() || !strings.Contains(said, "warning: spec.networks[0]: EMANE drops bursts that fill their slots beyond 2.7 km") {
		t.Errorf("findings:\n%s\nwant a warning alone", said)
	}
}

func TestPlatformsOfAMadeUpScenarioAreKnown(t *testing.T) {
	_, text, _ := strings.Cut(patrol, "---\n")
	text = strings.Replace(text, "format: csv\n  source: {configMap: patrol, key: rows.csv}", "format: synthetic\n  synthetic: {pattern: Line, platforms: 2, duration: 1m}", 1)
	if findings := join(Text("all.yaml", []byte(text)).Findings); findings != "" {
		t.Errorf("findings:\n%s\nwant none", findings)
	}
	terrain := strings.Replace(text, "frequency: 300MHz}", "frequency: 300MHz, syntheticTerrain: 1}", 1)
	if findings := join(Text("all.yaml", []byte(terrain)).Findings); !strings.Contains(findings, "warning: spec: FreeSpace takes nothing of the terrain") {
		t.Errorf("findings:\n%s", findings)
	}
	text = strings.Replace(text, `platform: "2"`, `platform: "3"`, 1)
	if findings := join(Text("all.yaml", []byte(text)).Findings); !strings.Contains(findings, "scenario patrol has the platforms 1-2, and not 3") {
		t.Errorf("findings:\n%s", findings)
	}
}

func TestMovementsThatAreTooLargeAreRefusedBeforeTheyAreMade(t *testing.T) {
	const scenario = `apiVersion: vignette.dev/v1alpha1
kind: Scenario
metadata: {name: s}
spec:
  format: synthetic
  synthetic: {pattern: RandomWaypoint, platforms: 1000, duration: 24h}
`
	for name, c := range map[string]struct{ old, new, want string }{
		"a day of 1000":       {"", "", ""},
		"a year of 1000":      {"24h", "8760h", "spec.synthetic.duration: 1000 platforms for 8760h have 31536001000 positions, one of each in each second: want at most 90000000"},
		"a year of 24":        {"1000, duration: 24h", "24, duration: 8760h", "24 platforms for 8760h have 756864024 positions"},
		"a grid for a year":   {"RandomWaypoint, platforms: 1000, duration: 24h", "Grid, platforms: 1000, duration: 8760h", ""},
		"with propagation":    {"24h}\n", "24h}\n  propagation: {model: FreeSpace, frequency: 300MHz}\n", "spec.synthetic.duration: 1000 platforms for 24h have 43157299500 pathlosses, one of each pair in each second: want at most 5000000000"},
		"propagation of less": {"24h}\n", "2h}\n  propagation: {model: FreeSpace, frequency: 300MHz}\n", ""},
		"in several units":    {"24h", "1440m1s", ""},
	} {
		t.Run(name, func(t *testing.T) {
			findings := join(Text("s.yaml", []byte(strings.Replace(scenario, c.old, c.new, 1))).Findings)
			if (findings == "") != (c.want == "") || !strings.Contains(findings, c.want) {
				t.Errorf("findings:\n%s\nwant %q", findings, c.want)
			}
		})
	}
}

func TestSourcesThatTheOperatorWouldNotUnpackAreRefused(t *testing.T) {
	zeros := testtool.GzipOfZeros(compile.MaxServedBytes/2 + 1)
	_, rest, _ := strings.Cut(patrol, "---\n")
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: patrol}\nbinaryData: {rows.csv.gz: " + base64.StdEncoding.EncodeToString(zeros) + "}\n---\n" +
		strings.Replace(rest, "source: {configMap: patrol, key: rows.csv}", "sources: [{configMap: patrol, key: rows.csv.gz}, {configMap: patrol, key: rows.csv.gz}]", 1)
	if findings := join(Text("all.yaml", []byte(text)).Findings); !strings.Contains(findings, `with it the sources have more than 256 MiB when unpacked: compile them with "vignette scenario push"`) {
		t.Errorf("findings:\n%s", findings)
	}
}

func TestObjectsOfAnotherNamespaceAreNotThere(t *testing.T) {
	said := func(scenarios, experiments string) string {
		text := strings.Replace(patrol, "kind: Scenario\nmetadata: {name: patrol}", "kind: Scenario\nmetadata: {name: patrol"+scenarios+"}", 1)
		return join(judgeText(t, strings.Replace(text, "metadata: {name: e}", "metadata: {name: e"+experiments+"}", 1)))
	}
	const missing = "Scenario patrol is not among these objects"
	if found := said(", namespace: team-nor", ", namespace: team-swe"); !strings.Contains(found, missing) {
		t.Errorf("findings:\n%s\nwant the scenario of another namespace to be missing", found)
	}
	for name, found := range map[string]string{
		"both in one":            said(", namespace: team-nor", ", namespace: team-nor"),
		"the experiment in none": said(", namespace: team-nor", ""),
		"the scenario in none":   said("", ", namespace: team-nor"),
	} {
		if strings.Contains(found, missing) {
			t.Errorf("%s: findings:\n%s\nwant the scenario to be there", name, found)
		}
	}
}

func TestSeveralScenariosTakeNoLongerThanOne(t *testing.T) {
	before := compilationTimeout
	compilationTimeout = 300 * time.Millisecond
	defer func() { compilationTimeout = before }()
	var rows strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&rows, "    %d,%d,58.%d,7.%d\n", i, i%200+1, i%97, i%89)
	}
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: long}\ndata:\n  rows.csv: |\n    time,platform,latitude,longitude\n" + rows.String()
	for i := range 8 {
		text += fmt.Sprintf("---\napiVersion: vignette.dev/v1alpha1\nkind: Scenario\nmetadata: {name: s-%d}\nspec: {format: csv, source: {configMap: long, key: rows.csv}, propagation: {model: FreeSpace, frequency: 300MHz}}\n", i)
	}
	if found := join(judgeText(t, text)); strings.Count(found, "takes more than 300ms: this one was not tried to the end") < 7 {
		t.Errorf("findings:\n%s\nwant seven scenarios that were not tried to the end", found)
	}
}
