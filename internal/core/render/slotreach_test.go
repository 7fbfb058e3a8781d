package render

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/scenariotest"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// slots is a network of EMANE with the nodes hq at 47.0 N and veh, whose slots have so much overhead.
func slots(overhead v1alpha1.Duration, pathloss v1alpha1.PathlossSource, veh *v1alpha1.Position) *v1alpha1.ExperimentSpec {
	return &v1alpha1.ExperimentSpec{Duration: "5m", Scenario: &v1alpha1.ScenarioReference{Ref: "leaving"},
		Networks: []v1alpha1.Network{{Name: "vhf", Subnet: "198.18.1.0/24", Engine: v1alpha1.EngineEMANE, TDMA: &v1alpha1.TDMAModel{Rate: "1Mbit",
			PHY: v1alpha1.PHY{Pathloss: pathloss}, Structure: v1alpha1.TDMAStructure{SlotDuration: "10ms", SlotOverhead: overhead}}}},
		Nodes: []v1alpha1.Node{{Name: "hq", Networks: []string{"vhf"}, Position: north("47.0")}, {Name: "veh", Networks: []string{"vhf"}, Position: veh, Platform: platformUnless(veh)}}}
}

func platformUnless(fixed *v1alpha1.Position) string {
	if fixed != nil {
		return ""
	}
	return "2"
}

func north(latitude v1alpha1.Degrees) *v1alpha1.Position {
	return &v1alpha1.Position{Latitude: latitude, Longitude: "8", Altitude: "400m"}
}

// judged returns what is wrong with the slots of a spec's networks, and what is doubtful.
func judged(t *testing.T, spec *v1alpha1.ExperimentSpec, s *Scenario, compiled *scenario.Scenario) (refused, warned field.ErrorList) {
	t.Helper()
	expanded, errs := topology.Expand(spec)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	waveforms := WaveformsOf(spec, nil)
	for _, r := range RoamingNetworks(spec, expanded, waveforms, s) {
		if compiled == nil {
			continue
		}
		far, err := r.Separation(t.Context(), compiled)
		if err != nil {
			t.Fatal(err)
		}
		s.Farthest = map[string]Separation{r.Network: far}
	}
	for _, err := range CheckRadioModels(spec, expanded, waveforms, s) {
		if err.Field == "spec.networks[0].engine" {
			refused = append(refused, err)
		}
	}
	return refused, slotReachWarnings(spec, expanded, waveforms, s)
}

func sameFindings(t *testing.T, what string, found field.ErrorList, want string) {
	t.Helper()
	if want == "" && len(found) > 0 || want != "" && (len(found) != 1 || !strings.Contains(found[0].Error(), want)) {
		t.Errorf("%s: %v, want %q", what, found, want)
	}
}

func TestSlotsOfEMANEHaveOverheadForTheDistanceOfFixedNodes(t *testing.T) {
	for name, c := range map[string]struct {
		overhead v1alpha1.Duration
		pathloss v1alpha1.PathlossSource
		far      *v1alpha1.Position
		refused  string
	}{
		"5 km without overhead":  {"0ms", v1alpha1.PathlossFreeSpace, north("47.045"), "nodes hq and veh are 5.0 km apart, and EMANE drops bursts that fill their slots beyond 0.1 km"},
		"5 km with too little":   {"10us", v1alpha1.PathlossFreeSpace, north("47.045"), "beyond 2.7 km, by their propagation delay: want a slotOverhead of at least 18µs, or engine native"},
		"5 km with enough":       {"18us", v1alpha1.PathlossFreeSpace, north("47.045"), ""},
		"100 m without overhead": {"0ms", v1alpha1.PathlossTwoRay, north("47.0009"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			refused, warned := judged(t, slots(c.overhead, c.pathloss, c.far), nil, nil)
			sameFindings(t, "refused", refused, c.refused)
			sameFindings(t, "warned", warned, "")
		})
	}
}

// shorter is a schedule of hq and veh with so much overhead in microseconds.
func shorter(overhead string) string {
	return `<emane-tdma-schedule><structure frames="1" slots="2" slotoverhead="` + overhead + `" slotduration="10000" bandwidth="1000000"/>
<multiframe frequency="300M" power="0" class="0" datarate="1M"><frame index="0"><slot index="0" nodes="1"/><slot index="1" nodes="2"/></frame></multiframe></emane-tdma-schedule>`
}

func TestSlotsOfALaterScheduleHaveOverheadForTheDistanceToo(t *testing.T) {
	const refusal = "nodes hq and veh are 5.0 km apart, and EMANE drops bursts that fill their slots beyond 0.1 km with a later schedule, by their propagation delay: want a slotOverhead of at least 18µs"
	for name, c := range map[string]struct{ overhead, refused string }{"without overhead": {"0", refusal}, "with enough": {"18", ""}} {
		t.Run(name, func(t *testing.T) {
			change, spec := v1alpha1.RadioChange{Network: "vhf", Schedule: shorter(c.overhead)}, slots("18us", v1alpha1.PathlossFreeSpace, north("47.045"))
			spec.Timeline = []v1alpha1.TimelineEntry{{At: "60s", Set: []v1alpha1.RadioChange{change}}}
			refused, warned := judged(t, spec, nil, nil)
			sameFindings(t, "refused", refused, c.refused)
			sameFindings(t, "warned", warned, "")
		})
	}
}

