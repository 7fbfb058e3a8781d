package render

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// company has two radio networks of vehicles that a scenario moves, a third with positions, and a link.
const company = `
metadata: {name: company, namespace: team-nor, uid: 11111111-2222-3333-4444-555555555555}
spec:
  duration: 60s
  scenario: {ref: hills}
  networks:
  - name: vhf
    rfpipe: {phy: {frequency: 300MHz, bandwidth: 250kHz, transmitPower: 37dBm}, rate: 175kbit}
    subnet: 198.18.1.0/24
    radios: [{nodes: [hq, veh-2], transmitPower: 50W}]
    routing: {protocol: olsrv2, hello: 1s}
  - name: wide
    waveform: swiss
    engine: native
    subnet: 198.18.2.0/24
    routing: {protocol: static, routes: [{to: mast, via: hq}, {nodes: [veh], to: 198.18.4.0/24, via: hq}, {nodes: [veh-1], to: veh-3, via: veh-2}]}
  - name: mesh
    tdma: {phy: {pathloss: FreeSpace, bandwidth: 1MHz, frequency: 300MHz}, structure: {slotDuration: 5ms}, rate: 1Mbit}
    subnet: 198.18.3.0/24
  - name: lan
    link: {rate: 1Mbit}
    subnet: 198.18.4.0/24
    routing: {protocol: none}
  nodes:
  - {name: hq, networks: [vhf, wide, mesh, lan]}
  - {name: veh, count: 3, platforms: 12-14, networks: [vhf, wide]}
  - {name: mast, position: {latitude: "58.1", longitude: "7.9", altitude: 10m}, networks: [mesh, lan]}
  apps: [{name: hub, mosquitto: {}}]
  timeline:
  - {at: 5s, set: [{network: vhf, from: hq, radio: {transmit: false}}]}
  - {at: 9s, set: [{network: wide, jammer: {name: noise, power: 1W, pathloss: 90dB}}, {network: mesh, radio: {rate: 500kbit}}]}
`

var hills = Scenario{Name: "hills", Digest: "sha256:0123", Statistics: v1alpha1.ScenarioStatistics{
	Platforms: 15, PlatformNumbers: "1-14,20", Pathloss: true, Positions: true, Duration: "2h"}}

func companyOf(t *testing.T, text string) Input {
	t.Helper()
	e := &v1alpha1.Experiment{}
	if err := yaml.UnmarshalStrict([]byte(text), e); err != nil {
		t.Fatal(err)
	}
	expanded, errs := topology.Expand(&e.Spec)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	scenario := hills
	return Input{Experiment: e, Topology: expanded, Options: Options{Namespace: "vignette-system"}, Scenario: &scenario}
}

func companyWaveforms(in Input) map[string]v1alpha1.WaveformSpec {
	slots := int32(24)
	found := map[string]v1alpha1.WaveformSpec{"wide": {TDMA: &v1alpha1.TDMAModel{PHY: v1alpha1.PHY{Frequency: "300MHz", Bandwidth: "250kHz", SubID: 2},
		Structure: v1alpha1.TDMAStructure{Frames: 8, Slots: &slots, SlotDuration: "5ms", SlotOverhead: "3us"}, Rate: "1Mbit"}}}
	for _, network := range in.Experiment.Spec.Networks {
		if w, ok := InPlace(network); ok {
			found[network.Name] = w
		}
	}
	return found
}

func TestRadiosPlatformsAndRoutesMatchTheirGoldenFile(t *testing.T) {
	in := companyOf(t, company)
	known := companyWaveforms(in)
	if errs := CheckRadioModels(&in.Experiment.Spec, in.Topology, known, in.Scenario); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	var objects []any
	for _, n := range RadioNetworks(in, known, map[string]types.UID{}) {
		objects = append(objects, n)
	}
	checkGolden(t, "radionetworks-company", objects...)
	if p := Plan(in, known, nil).Scenario; p == nil || p.Digest != hills.Digest || p.Name != "hills" || p.Statistics.PlatformNumbers != "1-14,20" {
		t.Errorf("the run record has scenario %+v", p)
	}
}

