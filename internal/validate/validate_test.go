package validate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func judgeText(t *testing.T, text string) []Finding {
	t.Helper()
	report, err := Files([]string{Stdin}, strings.NewReader(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return report.Findings
}

func TestASoundExperimentPasses(t *testing.T) {
	if findings := judgeText(t, sound); len(findings) != 0 {
		t.Errorf("findings %v; want none", findings)
	}
}

func TestEachMistakeIsNamedWithItsField(t *testing.T) {
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			findings := judgeText(t, c.broken(t))
			for _, f := range findings {
				if f.Path == c.path && strings.Contains(f.Message, c.message) && f.Line > 0 {
					return
				}
			}
			t.Errorf("findings:\n%s\nwant %s: …%s…", join(findings), c.path, c.message)
		})
	}
}

func TestEachMistakeOfWhatIsMadeBesideAnExperimentIsNamed(t *testing.T) {
	if findings := judgeText(t, soundChange+"---\n"+soundCapture); len(findings) != 0 {
		t.Errorf("findings:\n%s\nwant none", join(findings))
	}
	for _, c := range refusalsBeside {
		t.Run(c.name, func(t *testing.T) {
			findings := judgeText(t, c.breaking(t, c.text))
			for _, f := range findings {
				if strings.HasPrefix(f.Path, c.path) && strings.Contains(f.Message, c.message) && f.Line > 0 && !f.Warning {
					return
				}
			}
			t.Errorf("findings:\n%s\nwant %s: …%s…", join(findings), c.path, c.message)
		})
	}
}

func TestWhatIsSoundPasses(t *testing.T) {
	for name, edits := range accepted {
		t.Run(name, func(t *testing.T) {
			for _, f := range judgeText(t, refusal{edits: edits}.broken(t)) {
				if !f.Warning {
					t.Errorf("finding %s; want none", f)
				}
			}
		})
	}
}

func TestTwoRaysOutsideOfTheirRangeAreAWarning(t *testing.T) {
	const text = `apiVersion: vignette.dev/v1alpha1
kind: Experiment
metadata: {name: plain}
spec:
  duration: 10s
  networks:
  - name: vhf
    ENGINErfpipe: {phy: {pathloss: TwoRay, frequency: 300MHz}}
    subnet: 198.18.0.0/24
    radios: [{nodes: [b], antennaHeight: HEIGHT}]
  apps: [{name: hub, mosquitto: {}}]
  nodes:
  - {name: a, position: {latitude: "58", longitude: "8"}, networks: [vhf], apps: [hub]}
  - {name: b, position: {latitude: "58.01", longitude: "8", altitude: 200m}, networks: [vhf]}
`
	const crossover = `standard input:7: warning: spec.networks[0]: TwoRay: 100 % of the pairs are closer than the crossover distance, and have the loss of free space`
	for replaced, want := range map[[2]string]string{
		{"3m", ""}: "", {"100m", ""}: crossover, {"0.5m", ""}: "lower than a wavelength",
		{"3m", "engine: emane\n    "}: "EMANE uses altitudes above the sea as the antennas' heights",
	} {
		findings := join(judgeText(t, strings.NewReplacer("HEIGHT", replaced[0], "ENGINE", replaced[1]).Replace(text)))
		if (want == "") != (findings == "") || !strings.Contains(findings, want) || want != "" && !strings.Contains(findings, "warning") {
			t.Errorf("%q: findings %q; want %q", replaced, findings, want)
		}
	}
}

func TestAnUnknownNameIsSaidWithWhatMayBeMeant(t *testing.T) {
	const text = `apiVersion: vignette.dev/v1alpha1
kind: Experiment
metadata: {name: plain}
spec:
  duration: 10s
  networks: [{name: vhf, waveform: nbwf, subnet: 198.18.0.0/24}, {name: uhf, waveform: nbwf, subnet: 198.18.1.0/24}]
  apps:
  - {name: broker, mosquitto: {}}
  - {name: bft, publisher: {protocol: mqtt, to: TO, payload: nffi, period: 10s}}
  nodes:
  - {name: lead, networks: [vhf, uhf], apps: [broker]}
  - {name: veh, count: 2, networks: [vhf, NETWORK], apps: [bft]}
`
	for replaced, want := range map[[2]string]string{
		{"lead/brooker", "uhf"}:       "spec.apps[bft].publisher.to: there is no app brooker: did you mean broker?",
		{"lead", "uhf"}:               "spec.apps[bft].publisher.to: there is no app lead, but a node: write lead/ and the app",
		{"veh-2", "uhf"}:              "spec.apps[bft].publisher.to: there is no app veh-2, but a node: write veh-2/ and the app",
		{"broker2", "uhf"}:            "spec.apps[bft].publisher.to: there is no app broker2: did you mean broker?",
		{"veh-9", "uhf"}:              "spec.apps[bft].publisher.to: there is no app veh-9: use one of broker, bft",
		{"nothing-like-it", "uhf"}:    "spec.apps[bft].publisher.to: there is no app nothing-like-it: use one of broker, bft",
		{"lead/broker", "satellites"}: "spec.nodes[veh].networks: there is no network satellites: use one of vhf, uhf",
	} {
		if findings := join(judgeText(t, strings.NewReplacer("TO", replaced[0], "NETWORK", replaced[1]).Replace(text))); !strings.Contains(findings, want) {
			t.Errorf("of %q: findings %q; want %q", replaced, findings, want)
		}
	}
}

