package render

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestSlotsOfEMANEHaveOverheadForTheDistanceOfTheirNodes(t *testing.T) {
	place := func(latitude v1alpha1.Degrees) *v1alpha1.Position {
		return &v1alpha1.Position{Latitude: latitude, Longitude: "8", Altitude: "400m"}
	}
	for name, c := range map[string]struct {
		overhead v1alpha1.Duration
		pathloss v1alpha1.PathlossSource
		far      *v1alpha1.Position
		refused  string
		warned   string
	}{
		"5 km without overhead":  {"0ms", v1alpha1.PathlossFreeSpace, place("47.045"), "nodes hq and veh are 5.0 km apart, and EMANE drops bursts that fill their slots beyond 0.1 km", ""},
		"5 km with too little":   {"10us", v1alpha1.PathlossFreeSpace, place("47.045"), "beyond 2.7 km, by their propagation delay: want a slotOverhead of at least 18µs, or engine native", ""},
		"5 km with enough":       {"18us", v1alpha1.PathlossFreeSpace, place("47.045"), "", ""},
		"100 m without overhead": {"0ms", v1alpha1.PathlossTwoRay, place("47.0009"), "", ""},
		"pathloss of a scenario": {"0ms", v1alpha1.PathlossScenario, nil, "", ""},
		"a node that moves":      {"10us", v1alpha1.PathlossFreeSpace, nil, "", "beyond 2.7 km"},
	} {
		t.Run(name, func(t *testing.T) {
			n := v1alpha1.Network{Name: "vhf", Subnet: "198.18.1.0/24", Engine: v1alpha1.EngineEMANE, TDMA: &v1alpha1.TDMAModel{Rate: "1Mbit",
				PHY: v1alpha1.PHY{Pathloss: c.pathloss}, Structure: v1alpha1.TDMAStructure{SlotDuration: "10ms", SlotOverhead: c.overhead}}}
			spec := &v1alpha1.ExperimentSpec{Networks: []v1alpha1.Network{n}, Nodes: []v1alpha1.Node{
				{Name: "hq", Networks: []string{"vhf"}, Position: place("47.0")}, {Name: "veh", Networks: []string{"vhf"}, Position: c.far}}}
			expanded, errs := topology.Expand(spec)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			w, _ := InPlace(n)
			checker := &radioChecker{spec: spec, topology: expanded, reported: map[string]bool{}}
			for what, found := range map[string]struct {
				errs field.ErrorList
				want string
			}{"refused": {checker.checkEMANE(n, &w, field.NewPath("spec", "networks").Index(0)), c.refused},
				"warned": {slotReachWarnings(expanded, spec, map[string]v1alpha1.WaveformSpec{"vhf": w}), c.warned}} {
				if found.want == "" && len(found.errs) > 0 || found.want != "" && (len(found.errs) != 1 || !strings.Contains(found.errs[0].Error(), found.want)) {
					t.Errorf("%s: %v, want %q", what, found.errs, found.want)
				}
			}
		})
	}
}