func TestErrorsOfRadiosAreNamed(t *testing.T) {
	schedule := `<emane-tdma-schedule><structure frames='1' slots='2' slotoverhead='0' slotduration='1000' bandwidth='1000000'/>` +
		`<multiframe frequency='300000000' power='0' class='0' datarate='1000000'><frame index='0'><slot index='0' nodes='1'/><slot index='1' nodes='NEM'/></frame></multiframe></emane-tdma-schedule>`
	scheduleOf := func(nem string) string { return `schedule: "` + strings.ReplaceAll(schedule, "NEM", nem) + `", ` }
	hops := strings.Replace(schedule, "<slot index='1' nodes='NEM'/>", "<slot index='1' nodes='1'><tx frequency='310M'/></slot>", 1)
	const update = `<emane-tdma-schedule><multiframe><frame index='0'><slot index='0' nodes='1'><idle/></slot></frame></multiframe></emane-tdma-schedule>`
	for name, c := range map[string]struct {
		edits         []string
		change        func(*Scenario)
		path, message string
	}{
		"no scenario": {edits: []string{"  scenario: {ref: hills}\n", ""}, path: "spec.scenario", message: "network vhf takes its pathloss from a scenario"},
		"a scenario without pathloss": {change: func(s *Scenario) { s.Statistics.Pathloss = false }, path: "spec.scenario.ref",
			message: "has no pathloss, which network vhf needs"},
		"a scenario without positions": {change: func(s *Scenario) { s.Statistics.Positions = false }, path: "spec.nodes[0].platform", message: "scenario hills has none for node hq"},
		"a platform that is not there": {edits: []string{"12-14", "13-15"}, path: "spec.nodes[1].platforms", message: "platforms 1-14,20, and not 15, which is to carry node veh-3"},
		"a NEM id that is no platform": {edits: []string{"{name: hq,", "{name: hq, nem: 17,"}, path: "spec.nodes[0].platform", message: "not 17, the NEM id of node hq"},
		"a node that stands still in a scenario": {edits: []string{"networks: [mesh, lan]", "networks: [vhf]"}, path: "spec.nodes[2].position",
			message: "does not have it"},
		"a node that is nowhere": {edits: []string{", position: {latitude: \"58.1\", longitude: \"7.9\", altitude: 10m}", ", nem: 30"}, path: "spec.nodes[2].platform", message: "not 30"},
		"a latitude beyond the pole": {edits: []string{`"58.1"`, `"98.1"`}, path: "spec.nodes[2].position",
			message: "latitude"},
		"the same without radios": {edits: []string{`"58.1"`, `"98.1"`, "mast, position", "mast, networks: [lan], position", ", networks: [mesh, lan]}\n  apps", "}\n  apps"},
			path: "spec.nodes[2].position", message: "latitude"},
		"a PCR that is none":                  {edits: []string{"rate: 175kbit", "pcr: '<x/>'"}, path: "spec.networks[0].rfpipe.pcr", message: ""},
		"a bandwidth of nothing":              {edits: []string{"bandwidth: 250kHz", "bandwidth: 0Hz"}, path: "spec.networks[0].rfpipe.phy", message: "must be more than 0 Hz"},
		"a schedule with an unknown node":     {edits: []string{"structure: {slotDuration: 5ms}, ", scheduleOf("77")}, path: "spec.networks[2].tdma.schedule", message: "names NEM id 77, which no node of the network has: they have 1,5"},
		"too few slots":                       {edits: []string{"{slotDuration: 5ms}", "{slots: 1}"}, path: "spec.networks[2].tdma.structure", message: "NEM id 5 would never send"},
		"a slot of overhead":                  {edits: []string{"{slotDuration: 5ms}", "{slotDuration: 5ms, slotOverhead: 5ms}"}, path: "spec.networks[2].tdma.structure", message: "less than slotduration"},
		"a slot too short for a byte":         {edits: []string{"{slotDuration: 5ms}", "{slotDuration: 5us, slotOverhead: 0ms}"}, path: "spec.networks[2].tdma.structure", message: "carries no byte"},
		"a rate below a bit a second":         {edits: []string{"rate: 1Mbit", "rate: 0.5bit"}, path: "spec.networks[2].tdma.structure", message: "rate 0.5bit: want 1bit to 1000Gbit"},
		"radios of a node elsewhere":          {edits: []string{"[hq, veh-2]", "[hq, mast]"}, path: "spec.networks[0].radios[0].nodes[1]", message: `"mast" is not attached to network "vhf"`},
		"a route over a node elsewhere":       {edits: []string{"via: veh-2", "via: mast"}, path: "spec.networks[1].routing.routes[2].via", message: `"mast" is not attached to network "wide"`},
		"a route over nobody":                 {edits: []string{"via: veh-2", "via: ghost"}, path: "spec.networks[1].routing.routes[2].via", message: `no node "ghost"`},
		"a route to nowhere":                  {edits: []string{"to: veh-3", "to: ghost"}, path: "spec.networks[1].routing.routes[2].to", message: "want the name of a node"},
		"a default route":                     {edits: []string{"to: 198.18.4.0/24", "to: 0.0.0.0/0"}, path: "spec.networks[1].routing.routes[1].to", message: "eth0 has the default route"},
		"a route within the network":          {edits: []string{"to: 198.18.4.0/24", "to: 198.18.2.0/24"}, path: "spec.networks[1].routing.routes[1].to", message: "is the network's own subnet"},
		"a route of nobody":                   {edits: []string{"nodes: [veh-1]", "nodes: [mast]"}, path: "spec.networks[1].routing.routes[2].nodes[0]", message: "not attached"},
		"a link change of a radio":            {edits: []string{"radio: {transmit: false}", "link: {loss: 1%}"}, path: "spec.timeline[0].set[0].link", message: "is for the link model, and network vhf is rfpipe"},
		"a radio change of a link":            {edits: []string{"network: vhf, from: hq,", "network: lan,"}, path: "spec.timeline[0].set[0].radio", message: "is for rfpipe and tdma, and network lan is link"},
		"a schedule for RF pipe":              {edits: []string{"from: hq, radio: {transmit: false}", "schedule: x"}, path: "spec.timeline[0].set[0].schedule", message: "is for tdma"},
		"a frequency for TDMA":                {edits: []string{"radio: {rate: 500kbit}", "radio: {frequency: 1MHz}"}, path: "spec.timeline[1].set[1].radio.frequency", message: "schedule has its own"},
		"a schedule that cannot be":           {edits: []string{"radio: {rate: 500kbit}", "schedule: '<x/>'"}, path: "spec.timeline[1].set[1].schedule", message: ""},
		"a rate for some of a schedule":       {edits: []string{"{network: mesh, radio", "{network: mesh, from: hq, radio"}, path: "spec.timeline[1].set[1].radio.rate", message: "leave out from"},
		"a rate beside a schedule of its own": {edits: []string{"structure: {slotDuration: 5ms}, ", scheduleOf("5")}, path: "spec.timeline[1].set[1].radio.rate", message: "change the schedule"},
		"a rate after an update of a schedule": {edits: []string{"{network: mesh, radio", `{network: mesh, schedule: "` + update + `"}, {network: mesh, radio`},
			path: "spec.timeline[1].set[2].radio.rate", message: "is not a generated one"},
		"a node that hops in free space": {edits: []string{"structure: {slotDuration: 5ms}, ", `schedule: "` + hops + `", `}, path: "spec.networks[2].tdma.schedule",
			message: "NEM id 1 sends at 300 MHz and at 310 MHz, and pathloss FreeSpace is computed for one frequency of each node"},
		"a change by which a node hops": {edits: []string{"radio: {rate: 500kbit}", `schedule: "` + hops + `"`}, path: "spec.timeline[1].set[1].schedule", message: "NEM id 1 sends at 300 MHz and at 310 MHz"},
		"a half duplex pipe for EMANE": {edits: []string{"rate: 175kbit}", "rate: 175kbit, halfDuplex: true}\n    engine: emane"}, path: "spec.networks[0].engine",
			message: "rfpipe.halfDuplex: Invalid value: true: EMANE's RF Pipe is full duplex"},
		"a medium that a pipe of EMANE shares": {edits: []string{"rate: 175kbit}", "rate: 175kbit, interference: All}\n    engine: emane"}, path: "spec.networks[0].engine",
			message: "rfpipe.interference: Invalid value"},
		"a duty cycle for EMANE": {edits: []string{"rate: 175kbit}", "rate: 175kbit, dutyCycle: 1%}\n    engine: emane"}, path: "spec.networks[0].engine",
			message: "rfpipe.dutyCycle: Forbidden: EMANE's RF Pipe has no duty cycle"},
		"a duty cycle of nothing": {edits: []string{"rate: 175kbit}", "rate: 175kbit, dutyCycle: 0%}"}, path: "spec.networks[0].rfpipe.dutyCycle", message: "0% lets nobody send"},
		"a queue that EMANE does not have": {edits: []string{"rate: 175kbit}", "rate: 175kbit, queueDepth: 10}\n    engine: emane"}, path: "spec.networks[0].engine",
			message: "rfpipe.queueDepth: Invalid value: 10: EMANE's RF Pipe has a queue of 255 frames"},
		"antenna patterns that have no room with EMANE": {edits: []string{"engine: native", "engine: emane"}, path: "spec.networks[1].engine",
			change:  func(s *Scenario) { s.Statistics.AntennaProfiles, s.Statistics.AntennaFileBytes = "13", 1<<20 },
			message: "EMANE's files of 4 nodes with their antenna patterns have"},
		"fading without positions with EMANE": {edits: []string{"engine: native", "engine: emane"}, path: "spec.networks[1].engine",
			change:  func(s *Scenario) { s.Statistics.FadingSelections, s.Statistics.Positions = true, false },
			message: "EMANE fades signals between positions only, and scenario hills has none"},
		"an antenna on the ground": {edits: []string{"bandwidth: 250kHz", "antennaHeight: 0m"}, path: "spec.networks[0].rfpipe.phy", message: "must be more than 0 m"},
		"an antenna of its own on the ground": {edits: []string{"transmitPower: 50W", "antennaHeight: 0m"}, path: "spec.networks[0].radios[0].antennaHeight",
			message: "must be more than 0 m"},
		"a radio that a later entry sets again": {edits: []string{"transmitPower: 50W}]", "transmitPower: 50W}, {nodes: [veh], transmitPower: 5W}]"},
			path: "spec.networks[0].radios[0].nodes[1]", message: "its transmitPower has no effect, as radios[1] comes later and sets it again"},
		"links on a named radio": {edits: []string{"    engine: native\n", "    links: [{from: hq, to: veh}]\n"}, path: "spec.networks[1].links", message: "links are for the link model"},
	} {
		t.Run(name, func(t *testing.T) {
			text := company
			for i := 0; i < len(c.edits); i += 2 {
				if !strings.Contains(text, c.edits[i]) {
					t.Fatalf("there is no %q to edit", c.edits[i])
				}
				text = strings.Replace(text, c.edits[i], c.edits[i+1], 1)
			}
			in := companyOf(t, text)
			if c.change != nil {
				c.change(in.Scenario)
			}
			if in.Experiment.Spec.Scenario == nil {
				in.Scenario = nil
			}
			errs := CheckRadioModels(&in.Experiment.Spec, in.Topology, companyWaveforms(in), in.Scenario)
			for _, err := range errs {
				if err.Field == c.path && strings.Contains(err.Error(), c.message) {
					return
				}
			}
			t.Errorf("found %v\nwant %s: …%s…", errs, c.path, c.message)
		})
	}
}