func TestUnknownNamesInTheTimelineAndLinksAreSaidWithWhatMayBeMeant(t *testing.T) {
	for _, c := range []refusal{
		{"a misspelt app", []string{"stop: [bft]", "stop: [bftt]"}, "spec.timeline[60s].stop", "no node runs bftt: want app, node/app or group/app: did you mean bft?"},
		{"an app like no other", []string{"stop: [bft]", "stop: [everything]"}, "spec.timeline[60s].stop", "group/app: use one of hub, broker, bft, chat, sensor, own"},
		{"a node", []string{"stop: [bft]", "stop: [veh-1]"}, "spec.timeline[60s].stop", "group/app: write veh-1/ and the app"},
		{"a group", []string{"stop: [bft]", "stop: [nor]"}, "spec.timeline[60s].stop", "group/app: write nor/ and the app"},
		{"a misspelt group", []string{"to: nor, rate", "to: norr, rate"}, "spec.networks[wan].links", "there is no group or node norr to go to: did you mean nor?"},
		{"a node beyond count", []string{"from: veh-1, to", "from: veh-4, to"}, "spec.timeline[30s].set", "there is no group or node veh-4 to go from: count of veh makes veh-1 to veh-3"},
		{"a group like no other", []string{"wan/nor", "wan/everybody"}, "spec.collect.captures", "there is no group or node everybody: use one of hq, nor, veh, mast"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if findings := join(judgeText(t, c.broken(t))); !strings.Contains(findings, c.path+": ") || !strings.HasSuffix(findings, c.message) {
				t.Errorf("findings:\n%s\nwant %s: …%s", findings, c.path, c.message)
			}
		})
	}
}

func TestAnUnknownFieldIsSaidWithThoseThatThereAre(t *testing.T) {
	for _, c := range []refusal{
		{"a misspelt field", []string{"rate: 2Mbit, delay", "rate: 2Mbit, dealy"}, "spec.networks[1].link.dealy", "there is no such field: did you mean delay?"},
		{"a field of another name", []string{"rate: 2Mbit, delay: 5ms", "rate: 2Mbit, latency: 5ms"}, "spec.networks[1].link.latency",
			"there is no such field: use one of corrupt, delay, duplicate, gilbertElliott, jitter"},
		{"a field with a former name", []string{"set: [{network: wan, from: veh-1, to: nor, link: {loss: 10%}}", "set: [{network: lan, jammer: {strength: 1W}}"},
			"spec.timeline[2].set[0].jammer.strength", "there is no such field: use one of bandwidth, frequency, name, pathloss, position, power, silent"},
		{"a word for an object", []string{"duration: 60s", "duration: 60s\n  scenario: moves"}, "spec.scenario", `"moves" must be of type object, not string: its fields are ref`},
		{"nothing for an object", []string{"    mosquitto: {}\n", "    mosquitto:\n"}, "spec.apps[0].mosquitto", "must be of type object, not null: write {} for its defaults; its fields are bridges"},
		{"nothing within braces", []string{"  - name: hub\n    mosquitto: {}\n", "  - {name: hub, mosquitto: }\n"}, "spec.apps[0].mosquitto", "must be of type object, not null: write {} for its defaults"},
		{"an object that has no fields", []string{"    mosquitto: {}\n", "    prosody:\n"}, "spec.apps[0].prosody", "must be of type object, not null: write {}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if findings := join(judgeText(t, c.broken(t))); !strings.Contains(findings, c.path+": "+c.message) {
				t.Errorf("findings:\n%s\nwant %s: %s", findings, c.path, c.message)
			}
		})
	}
}

