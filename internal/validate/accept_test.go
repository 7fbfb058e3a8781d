package validate

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/routing"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestWhatTheOperatorWouldNotAcceptIsRefusedWithItsLine(t *testing.T) {
	text := `apiVersion: vignette.dev/v1alpha1
kind: Experiment
metadata: {name: apart}
spec:
  duration: 1m
  networks:
  - {name: wan, waveform: baseline, subnet: 198.18.0.0/24}
  - {name: lan, waveform: baseline, subnet: 198.18.1.0/24}
  apps:
  - {name: hub, mosquitto: {}}
  - name: bft
    publisher: {protocol: mqtt, to: hub, period: 2s}
  nodes:
  - {name: a, networks: [wan], apps: [hub]}
  - {name: b, networks: [lan], apps: [bft]}
`
	findings := judgeText(t, text)
	if len(findings) != 1 || findings[0].Warning || findings[0].Line != 12 || findings[0].Path != "spec.apps[1].publisher.to" ||
		!strings.Contains(findings[0].Message, "node b has no network in common with the broker's node a") {
		t.Errorf("findings:\n%s\nwant one about bft's broker", join(findings))
	}
	if together := judgeText(t, strings.Replace(text, "networks: [lan]", "networks: [lan, wan]", 1)); len(together) != 0 {
		t.Errorf("findings:\n%s\nwant none once they share a network", join(together))
	}
}

func TestWhatOnlyTheOperatorSeesOfRadiosIsSaidWithItsLine(t *testing.T) {
	text := `apiVersion: vignette.dev/v1alpha1
kind: Experiment
metadata: {name: cells}
spec:
  networks:
  - name: cell
    waveform: mast
    base: [bs]
    subnet: 198.18.0.0/24
  - {name: lan, waveform: baseline, subnet: 198.18.1.0/24}
  apps:
  - {name: hub, mosquitto: {}}
  nodes:
  - {name: bs, networks: [cell], apps: [hub]}
  - {name: ue, count: 2, networks: [cell]}
  - {name: hq, networks: [lan]}
  timeline:
  - at: 5s
    set:
    - {network: cell, from: bs, to: ue, link: {loss: 5%}}
  collect:
    captures: [cell/ue, lan]
    captureFilter: udp port 698
    captureLimit: 1Gi
---
apiVersion: vignette.dev/v1alpha1
kind: Waveform
metadata: {name: mast}
spec: {link: {rate: 1Mbit}, downlink: {rate: 8Mbit}}
---
apiVersion: vignette.dev/v1alpha1
kind: Capture
metadata: {name: film}
spec:
  experiment: cells
  network: cell
  filter: udp port 698
`
	if findings := judgeText(t, text); len(findings) != 0 {
		t.Fatalf("findings:\n%s\nwant none", join(findings))
	}
	for name, c := range map[string]struct {
		old, with, path string
		line            int
		message         string
	}{
		"a downlink without a base":     {"base: [bs]", "mtu: 1500", "spec.networks[0].base", 6, "waveform mast has a downlink"},
		"a base without a downlink":     {", downlink: {rate: 8Mbit}", "", "spec.networks[0].base", 8, "waveform mast has no downlink"},
		"a base that is not attached":   {"base: [bs]", "base: [hq]", "spec.networks[0].base[0]", 8, `"hq" is not attached to network "cell"`},
		"a link from a node elsewhere":  {"lan, waveform: baseline", "lan, links: [{from: bs, to: hq}], waveform: baseline", "spec.networks[1].links[0].from", 10, `"bs" is not attached to network "lan"`},
		"a change of a node elsewhere":  {"from: bs", "from: hq", "spec.timeline[0].set[0].from", 20, `"hq" is not attached to network "cell"`},
		"a capture of a node elsewhere": {"cell/ue", "cell/hq", "spec.collect.captures[0]", 22, `"hq" is not attached to network "cell"`},
		"a filter that is none":         {"captureFilter: udp port 698", "captureFilter: udp prot 698", "spec.collect.captureFilter", 23, `"udp prot 698"`},
		"a limit below one byte":        {"captureLimit: 1Gi", "captureLimit: 256m", "spec.collect.captureLimit", 24, "must be whole bytes"},
		"a limit of nothing":            {"captureLimit: 1Gi", "captureLimit: 0", "spec.collect.captureLimit", 24, "above zero"},
		"a Capture for 0s":              {"  filter: udp port 698", "  duration: 0s", "spec.duration", 37, "must be above zero, such as 5m, or be left out"},
		"a filter of a Capture":         {"  filter: udp port 698", "  filter: udp prot 698", "spec.filter", 37, " (the cluster takes this, but nothing would be captured)"},
	} {
		t.Run(name, func(t *testing.T) {
			findings := judgeText(t, strings.Replace(text, c.old, c.with, 1))
			if len(findings) != 1 || findings[0].Warning || findings[0].Line != c.line || findings[0].Path != c.path || !strings.Contains(findings[0].Message, c.message) {
				t.Errorf("findings:\n%s\nwant one in line %d about %s: …%s…", join(findings), c.line, c.path, c.message)
			}
		})
	}
}