func TestEverySettingOfARadioMayBeOverwritten(t *testing.T) {
	if fields := reflect.TypeFor[v1alpha1.Radio]().NumField(); len(radioSettings) != fields-1 {
		t.Errorf("radioSettings has %d; want all %d fields of Radio but nodes", len(radioSettings), fields-1)
	}
}

func TestRadiosOfFewerNodesMayFollowThoseOfMore(t *testing.T) {
	in := companyOf(t, strings.Replace(company, "radios: [{", "radios: [{nodes: [veh], transmitPower: 5W, antennaHeight: 2m}, {", 1))
	if errs := CheckRadioModels(&in.Experiment.Spec, in.Topology, companyWaveforms(in), in.Scenario); len(errs) > 0 {
		t.Error(errs)
	}
}

func TestAGainOfEMANEIsRefusedForNodesWithAntennaProfiles(t *testing.T) {
	for name, c := range map[string]struct{ engine, from, profiles, refused string }{
		"every node":            {"emane", "", "12", "node veh-1 has antenna profiles"},
		"the node itself":       {"emane", "from: veh-1, ", "12", "node veh-1 has antenna profiles"},
		"its group":             {"emane", "from: veh, ", "12", "node veh-1 has antenna profiles"},
		"another node":          {"emane", "from: hq, ", "12", ""},
		"no profiles":           {"emane", "", "", ""},
		"vignette's own engine": {"native", "", "12", ""},
	} {
		text := strings.Replace(company, "rate: 175kbit}", "rate: 175kbit}\n    engine: "+c.engine, 1)
		text = strings.Replace(text, "from: hq, radio: {transmit: false}", c.from+"radio: {antennaGain: 3dBi}", 1)
		in := companyOf(t, text)
		in.Scenario.Statistics.AntennaProfiles = c.profiles
		errs := CheckRadioModels(&in.Experiment.Spec, in.Topology, companyWaveforms(in), in.Scenario)
		if c.refused == "" && len(errs) > 0 || c.refused != "" && (len(errs) != 1 || errs[0].Field != "spec.timeline[0].set[0].radio.antennaGain" || !strings.Contains(errs[0].Error(), c.refused)) {
			t.Errorf("%s: found %v, want %q", name, errs, c.refused)
		}
	}
}