func TestPlatformsThatAreNotAsManyAsTheNodesAreCounted(t *testing.T) {
	text := refusal{edits: []string{`"2-4"`, `"2-5"`}}.broken(t)
	if findings := join(judgeText(t, text)); !strings.Contains(findings, "as count says: it has 4, and count is 3") {
		t.Errorf("findings %q; want both numbers", findings)
	}
}

func TestValuesAndNodesThatARuleCannotNameAreNamed(t *testing.T) {
	for _, c := range []refusal{
		{"a negative rate", []string{"rate: 2Mbit", "rate: -9.6kbit"}, "spec.networks[1].link.rate", `"-9.6kbit" must be a rate above zero with its unit`},
		{"a loss above 100 %", []string{"0.5%", "120%"}, "spec.networks[1].link.loss", `"120%" must be a percentage from 0% to 100%`},
		{"a unit of no radio", []string{"    link: {rate: 2Mbit, delay: 5ms, loss: 0.5%}\n", "    rfpipe: {phy: {frequency: 300THz}}\n"}, "spec.networks[1].rfpipe.phy.frequency",
			`"300THz" must be a frequency above zero with its unit, such as 300MHz or 250kHz; the units are Hz, kHz, MHz and GHz`},
		{"a subnet that is too small", []string{"198.18.1.0/28", "198.18.1.0/29"}, "spec.networks[lan].subnet", ": mast has up to 9, so want /28 or a larger subnet"},
		{"a NEM id used twice", []string{"{name: hq,", "{name: hq, nem: 9,"}, "spec.nodes[mast].nem", "among all nodes): hq"},
		{"a NEM id among those of a group", []string{"nem: 9", "nem: 3"}, "spec.nodes[mast].nem", "among all nodes): veh"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if findings := join(judgeText(t, c.broken(t))); !strings.Contains(findings, c.path+": ") || !strings.Contains(findings, c.message) {
				t.Errorf("findings:\n%s\nwant %s: …%s…", findings, c.path, c.message)
			}
		})
	}
}

func TestAnAntennaTooLowForTwoRaysIsToldOfNodesThatMove(t *testing.T) {
	const text = `apiVersion: vignette.dev/v1alpha1
kind: Experiment
metadata: {name: plain}
spec:
  duration: 10s
  scenario: {ref: moves}
  networks:
  - {name: vhf, rfpipe: {phy: {pathloss: TwoRay, frequency: FREQUENCY}}, subnet: 198.18.0.0/24}
  apps: [{name: hub, mosquitto: {}}]
  nodes:
  - {name: a, platform: "1", networks: [vhf], apps: [hub]}
  - {name: b, count: 2, platforms: 2-3, networks: [vhf]}
`
	const want = "warning: spec.networks[0]: TwoRay: 100 % of the pairs have an antenna lower than a wavelength"
	for frequency, warned := range map[string]bool{"50MHz": true, "300MHz": false} {
		if findings := join(judgeText(t, strings.Replace(text, "FREQUENCY", frequency, 1))); strings.Contains(findings, want) != warned {
			t.Errorf("of %s: findings %q", frequency, findings)
		}
	}
}

func TestNetworksOfOneRoutingDomainThatDoNotFitAreFound(t *testing.T) {
	const text = `apiVersion: vignette.dev/v1alpha1
kind: Experiment
metadata: {name: two}
spec:
  duration: 10s
  networks:
  - {name: wide, waveform: baseline, subnet: 198.18.0.0/24, routing: {protocol: olsrv2, hello: 1s}}
  - name: narrow
    waveform: nbwf
    subnet: 198.18.1.0/24
    routing: ROUTING
  apps: [{name: hub, mosquitto: {}}]
  nodes:
  - {name: hq, networks: [wide, narrow], apps: [hub]}
  - {name: veh, networks: [NETWORKS]}
`
	const at = "standard input:11: "
	for replaced, want := range map[[2]string]string{
		{"{protocol: olsrv2, hello: 10s, helloValidity: 50s}", "narrow"}: "",
		{"{protocol: olsrv2, tc: 20s}", "narrow"}:                        "",
		{"{protocol: olsrv2, metric: dat}", "narrow"}: at +
			"warning: spec.networks[1].routing.metric: node hq is in network wide first, and takes the metric from there",
		{"{protocol: olsrv2, tc: 2s, tcValidity: 4s}", "narrow"}: at +
			"warning: spec.networks[1].routing.tcValidity: network wide of the same routing domain carries TCs every 5s",
		{"{protocol: olsrv2, topologies: [{name: bulk, metric: dat, dscp: [8]}]}", "narrow"}: "",
		{"{protocol: olsrv1, topologies: [{name: bulk, metric: dat, dscp: [8]}]}", "narrow"}: at +
			"spec.networks[1].routing.topologies: topologies are for protocol olsrv2",
		{"{protocol: olsrv1, tc: 20s}", "narrow"}: "",
		{"{protocol: none}", "narrow"}:            "",
	} {
		findings := judgeText(t, strings.NewReplacer("ROUTING", replaced[0], "NETWORKS", replaced[1]).Replace(text))
		if got := join(findings); (want == "") != (got == "") || !strings.Contains(got, want) || len(findings) > 1 {
			t.Errorf("%q: findings %q; want %q", replaced, got, want)
		}
	}
}