func TestAClientOfABrokerThatDoesNotSpeakItsProtocolIsToldWhatDoes(t *testing.T) {
	text := `apiVersion: vignette.dev/v1alpha1
kind: Experiment
metadata: {name: sensors}
spec:
  duration: 1m
  networks: [{name: wan, waveform: baseline, subnet: 198.18.0.0/24}]
  apps:
  - {name: b, mosquitto: {}}
  - {name: p, publisher: {protocol: %s, to: b, period: 1s}}
  nodes: [{name: hq, networks: [wan], apps: [b]}, {name: s, networks: [wan], apps: [p]}]
`
	for protocol, want := range map[string]string{"kafka": "app b does not speak kafka", "mqtt-sn": "app b does not speak mqtt-sn: want an app with mqttsnGateway", "xmpp": "app b does not speak xmpp: want an app with prosody"} {
		findings := judgeText(t, fmt.Sprintf(text, protocol))
		if !slices.ContainsFunc(findings, func(f Finding) bool { return f.Message == want }) {
			t.Errorf("findings:\n%s\nwant one: %s", join(findings), want)
		}
	}
}

func TestWhatIsWrongWithScriptsIsSaidWithItsLine(t *testing.T) {
	text := `apiVersion: vignette.dev/v1alpha1
kind: Experiment
metadata: {name: scripts}
spec:
  duration: 1m
  networks:
  - {name: wan, waveform: baseline, subnet: 198.18.0.0/24}
  apps:
  - name: flows
    mgen:
      script: |
        0.0 LISTEN UDP 5000
        1.0 ON 1 UDP DTS b/5000 PERIODIC [20 200]
  - {name: sink, mgen: {configMap: {name: scripts, key: sink.mgn}}}
  nodes:
  - {name: a, networks: [wan], apps: [flows]}
  - {name: b, networks: [wan], apps: [sink]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: scripts}
data:
  sink.mgn: "0.0 LISTEN UPD 5000"
`
	findings := judgeText(t, text)
	if len(findings) != 3 || findings[0].Line != 11 || !strings.Contains(findings[0].Message, `"1.0 ON 1 UDP DTS b/5000 PERIODIC [20 200]": line 2: ON: "DTS" is no option of a flow`) ||
		findings[1].Line != 14 || findings[1].Path != "spec.apps[1].mgen.configMap" || !strings.Contains(findings[1].Message, `line 1: LISTEN: protocol "UPD": want UDP or TCP`) {
		t.Errorf("findings:\n%s\nwant one about each script, and that the ConfigMap itself is not checked", join(findings))
	}
	sound := judgeText(t, strings.NewReplacer("DTS", "DST", "UPD", "UDP").Replace(text))
	if len(sound) != 1 {
		t.Errorf("findings:\n%s\nwant none about sound scripts", join(sound))
	}
}

