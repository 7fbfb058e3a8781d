package render

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// wantSaid fails the test unless the problems contain the wanted text. There are to be none where it is empty.
func wantSaid(t *testing.T, name string, problems field.ErrorList, want string) {
	t.Helper()
	said := problems.ToAggregate()
	if (said == nil) != (want == "") || said != nil && !strings.Contains(said.Error(), want) {
		t.Errorf("%s: it says %v; want %q", name, said, want)
	}
}

func TestProbablyUnintendedSettingsHaveWarnings(t *testing.T) {
	const tooLong = "spec.apps[0].publisher.lead: Invalid value: \"1m\": the app runs for "
	statistics := v1alpha1.ScenarioStatistics{Duration: "2h", PlatformNumbers: "1-4", Positions: true}
	withoutPositions := v1alpha1.ScenarioStatistics{Duration: "10m", PlatformNumbers: "1-4"}
	elsewhere := v1alpha1.ScenarioStatistics{Duration: "10m", PlatformNumbers: "5-9", Positions: true}
	for name, c := range map[string]struct {
		duration v1alpha1.Duration
		timeline []v1alpha1.TimelineEntry
		scenario *Scenario
		want     string
	}{
		"a lead within the run":        {"2m", nil, nil, ""},
		"a lead as long as the run":    {"1m", nil, nil, tooLong + "1m at most: it publishes nothing"},
		"a lead beyond the stop":       {"10m", []v1alpha1.TimelineEntry{{At: "5m", Start: []string{"bft"}}, {At: "5m30s", Stop: []string{"bft"}}}, nil, tooLong + "30s at most"},
		"a second start that is long":  {"10m", []v1alpha1.TimelineEntry{{At: "5m", Start: []string{"bft"}}, {At: "5m30s", Stop: []string{"bft"}}, {At: "6m", Start: []string{"bft"}}}, nil, ""},
		"a run without an end":         {"", nil, nil, ""},
		"a scenario that goes on":      {"2m", nil, &Scenario{Statistics: statistics}, "the scenario lasts until 2h, and the experiment ends at 2m"},
		"a made up one that goes on":   {"2m", nil, &Scenario{Statistics: statistics, Synthetic: true}, ""},
		"a scenario that ends":         {"3h", nil, &Scenario{Statistics: statistics, Synthetic: true}, "the scenario ends at 2h, and the experiment at 3h: nothing moves in between"},
		"a scenario that stands still": {"3h", nil, &Scenario{Statistics: v1alpha1.ScenarioStatistics{Duration: "0s", PlatformNumbers: "1", Positions: true}}, ""},
		"a scenario without positions": {"10m", nil, &Scenario{Name: "s", Statistics: withoutPositions},
			"spec.apps[0].publisher.payload: Invalid value: \"geojson\": bft reports made-up positions from 1 of its nodes, such as a: scenario s has no positions"},
		"a node without a platform": {"10m", nil, &Scenario{Name: "s", Statistics: elsewhere},
			"such as a: scenario s has the platforms 5-9, and not 1, the NEM id of node a"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &v1alpha1.ExperimentSpec{Duration: c.duration, Timeline: c.timeline, Scenario: &v1alpha1.ScenarioReference{Ref: "s"},
				Apps:  []v1alpha1.App{{Name: "bft", Publisher: &v1alpha1.Publisher{Protocol: "mqtt", Period: "1s", Lead: "1m"}}},
				Nodes: []v1alpha1.Node{{Name: "a", Apps: []string{"bft"}}}}
			expanded, errs := topology.Expand(spec)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			wantSaid(t, name, SpecWarnings(Input{Experiment: &v1alpha1.Experiment{Spec: *spec}, Topology: expanded}, nil, c.scenario), c.want)
		})
	}
}

func TestAPushOfMadeUpPositionsHasAWarning(t *testing.T) {
	scenario := &Scenario{Name: "s", Statistics: v1alpha1.ScenarioStatistics{PlatformNumbers: "2", Positions: true}}
	for name, c := range map[string]struct{ push, want string }{
		"by the default payload":        {"to: all", `spec.apps[0].messaging.push.payload: Invalid value: "geojson": bft reports made-up positions from 1 of its nodes, such as a: `},
		"by a named payload":            {"to: all, payload: nffi", `Invalid value: "nffi": bft reports made-up positions from 1 of its nodes, such as a: `},
		"by no payload with a position": {"to: all, payload: 'bytes:100'", ""},
		"by no node without a platform": {"to: all, from: [b]", ""},
		"by no node that only receives": {"to: a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(t, "[{name: bft, messaging: {transport: coap, push: {period: 1s, "+c.push+"}}}]", "[{name: a, networks: [lan], apps: [bft]}, {name: b, networks: [lan], apps: [bft]}]")
			said := madeUpPositions(in.Topology, &in.Experiment.Spec, scenario)
			if text := fmt.Sprint(said); (len(said) == 0) != (c.want == "") || !strings.Contains(text, c.want) {
				t.Errorf("it says %v; want %q", text, c.want)
			}
		})
	}
}