// leavingPlatform has platform 2, which drives to the north from 47.0 N: 1 km a minute.
func leavingPlatform(t *testing.T) *scenario.Scenario {
	t.Helper()
	b, home := scenario.NewBuilder(scenario.Options{}), geo.NewFrame(geo.Position{Latitude: 47, Longitude: 8, Altitude: 400})
	for minute := range 20 {
		if err := b.Position(time.Duration(minute)*time.Minute, 2, home.Position(geo.Vector{Y: 1000 * float64(minute)})); err != nil {
			t.Fatal(err)
		}
	}
	return scenariotest.Open(t, b)
}

func TestSlotsOfEMANEHaveOverheadForTheDistanceOfNodesThatMove(t *testing.T) {
	const refusal = "nodes veh and hq are 5.0 km apart at 5m, and EMANE drops bursts that fill their slots beyond 2.7 km, by their propagation delay: want a slotOverhead of at least 18µs"
	const doubt = "EMANE drops bursts that fill their slots beyond 2.7 km"
	aimed := v1alpha1.ScenarioStatistics{Duration: "19m", PlatformNumbers: "2", Positions: true, Pathloss: true, AntennaProfiles: "2", AntennaFileBytes: 100}
	fading := v1alpha1.ScenarioStatistics{Duration: "19m", PlatformNumbers: "2", Positions: true, Pathloss: true, FadingSelections: true}
	plain := v1alpha1.ScenarioStatistics{Duration: "19m", PlatformNumbers: "2", Positions: true, Pathloss: true}
	for name, c := range map[string]struct {
		overhead        v1alpha1.Duration
		pathloss        v1alpha1.PathlossSource
		statistics      *v1alpha1.ScenarioStatistics
		measured        bool
		refused, warned string
	}{
		"too little":                                {"10us", v1alpha1.PathlossFreeSpace, &plain, true, refusal, ""},
		"enough":                                    {"18us", v1alpha1.PathlossFreeSpace, &plain, true, "", ""},
		"distances that nobody measured":            {"10us", v1alpha1.PathlossFreeSpace, &plain, false, "", doubt},
		"an unknown scenario":                       {"10us", v1alpha1.PathlossFreeSpace, nil, false, "", doubt},
		"pathloss of a scenario":                    {"10us", v1alpha1.PathlossScenario, &plain, true, "", ""},
		"its pathloss and antenna profiles":         {"10us", v1alpha1.PathlossScenario, &aimed, true, refusal, ""},
		"its pathloss and fading":                   {"10us", v1alpha1.PathlossScenario, &fading, true, refusal, ""},
		"these with enough":                         {"18us", v1alpha1.PathlossScenario, &aimed, true, "", ""},
		"these with distances that nobody measured": {"10us", v1alpha1.PathlossScenario, &aimed, false, "", doubt},
		"pathloss of an unknown scenario":           {"10us", v1alpha1.PathlossScenario, nil, false, "", "if scenario leaving has antenna profiles or fading, " + doubt},
	} {
		t.Run(name, func(t *testing.T) {
			var s *Scenario
			var compiled *scenario.Scenario
			if c.statistics != nil {
				s = &Scenario{Name: "leaving", Statistics: *c.statistics}
			}
			if c.measured {
				compiled = leavingPlatform(t)
			}
			refused, warned := judged(t, slots(c.overhead, c.pathloss, nil), s, compiled)
			sameFindings(t, "refused", refused, c.refused)
			sameFindings(t, "warned", warned, c.warned)
		})
	}
}

func TestOnlyWhatTheRunHasOfAScenarioDecidesOnSlots(t *testing.T) {
	s := func() *Scenario {
		return &Scenario{Name: "leaving", Statistics: v1alpha1.ScenarioStatistics{Duration: "19m", PlatformNumbers: "2", Positions: true}}
	}
	spec := slots("10us", v1alpha1.PathlossFreeSpace, nil)
	for name, c := range map[string]struct {
		duration, drain v1alpha1.Duration
		refused         string
	}{
		"a short run":    {"2m", "", ""},
		"its long drain": {"2m", "3m", "are 5.0 km apart at 5m"},
		"a live cluster": {"", "", "are 19.0 km apart at 19m"},
	} {
		t.Run(name, func(t *testing.T) {
			spec.Duration, spec.Drain.Max = c.duration, c.drain
			refused, _ := judged(t, spec, s(), leavingPlatform(t))
			sameFindings(t, "refused", refused, c.refused)
		})
	}
}