// ofOthers are objects of every kind whose errors depend only on their own contents.
var ofOthers = []struct{ name, kind, spec, path, message string }{
	{"a curve that is none", "Waveform", "{rfpipe: {pcr: x}}", "spec.rfpipe.pcr", "want elements only"},
	{"a slot that carries nothing", "Waveform", "{tdma: {structure: {slotDuration: 5ms, slotOverhead: 5ms}}}", "spec.tdma.structure", "slotoverhead"},
	{"a schedule that is none", "Waveform", "{tdma: {schedule: <x/>}}", "spec.tdma.schedule", "emane-tdma-schedule"},
	{"a schedule by hand that is none", "LiveChange", "{experiment: e, changes: [{network: vhf, schedule: <x/>}]}", "spec.changes[0].schedule", "emane-tdma-schedule"},
	{"losses correlated twice", "Waveform", "{link: {lossCorrelation: 25%, gilbertElliott: {goodToBad: 1%, badToGood: 9%}}}", "spec.link.lossCorrelation", "gilbertElliott has bursts of its own"},
	{"losses correlated twice downwards", "Waveform", "{link: {}, downlink: {lossCorrelation: 25%, gilbertElliott: {goodToBad: 1%, badToGood: 9%}}}", "spec.downlink.lossCorrelation", "gilbertElliott has bursts of its own"},
	{"losses correlated twice by hand", "LiveChange", "{experiment: e, changes: [{network: wan, link: {lossCorrelation: 25%, gilbertElliott: {goodToBad: 1%, badToGood: 9%}}}]}", "spec.changes[0].link.lossCorrelation", "gilbertElliott has bursts of its own"},
	{"a jammer beyond the pole", "LiveChange", "{experiment: e, changes: [{network: vhf, jammer: {name: j, power: 1W, position: {latitude: '91', longitude: '8'}}}]}", "spec.changes[0].jammer.position", "91"},
	{"no frequency", "Scenario", "{format: synthetic, synthetic: {pattern: Line}, propagation: {model: FreeSpace, frequency: 0MHz}}", "spec.propagation.frequency", "above zero"},
	{"a spacing backwards", "Scenario", "{format: synthetic, synthetic: {pattern: Line, spacing: -5m}}", "spec.synthetic.spacing", "above zero"},
	{"a spacing of nothing", "Scenario", "{format: synthetic, synthetic: {pattern: Line, spacing: 0.0km}}", "spec.synthetic.spacing", "above zero"},
	{"a spacing too wide", "Scenario", "{format: synthetic, synthetic: {pattern: Line, spacing: 101km}}", "spec", "at most 100 km"},
	{"no duration", "Scenario", "{format: synthetic, synthetic: {pattern: Line, duration: 0s}}", "spec.synthetic.duration", "above zero"},
	{"a battalion of one company", "Scenario", "{format: synthetic, synthetic: {pattern: AnglovaLikeBattalion}}", "spec.synthetic.platforms", "243 for all"},
	{"a battalion and more", "Scenario", "{format: synthetic, synthetic: {pattern: AnglovaLikeBattalion, platforms: 244}}", "spec.synthetic.platforms", "243 for all"},
	{"a duration of years", "Scenario", "{format: synthetic, synthetic: {pattern: Line, duration: 9000h}}", "spec", "at most 8784h"},
	{"two terrains", "Scenario", "{format: synthetic, synthetic: {pattern: Line}, propagation: {model: Diffraction, frequency: 1MHz, syntheticTerrain: 1, terrain: {configMap: a, key: b}}}", "spec.propagation.syntheticTerrain", "exclude each other"},
	{"antennas in the ground", "Scenario", "{format: synthetic, synthetic: {pattern: Line}, propagation: {model: TwoRay, frequency: 1MHz, antennaHeight: 0m}}", "spec.propagation.antennaHeight", "above zero"},
	{"antenna profiles of tracks", "Scenario", "{format: csv, source: {configMap: a, key: b}, antennaProfiles: {configMap: a, key: c}}", "spec.antennaProfiles", "for format eel"},
	{"antenna profiles of a platform", "Scenario", "{format: eel, source: {configMap: a, key: b}, antennaProfiles: {configMap: a, key: c, platform: 1}}", "spec.antennaProfiles", "moves no platform"},
	{"a negative deviation", "Scenario", "{format: synthetic, synthetic: {pattern: Line}, propagation: {model: LogDistance, frequency: 1MHz, shadowing: -3dB}}", "spec.propagation.shadowing", "negative"},
}