func TestNetworksOfEMANEHaveTheScenariosFadingAndOthersAWarning(t *testing.T) {
	in := companyOf(t, strings.Replace(company, "rate: 175kbit}", "rate: 175kbit}\n    engine: emane", 1))
	in.Scenario.Statistics.FadingSelections = true
	known := companyWaveforms(in)
	if errs := CheckRadioModels(&in.Experiment.Spec, in.Topology, known, in.Scenario); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
	for _, n := range RadioNetworks(in, known, map[string]types.UID{}) {
		if want := n.Spec.Network == "vhf"; n.Spec.FadingSelections != want {
			t.Errorf("%s has fading selections: %t, want %t", n.Spec.Network, n.Spec.FadingSelections, want)
		}
	}
	const why = ".engine: Invalid value: \"native\": scenario hills has fading selections, which only engine emane applies"
	said := fadingWarnings(&in.Experiment.Spec, known, in.Scenario)
	if len(said) != 2 || said[0].Error() != "spec.networks[1]"+why || said[1].Error() != "spec.networks[2]"+why {
		t.Errorf("warned of %v; want wide and mesh", said)
	}
	in.Scenario.Statistics.FadingSelections = false
	if said := fadingWarnings(&in.Experiment.Spec, known, in.Scenario); len(said) > 0 {
		t.Errorf("warned of %v without fading", said)
	}
}