func join(findings []Finding) string {
	lines := make([]string, len(findings))
	for i, f := range findings {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

func TestAllMistakesAreSaidAtOnceEachWithItsLine(t *testing.T) {
	text := `apiVersion: vignette.dev/v1alpha1
kind: Experiment
metadata: {name: bad}
spec:
  duration: 10
  netwrks: []
  networks:
  - {name: wan, waveform: baseline, subnet: 198.18.0.0/24}
  apps:
  - name: bft
    publisher: {protocol: mqtt, to: hub, period: 2s}
  nodes:
  - {name: a, networks: [wan], apps: [bft]}
  - name: b
    apps:
    - ghost
    - spook
  - {name: c, networks: [vhf]}
---
apiVersion: vignette.dev/v1alpha1
kind: Waveform
metadata: {name: slow}
spec:
  link: {rate: 9.8}
`
	want := []string{
		`standard input:5: spec.duration: must be of type string, not integer: it must be a duration with its unit`,
		`standard input:6: spec.netwrks: there is no such field: did you mean networks?`,
		`standard input:11: spec.apps[bft].publisher.to: there is no app hub`,
		`standard input:15: spec.nodes[b].apps: there is no app ghost, spook`,
		`standard input:18: spec.nodes[c].networks: there is no network vhf`,
		`standard input:24: spec.link.rate: `,
	}
	got := judgeText(t, text)
	for i, line := range want {
		if i >= len(got) || !strings.HasPrefix(got[i].String(), line) {
			t.Fatalf("findings:\n%s\nwant:\n%s", join(got), strings.Join(want, "\n"))
		}
	}
	if len(got) != len(want) {
		t.Errorf("findings:\n%s\nwant %d of them", join(got), len(want))
	}
}

func TestAListThatIsTooLongIsRefusedAtOnce(t *testing.T) {
	var nodes strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&nodes, "  - {name: n%d}\n", i)
	}
	text := "apiVersion: vignette.dev/v1alpha1\nkind: Experiment\nmetadata: {name: many}\nspec:\n  duration: 1m\n  nodes:\n" + nodes.String() +
		"  networks:\n  - {name: radio, type: Tactical, members: [n1, n2]}\n  apps: []\n"
	began := time.Now()
	report := Text("many.yaml", []byte(text))
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it takes %s", took)
	}
	if !slices.ContainsFunc(report.Findings, func(f Finding) bool {
		return f.Path == "spec.nodes" && strings.Contains(f.Message, "at most 256")
	}) {
		t.Errorf("findings are %v", report.Findings)
	}
}

func TestWhatIsNotAnObjectIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"text":                          {"hello", "standard input:1: is not an object"},
		"broken YAML":                   {"a: [1\nb: }", "is not YAML"},
		"nothing":                       {"", "holds no object"},
		"no kind":                       {"metadata: {name: a}", "needs apiVersion"},
		"tabs":                          {"spec:\n\ta: 1\n", "standard input:2: is not YAML: the line is indented with a tab: YAML is indented with spaces"},
		"no API group":                  {"apiVersion: v1\nkind: Experiment", "vignette's has apiVersion: vignette.dev/v1alpha1"},
		"an unknown kind":               {"apiVersion: vignette.dev/v1alpha1\nkind: Experimnt", "kind: Experimnt is no kind of vignette"},
		"an old version":                {"apiVersion: vignette.dev/v1\nkind: Experiment", "vignette.dev/v1 is not served"},
		"another's object":              {"apiVersion: v1\nkind: ConfigMap", "warning: kind: ConfigMap of v1 is not an object of vignette"},
		"a key given twice":             {sound + "  duration: 5s\n", "spec.duration: is given twice, first in line 7"},
		"an empty experiment":           {"apiVersion: vignette.dev/v1alpha1\nkind: Experiment\nmetadata: {name: a}", "spec: is required"},
		"metadata of no kind":           {"apiVersion: vignette.dev/v1alpha1\nkind: Waveform\nmetadata: 7\nspec: {link: {}}", "metadata"},
		"a Scenario of no known format": {"apiVersion: vignette.dev/v1alpha1\nkind: Scenario\nmetadata: {name: a}\nspec: {format: shapefile, source: {configMap: a, key: b}}", `supported values: "eel", "anglova-csv"`},
		"an endless alias":              {"a: &a [*a]", "standard input"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := join(judgeText(t, c.text)); !strings.Contains(got, c.want) {
				t.Errorf("findings:\n%s\nwant …%s…", got, c.want)
			}
		})
	}
}