func TestWhatOneObjectAloneDecidesIsRefused(t *testing.T) {
	for _, c := range ofOthers {
		t.Run(c.name, func(t *testing.T) {
			findings := judgeText(t, "apiVersion: vignette.dev/v1alpha1\nkind: "+c.kind+"\nmetadata: {name: a}\nspec: "+c.spec+"\n")
			if len(findings) != 1 || findings[0].Warning || findings[0].Path != c.path || !strings.Contains(findings[0].Message, c.message) {
				t.Errorf("findings:\n%s\nwant one about %s: …%s…", join(findings), c.path, c.message)
			}
		})
	}
}

func TestLossesCorrelatedTwiceAreRefusedInAnExperiment(t *testing.T) {
	const twice = "lossCorrelation: 25%, gilbertElliott: {goodToBad: 1%, badToGood: 9%}"
	for path, edit := range map[string][2]string{
		"spec.networks[1].link.lossCorrelation":        {"delay: 5ms, loss: 0.5%", "delay: 5ms, " + twice},
		"spec.networks[1].links[0].lossCorrelation":    {"    link: {rate: 2Mbit", "    links: [{from: veh, to: mast, " + twice + "}]\n    link: {rate: 2Mbit"},
		"spec.timeline[2].set[0].link.lossCorrelation": {"link: {loss: 10%}", "link: {" + twice + "}"},
	} {
		findings := judgeText(t, strings.Replace(sound, edit[0], edit[1], 1))
		if len(findings) != 1 || findings[0].Warning || findings[0].Path != path || !strings.Contains(findings[0].Message, "gilbertElliott has bursts of its own") {
			t.Errorf("findings:\n%s\nwant one about %s", join(findings), path)
		}
	}
}

func TestCommEffectsWantAScenarioAndTheLinkModelAndEachPairApart(t *testing.T) {
	text := `apiVersion: vignette.dev/v1alpha1
kind: Experiment
metadata: {name: effects}
spec:
  duration: 1m
  scenario: {ref: lab}
  networks:
  - {name: wan, waveform: baseline, subnet: 198.18.0.0/24, commEffects: true}
  apps: [{name: hub, mosquitto: {}}]
  nodes:
  - {name: a, networks: [wan], apps: [hub]}
  - {name: b, networks: [wan]}
  timeline:
  - {at: 10s, set: [{network: wan, link: {limit: 5}}]}
---
apiVersion: vignette.dev/v1alpha1
kind: Scenario
metadata: {name: lab}
spec: {format: synthetic, synthetic: {pattern: Line, platforms: 2}}
`
	for name, c := range map[string]struct{ old, with, want string }{
		"as they are":            {"1m", "1m", ""},
		"no scenario":            {"  scenario: {ref: lab}\n", "", "spec.scenario: network wan takes comm effects from a scenario: name one"},
		"links of some":          {"commEffects: true", "commEffects: true, links: [{from: a, to: b}]", "spec.networks[0].links: with commEffects each pair of nodes has a link of its own"},
		"a radio in place":       {"waveform: baseline", "rfpipe: {}", "spec.networks[0].commEffects: is for the link model"},
		"a radio by name":        {"waveform: baseline", "waveform: rfpipe-wideband", "spec.networks[0].commEffects: comm effects are for the link model, and waveform rfpipe-wideband is rfpipe"},
		"a change of some links": {"network: wan, link", "network: wan, from: a, link", "network wan has commEffects, by which each pair of nodes has a link of its own: leave out from and to"},
	} {
		findings := judgeText(t, strings.Replace(text, c.old, c.with, 1))
		if got := join(findings); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: findings:\n%s\nwant %q", name, got, c.want)
		}
	}
}