func TestAntennaPatternsOfPlatformsElsewhereNeedNoRoom(t *testing.T) {
	in := companyOf(t, strings.Replace(company, "rate: 175kbit}", "rate: 175kbit}\n    engine: emane", 1))
	in.Scenario.Statistics.AntennaProfiles, in.Scenario.Statistics.AntennaFileBytes = "20", 1<<20
	if errs := CheckRadioModels(&in.Experiment.Spec, in.Topology, companyWaveforms(in), in.Scenario); len(errs) > 0 {
		t.Errorf("found %v; want none, as no node of the network is on platform 20", errs)
	}
}

func TestAnEngineThatIsNotInstalledIsNamed(t *testing.T) {
	in := companyOf(t, strings.Replace(company, "engine: native", "engine: emane", 1))
	errs := CheckEngine(&in.Experiment.Spec, in.Options)
	if len(errs) != 1 || errs[0].Field != "spec.networks[1].engine" || !strings.Contains(errs[0].Error(), "EMANE is not installed") {
		t.Errorf("found %v", errs)
	}
	in.Options.EMANEImage = "r/emane:1"
	if errs := CheckEngine(&in.Experiment.Spec, in.Options); len(errs) > 0 {
		t.Errorf("found %v where EMANE is installed", errs)
	}
}