func TestAGatewayWithMoreClientsThanItServesHasAWarning(t *testing.T) {
	for name, c := range map[string]struct{ gateway, client, want string }{
		"so many":                   {"maxClients: 6", "publisher: {protocol: mqtt-sn, to: gw, period: 1s}", ""},
		"one more":                  {"maxClients: 5", "publisher: {protocol: mqtt-sn, to: gw, period: 1s}", "spec.apps[1].mqttsnGateway.maxClients: Invalid value: 5: the gateway on node a has 6 clients, and refuses those beyond: want 6 or more"},
		"subscribers":               {"maxClients: 5", "subscriber: {protocol: mqtt-sn, to: gw}", "has 6 clients"},
		"by default":                {"mode: Transparent", "publisher: {protocol: mqtt-sn, to: gw, period: 1s}", ""},
		"what does not connect":     {"maxClients: 5", "publisher: {protocol: mqtt-sn, qos: -1, to: gw, period: 1s}", ""},
		"clients of its own broker": {"maxClients: 5", "publisher: {protocol: mqtt, to: broker, period: 1s}", ""},
	} {
		in := inputOf(t, "[{name: broker, mosquitto: {}}, {name: gw, mqttsnGateway: {to: broker, "+c.gateway+"}}, {name: own, instances: 3, "+c.client+"}]",
			"[{name: a, networks: [lan], apps: [broker, gw, own]}, {name: b, networks: [lan], apps: [own]}]")
		wantSaid(t, name, gatewayWarnings(in), c.want)
	}
}

func TestWhatAScriptHasAfterTheStopHasAWarning(t *testing.T) {
	const messages = "messages: [{at: 1m, from: a, to: b}, {at: 12m, from: b, to: a}, {at: 13m, from: b, to: a}]"
	for name, c := range map[string]struct{ app, start, want string }{
		"messages within the run":  {"script: {protocol: mqtt, to: broker, " + messages + "}", "0s", ""},
		"messages after the stop":  {"script: {protocol: mqtt, to: broker, " + messages + "}", "2m", `spec.apps[1].script.messages: Invalid value: "13m": the app runs for 13m at most: 1 of 3 messages come after that, and are not sent`},
		"messages of a service":    {"messaging: {transport: coap, " + messages + "}", "4m", "spec.apps[1].messaging.messages: Invalid value: \"13m\": the app runs for 11m at most: 2 of 3 messages"},
		"a flow after the stop":    {`mgen: {script: "0.0 ON 1 UDP DST b/5000 PERIODIC [1 100]\n600.0 ON 2 UDP DST b/5000 PERIODIC [1 100]"}`, "5m", `spec.apps[1].mgen.script: Invalid value: "10m": the app runs for 10m at most: 1 of 2 flows`},
		"a flow that is cut short": {`mgen: {script: "0.0 ON 1 UDP DST b/5000 PERIODIC [1 100]\n900.0 OFF 1"}`, "5m", ""},
		"a pattern after its lead": {`publisher: {protocol: mqtt, to: broker, lead: 2m, pattern: {mgen: "540.0 ON 1 PERIODIC [1 100]"}}`, "5m", `spec.apps[1].publisher.pattern.mgen: Invalid value: "11m"`},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(t, "[{name: broker, mosquitto: {}}, {name: own, "+c.app+"}]", "[{name: a, networks: [lan], apps: [broker, own]}, {name: b, networks: [lan], apps: [own]}]")
			in.Experiment.Spec.Duration = "15m"
			in.Experiment.Spec.Timeline = []v1alpha1.TimelineEntry{{At: v1alpha1.Duration(c.start), Start: []string{"own"}}, {At: "15m", Stop: []string{"own"}}}
			wantSaid(t, name, SpecWarnings(in, nil, nil), c.want)
		})
	}
}