func TestAnUpdateOfAScheduleByHandIsLeftToTheRun(t *testing.T) {
	update := "<emane-tdma-schedule><multiframe><frame index='0'><slot index='0' nodes='1'/></frame></multiframe></emane-tdma-schedule>"
	if findings := judgeText(t, "apiVersion: vignette.dev/v1alpha1\nkind: LiveChange\nmetadata: {name: a}\nspec: {experiment: e, changes: [{network: vhf, schedule: \""+update+"\"}]}\n"); len(findings) != 0 {
		t.Errorf("findings:\n%s\nwant none", join(findings))
	}
}

func TestAScheduleWithADestinationThatIsNoNodeIsRefused(t *testing.T) {
	for destination, refused := range map[string]bool{"2": false, "65535": false, "7": true} {
		schedule := "<emane-tdma-schedule><structure frames='1' slots='2' slotduration='5000' slotoverhead='0' bandwidth='1M'/><multiframe frequency='300M' power='0' class='0' datarate='1M'>" +
			"<frame index='0'><slot index='0' nodes='1'><tx destination='" + destination + "'/></slot><slot index='1' nodes='2'/></frame></multiframe></emane-tdma-schedule>"
		text := "apiVersion: vignette.dev/v1alpha1\nkind: Experiment\nmetadata: {name: a}\nspec:\n  networks:\n  - name: vhf\n    subnet: 198.18.0.0/24\n    tdma: {phy: {pathloss: FreeSpace}, schedule: \"" + schedule +
			"\"}\n  apps: [{name: hub, mosquitto: {}}]\n  nodes:\n  - {name: a, networks: [vhf], apps: [hub], position: {latitude: '58', longitude: '8'}}\n  - {name: b, networks: [vhf], position: {latitude: '58', longitude: '8.1'}}\n"
		findings := join(judgeText(t, text))
		if refused != strings.Contains(findings, "spec.networks[0].tdma.schedule: the schedule has a slot for destination NEM id 7") || !refused && findings != "" {
			t.Errorf("destination %s: findings:\n%s\nrefused should be %v", destination, findings, refused)
		}
	}
}

// TestRoutingThatIsValidStarts draws timers, and checks the valid ones with the router's own check.
func TestRoutingThatIsValidStarts(t *testing.T) {
	random := rand.New(rand.NewPCG(28, 6))
	durations := []string{"", "0s", "1ms", "10ms", "1s", "2s", "2.5s", "5s", "20s", "20m", "1322s", "1323s", "3968s", "3969s", "8h", "9h", "24h", "25h", "abc"}
	valid := 0
	for range 300 {
		d := func(name string) (*v1alpha1.Duration, string) {
			text := durations[random.IntN(len(durations))]
			if text == "" {
				return nil, ""
			}
			return (*v1alpha1.Duration)(&text), ", " + name + ": " + text
		}
		r := v1alpha1.Routing{Protocol: []v1alpha1.RoutingProtocol{v1alpha1.RoutingOLSRv1, v1alpha1.RoutingOLSRv2}[random.IntN(2)]}
		var hello, helloValidity, tc, tcValidity string
		r.Hello, hello = d("hello")
		r.HelloValidity, helloValidity = d("helloValidity")
		r.TC, tc = d("tc")
		r.TCValidity, tcValidity = d("tcValidity")
		text := strings.Replace(sound, "link: {rate: 2Mbit", "routing: {protocol: "+string(r.Protocol)+hello+helloValidity+tc+tcValidity+"}\n    link: {rate: 2Mbit", 1)
		if len(judgeText(t, text)) > 0 {
			continue
		}
		valid++
		var i routing.Interface
		i.SetTimes(&r)
		i.Address, i.MTU = netip.MustParsePrefix("198.18.0.1/24"), 1500
		router := routing.Config{Protocol: r.Protocol, Interfaces: []routing.Interface{i}}
		if err := router.Check(); err != nil {
			t.Errorf("%s%s is valid, but the router says %v", r.Protocol, hello+helloValidity+tc+tcValidity, err)
		}
	}
	if valid < 20 {
		t.Errorf("%d of 300 are valid: want more, to tell anything", valid)
	}
}