func TestAWrongTypeIsAnsweredWithWhatTheFieldHolds(t *testing.T) {
	for _, c := range []refusal{
		{"a duration that is a number", []string{"duration: 60s", "duration: 60"}, "spec.duration", "not integer: it must be a duration with its unit"},
		{"a delay that is a number", []string{"delay: 5ms, loss", "delay: 5, loss"}, "spec.networks[1].link.delay", "not integer: it must be a duration"},
		{"a network that is no list", []string{"networks: [wan], apps: [hub", "networks: wan, apps: [hub"}, "spec.nodes[0].networks", "must be a list such as [a, b]"},
		{"an empty list", []string{"stop: [bft]", "stop: []"}, "spec.timeline[1].stop", "needs more entries: at least 1"},
		{"a power without a unit", []string{"    waveform: baseline\n", "    waveform: baseline\n    radios: [{nodes: [veh], transmitPower: '500'}]\n"}, "spec.networks[0].radios[0].transmitPower", "such as 37dBm or 5W"},
		{"a name with an underscore", []string{"name: sound", "name: so_und"}, "metadata.name", `"so_und" must be lower-case letters, digits and hyphens`},
	} {
		t.Run(c.name, func(t *testing.T) {
			findings := judgeText(t, c.broken(t))
			for _, f := range findings {
				if f.Path == c.path && strings.Contains(f.Message, c.message) {
					return
				}
			}
			t.Errorf("findings:\n%s\nwant %s: …%s…", join(findings), c.path, c.message)
		})
	}
}

func TestFindingsOfALineAlwaysComeInOneOrder(t *testing.T) {
	text := strings.Replace(sound, "{rate: 2Mbit, delay: 5ms, loss: 0.5%}", "{rate: 2, limit: x, delay: 5, loss: 1}", 1)
	first := join(judgeText(t, text))
	for range 10 {
		if again := join(judgeText(t, text)); again != first {
			t.Fatalf("findings:\n%s\nthen:\n%s", first, again)
		}
	}
}

func TestAnObjectThatWasNotCheckedIsNotCalledValid(t *testing.T) {
	report, err := Files([]string{Stdin}, strings.NewReader(sound+"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"), nil)
	if err != nil || report.Failed() || len(report.Objects) != 1 || report.Objects[0] != "Experiment/sound" {
		t.Errorf("objects %v, findings %v, error %v; want Experiment/sound only", report.Objects, report.Findings, err)
	}
}

func TestAWaveformThatNobodyKnowsIsAWarningOnly(t *testing.T) {
	text := strings.Replace(sound, "waveform: baseline", "waveform: my-own", 1)
	report, err := Files([]string{Stdin}, strings.NewReader(text), nil)
	if err != nil || report.Failed() || len(report.Findings) != 1 || !report.Findings[0].Warning {
		t.Errorf("findings %v, error %v; want one warning", report.Findings, err)
	}
	own := "---\napiVersion: vignette.dev/v1alpha1\nkind: Waveform\nmetadata: {name: my-own}\nspec: {link: {}}\n"
	if findings := judgeText(t, text+own); len(findings) != 0 {
		t.Errorf("findings %v with the waveform in the same file; want none", findings)
	}
}