func TestACorrelationOfNothingHasAWarning(t *testing.T) {
	quarter := v1alpha1.Percent("25%")
	link := func(l v1alpha1.LinkModel) v1alpha1.Network { return v1alpha1.Network{Name: "wan", Link: &l} }
	for name, c := range map[string]struct {
		network v1alpha1.Network
		want    string
	}{
		"of jitter":        {link(v1alpha1.LinkModel{Jitter: "5ms", JitterCorrelation: &quarter}), ""},
		"of no jitter":     {link(v1alpha1.LinkModel{Jitter: "0ms", JitterCorrelation: &quarter}), `spec.networks[0].link.jitterCorrelation: Invalid value: "25%": there is no jitter that it could correlate: give jitter too, here or in a change`},
		"of losses":        {link(v1alpha1.LinkModel{Loss: "1%", LossCorrelation: &quarter}), ""},
		"of no losses":     {link(v1alpha1.LinkModel{LossCorrelation: &quarter}), "there is no loss that it could correlate"},
		"on one way":       {v1alpha1.Network{Links: []v1alpha1.GroupLink{{LinkModel: v1alpha1.LinkModel{LossCorrelation: &quarter}}}}, "spec.networks[0].links[0].lossCorrelation: "},
		"of comm effects'": {v1alpha1.Network{CommEffects: true, Link: &v1alpha1.LinkModel{JitterCorrelation: &quarter}}, ""},
	} {
		spec := &v1alpha1.ExperimentSpec{Networks: []v1alpha1.Network{c.network}}
		wantSaid(t, name, SpecWarnings(Input{Experiment: &v1alpha1.Experiment{Spec: *spec}, Topology: &topology.Topology{}}, nil, nil), c.want)
	}
	named := &v1alpha1.Experiment{Spec: v1alpha1.ExperimentSpec{Networks: []v1alpha1.Network{{Name: "wan", Waveform: "sat"}}}}
	sat := map[string]v1alpha1.WaveformSpec{"wan": {Link: &v1alpha1.LinkModel{JitterCorrelation: &quarter}}}
	wantSaid(t, "of a named waveform", SpecWarnings(Input{Experiment: named, Topology: &topology.Topology{}}, sat, nil),
		`spec.networks[0].waveform: Invalid value: "sat": its link.jitterCorrelation is 25%: there is no jitter that it could correlate: give jitter too, here or in a change`)
	later := v1alpha1.ExperimentSpec{Networks: []v1alpha1.Network{link(v1alpha1.LinkModel{LossCorrelation: &quarter})},
		Timeline: []v1alpha1.TimelineEntry{{At: "5s", Set: []v1alpha1.RadioChange{{Network: "wan", Link: &v1alpha1.LinkPatch{Loss: new(v1alpha1.Percent("1%"))}}}}}}
	wantSaid(t, "of losses that the timeline brings", SpecWarnings(Input{Experiment: &v1alpha1.Experiment{Spec: later}, Topology: &topology.Topology{}}, nil, nil), "")
}

func TestTheEndOfAJammerThatNothingStartedHasAWarning(t *testing.T) {
	jam := func(at v1alpha1.Duration, network string, jammer v1alpha1.Jammer) v1alpha1.TimelineEntry {
		return v1alpha1.TimelineEntry{At: at, Set: []v1alpha1.RadioChange{{Network: network, Jammer: &jammer}}}
	}
	noise, end := v1alpha1.Jammer{Name: "noise", Power: new(v1alpha1.Power("5W"))}, v1alpha1.Jammer{Name: "noise", Silent: true}
	for name, c := range map[string]struct {
		timeline []v1alpha1.TimelineEntry
		want     string
	}{
		"one that was started":    {[]v1alpha1.TimelineEntry{jam("3m", "vhf", end), jam("2m", "vhf", noise)}, ""},
		"a misspelt one":          {[]v1alpha1.TimelineEntry{jam("2m", "vhf", noise), jam("3m", "vhf", v1alpha1.Jammer{Name: "nosie", Silent: true})}, `spec.timeline[1].set[0].jammer.name: Invalid value: "nosie": network vhf has no jammer of this name by 3m: did you mean noise?`},
		"one of another network":  {[]v1alpha1.TimelineEntry{jam("2m", "hf", noise), jam("3m", "vhf", end)}, "network vhf has no jammer of this name by 3m: there is none"},
		"one that comes later on": {[]v1alpha1.TimelineEntry{jam("3m", "vhf", noise), jam("2m", "vhf", end)}, "network vhf has no jammer of this name by 2m: there is none"},
	} {
		wantSaid(t, name, jammerWarnings(&v1alpha1.ExperimentSpec{Timeline: c.timeline}), c.want)
	}
}

func TestAScenarioOfAnotherFrequencyHasAWarning(t *testing.T) {
	spec := &v1alpha1.ExperimentSpec{Networks: []v1alpha1.Network{{Name: "vhf"}}}
	for name, c := range map[string]struct {
		scenario, network v1alpha1.Frequency
		pathloss          v1alpha1.PathlossSource
		want              string
	}{
		"another":                     {"30MHz", "300MHz", "", "scenario field has the pathloss of 30MHz, and the network is at 300MHz: it is not converted"},
		"the same, written otherwise": {"0.3GHz", "300MHz", "", ""},
		"one next to it":              {"300MHz", "300.5MHz", v1alpha1.PathlossScenario, ""},
		"a recording":                 {"", "300MHz", "", ""},
		"the network's own pathloss":  {"30MHz", "300MHz", v1alpha1.PathlossFreeSpace, ""},
	} {
		waveforms := map[string]v1alpha1.WaveformSpec{"vhf": {RFPipe: &v1alpha1.RFPipeModel{PHY: v1alpha1.PHY{Frequency: c.network, Pathloss: c.pathloss}}}}
		wantSaid(t, name, frequencyWarnings(spec, waveforms, &Scenario{Name: "field", Frequency: c.scenario}), c.want)
	}
	slots := map[string]v1alpha1.WaveformSpec{"vhf": {TDMA: &v1alpha1.TDMAModel{PHY: v1alpha1.PHY{Frequency: "30MHz"}, Schedule: scheduleOf(1)}}}
	if said := frequencyWarnings(spec, slots, &Scenario{Name: "field", Frequency: "30MHz"}).ToAggregate(); said == nil || !strings.Contains(said.Error(), "the network is at 300MHz") {
		t.Errorf("a schedule at another frequency: it says %v; want 300 MHz, as the schedule has it", said)
	}
}