func TestChangesWithoutAnEffectAreRefused(t *testing.T) {
	rate, delay := v1alpha1.DataRate("500kbit"), v1alpha1.Duration("20ms")
	pipe := &v1alpha1.WaveformSpec{RFPipe: &v1alpha1.RFPipeModel{Rate: "1Mbit"}}
	heard := &v1alpha1.WaveformSpec{RFPipe: &v1alpha1.RFPipeModel{Rate: "1Mbit", Interference: v1alpha1.InterferenceOutOfBand}}
	adaptive := &v1alpha1.WaveformSpec{TDMA: &v1alpha1.TDMAModel{Rate: "1Mbit", AdaptiveRates: []v1alpha1.TDMARate{{Rate: "1Mbit", SINR: "10dB"}}}}
	for name, c := range map[string]struct {
		waveform *v1alpha1.WaveformSpec
		change   v1alpha1.RadioChange
		message  string // empty if it has an effect
	}{
		"delay of one node":               {pipe, v1alpha1.RadioChange{From: "hq", Radio: &v1alpha1.RadioPatch{Delay: &delay}}, "radio.delay: Forbidden: delay and jitter are the same for all"},
		"delay of every node":             {pipe, v1alpha1.RadioChange{From: everyNode, Radio: &v1alpha1.RadioPatch{Delay: &delay}}, ""},
		"rate chosen by SINR":             {adaptive, v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{Rate: &rate}}, "radio.rate: Forbidden: the radios of network vhf choose"},
		"jammer that nobody hears":        {pipe, v1alpha1.RadioChange{Jammer: &v1alpha1.Jammer{Name: "j"}}, "jammer: Forbidden: network vhf counts no interference"},
		"end of a jammer":                 {pipe, v1alpha1.RadioChange{Jammer: &v1alpha1.Jammer{Name: "j", Off: true}}, ""},
		"jammer":                          {heard, v1alpha1.RadioChange{Jammer: &v1alpha1.Jammer{Name: "j"}}, ""},
		"radio without a physical layer":  {&v1alpha1.WaveformSpec{}, v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{Rate: &rate}}, "radio: Forbidden: is for rfpipe and tdma"},
		"jammer of slots, which count it": {adaptive, v1alpha1.RadioChange{Jammer: &v1alpha1.Jammer{Name: "j"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.change.Network = "vhf"
			errs := NewChangeable(c.waveform, []int{1, 2}).Change(c.change, field.NewPath("change"))
			if c.message == "" && len(errs) > 0 || c.message != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), c.message)) {
				t.Errorf("found %v, want %q", errs, c.message)
			}
		})
	}
}

func TestAppsLearnWhereTheirNodesPlatformIs(t *testing.T) {
	for name, c := range map[string]struct {
		node   string
		change func(*Scenario)
		want   *agentconfig.Position
	}{
		"the platform with the NEM id":  {node: "hq", want: &agentconfig.Position{Platform: 1, Log: true}},
		"a platform of the spec":        {node: "veh-2", want: &agentconfig.Position{Platform: 13, Log: true}},
		"a fixed node":                  {node: "mast", want: &agentconfig.Position{LatitudeDegrees: 58.1, LongitudeDegrees: 7.9, AltitudeMetres: 10, Log: true}},
		"a scenario with pathloss only": {node: "hq", change: func(s *Scenario) { s.Statistics.Positions = false }},
	} {
		t.Run(name, func(t *testing.T) {
			in := companyOf(t, company)
			if c.change != nil {
				c.change(in.Scenario)
			}
			for _, node := range in.Topology.Nodes {
				if node.Name != c.node {
					continue
				}
				if diff := cmp.Diff(c.want, agentPosition(in, node, v1alpha1.App{Name: IdleApp})); diff != "" {
					t.Errorf("position (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestOneAppOfANodeLogsItsPositionsAndOwnAppsHaveAFile(t *testing.T) {
	in := companyOf(t, company)
	node := in.Topology.Nodes[0]
	node.Apps = []string{"hub", "map"}
	own := v1alpha1.App{Name: "map", Image: "registry.example/map:1", Command: []string{"/map"}}
	for _, c := range []struct {
		app       v1alpha1.App
		file, log bool
	}{{in.Experiment.Spec.Apps[0], false, true}, {own, true, false}} {
		if p := agentPosition(in, node, c.app); p.File != c.file || p.Log != c.log {
			t.Errorf("app %s: file %v, log %v; want %v, %v", c.app.Name, p.File, p.Log, c.file, c.log)
		}
	}
}

func TestThePlanHasThePlatformsOfNodes(t *testing.T) {
	in := companyOf(t, company)
	found := map[string]int32{}
	for _, node := range Plan(in, companyWaveforms(in), nil).Nodes {
		if node.Platform != nil {
			found[node.Name] = *node.Platform
		}
	}
	if diff := cmp.Diff(map[string]int32{"hq": 1, "veh-1": 12, "veh-2": 13, "veh-3": 14}, found); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}