func TestEveryScenarioAndShippedWaveformPasses(t *testing.T) {
	var files []string
	for _, pattern := range []string{"scenarios/*/*.yaml", "scenarios/*/*/*.yaml", "scenarios/*/*/*/*.yaml", "charts/vignette/files/waveforms/*.yaml"} {
		found, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		files = append(files, found...)
	}
	report, err := Files(files, os.Stdin, nil)
	if err != nil {
		t.Fatal(err)
	}
	made := func(f Finding) bool { // the README has kubectl make it, or the file has tracks in place
		return strings.HasPrefix(f.Message, "ConfigMap of v1 is not an object of vignette") || strings.Contains(f.Message, "ConfigMap own-app is not among these objects") || strings.Contains(f.Message, "ConfigMap positions-programs is not among these objects")
	}
	declared := func(f Finding) bool { // E6's README says so
		return strings.Contains(f.File, "scenarios/e6/") && strings.Contains(f.Message, "pathloss of 300MHz, and the network is at 60MHz")
	}
	if findings := slices.DeleteFunc(slices.DeleteFunc(report.Findings, made), declared); len(findings) != 0 {
		t.Errorf("findings:\n%s\nwant none", join(findings))
	}
	if len(report.Objects) < len(files) {
		t.Errorf("%d objects in %d files; want one in each at least", len(report.Objects), len(files))
	}
}

// linesOf counts every line break of YAML, and one more, as errors at the end name the line after it.
func linesOf(text string) int {
	n := 2
	for _, lineBreak := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
		n += strings.Count(text, lineBreak)
	}
	return n
}

// Load the definitions before a fuzzer's time limit of one input begins.
func load(f *testing.F) {
	if _, err := definitions(); err != nil {
		f.Fatal(err)
	}
}

func FuzzFiles(f *testing.F) {
	load(f)
	f.Add(sound)
	for _, c := range refusals[:8] {
		f.Add(strings.Replace(sound, c.edits[0], c.edits[1], 1))
	}
	f.Add("a: &a [*a]")
	f.Add("apiVersion: vignette.dev/v1alpha1\nkind: Waveform\nmetadata: 7\nspec: {link: {rate: 1bit}}\n---\n- 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		report, err := Files([]string{Stdin}, strings.NewReader(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		lines := linesOf(text)
		for _, finding := range report.Findings {
			if finding.Line > lines || finding.Message == "" {
				t.Errorf("finding %+v in %d lines", finding, lines)
			}
			if said := strings.ReplaceAll(finding.Message, text, ""); ofLibraries.MatchString(said) && !ofLibraries.MatchString(text) {
				t.Errorf("finding in words of a library: %s", finding)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	load(f)
	f.Add(sound, "spec.nodes[veh].apps[1]")
	f.Add("a: &a [*a]", "a[0][0]")
	f.Add("a: {b: [1, {name: c}]}\n---\nx: 1", "a.b[c].name")
	f.Add("? [1]\n: 2", "[")
	f.Fuzz(func(t *testing.T, text, path string) {
		documents, findings := parse("file", []byte(text))
		for _, finding := range findings {
			if finding.Message == "" {
				t.Errorf("finding %+v without a message", finding)
			}
		}
		lines := linesOf(text)
		for _, d := range documents {
			if line := d.line(path); line < 1 || line > lines {
				t.Errorf("%q is in line %d of %d", path, line, lines)
			}
		}
	})
}

func TestAScenarioOrTemplateThatIsNotInTheFilesIsAWarningOnly(t *testing.T) {
	for name, c := range map[string]struct{ edits, path, own string }{
		"a scenario":           {"duration: 60s|duration: 60s\n  scenario: {ref: moves}", "spec.scenario.ref", "kind: Scenario\nmetadata: {name: moves}\nspec: {format: eel, compiled: \"sha256:" + strings.Repeat("a", 64) + "\"}\n"},
		"a template of a node": {"  - {name: mast,|  - {name: tank, runtime: vm, vm: {template: moves}, networks: [wan]}\n  - {name: mast,", "spec.nodes[2].vm.template", "kind: NodeTemplate\nmetadata: {name: moves}\nspec: {}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			before, after, _ := strings.Cut(c.edits, "|")
			text := strings.Replace(sound, before, after, 1)
			named := func(text string) (found []Finding) {
				for _, f := range Text("a.yaml", []byte(text)).Findings {
					if f.Path == c.path {
						found = append(found, f)
					}
				}
				return found
			}
			if found := named(text); len(found) != 1 || !found[0].Warning || !strings.Contains(found[0].Message, "moves is not among these objects: until the cluster has it, the experiment waits with Accepted=False") {
				t.Errorf("findings %v; want one warning", found)
			}
			if found := named(text + "---\napiVersion: vignette.dev/v1alpha1\n" + c.own); len(found) != 0 {
				t.Errorf("findings %v with the object in the same file; want none", found)
			}
		})
	}
}
