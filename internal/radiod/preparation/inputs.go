package preparation

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Inputs are the inputs of a network's environment.
type Inputs struct {
	// t0 is T0 by CLOCK_REALTIME; 0 if it is not set.
	t0      int64
	members []v1alpha1.Member
	byNEM   map[int]int // the members' indexes
	// heights of the members' antennas above the ground, in metres; jammers have commonHeight.
	heights      []float64
	commonHeight float64
	source       v1alpha1.PathlossSource
	// effects reports whether the scenario's comm effects are used instead of pathloss.
	effects  bool
	scenario *scenario.Scenario // nil for none
	// frequencyHertz at the network's start.
	frequencyHertz float64
	// fixedGains of the members' antennas in dBi as the network begins; nil where no member has an antenna profile.
	fixedGains []float64
	// changes with jammers and frequencies, and with fixed gains where they count, in order.
	changes []v1alpha1.TimedRadioChange
}

// InputsOf returns the inputs of a network's environment.
func InputsOf(spec *v1alpha1.RadioNetworkSpec, compiled *scenario.Scenario) *Inputs {
	physical := cmp.Or(spec.Waveform.PHY(), &v1alpha1.PHY{})
	s := &Inputs{effects: spec.CommEffects, members: spec.Members, byNEM: map[int]int{}, source: cmp.Or(physical.Pathloss, v1alpha1.PathlossScenario), scenario: compiled,
		frequencyHertz: physical.Frequency.Hertz(), commonHeight: physical.AntennaMetres(nil, "", "")}
	for i := range spec.Members {
		s.byNEM[int(spec.Members[i].NEM)] = i
		s.heights = append(s.heights, physical.AntennaMetres(spec.Radios, spec.Members[i].Node, spec.Members[i].Group))
	}
	s.fixedGains = fixedGainsOf(spec, compiled)
	if spec.T0 == nil {
		return s
	}
	s.t0 = spec.T0.UnixNano()
	for _, c := range spec.Changes {
		retunes := spec.Waveform.RFPipe != nil && c.Radio != nil && c.Radio.Frequency != nil
		regains := s.fixedGains != nil && c.Radio != nil && c.Radio.AntennaGain != nil
		if c.Jammer != nil || retunes || regains {
			s.changes = append(s.changes, c)
		}
	}
	slices.SortStableFunc(s.changes, func(a, b v1alpha1.TimedRadioChange) int { return cmp.Compare(a.AtNanoseconds, b.AtNanoseconds) })
	return s
}

// equal reports whether two inputs are equal.
func (s *Inputs) equal(other *Inputs) bool {
	return s.effects == other.effects && s.scenario == other.scenario && s.t0 == other.t0 && s.source == other.source && s.frequencyHertz == other.frequencyHertz &&
		slices.Equal(s.fixedGains, other.fixedGains) &&
		equality.Semantic.DeepEqual(s.members, other.members) && equality.Semantic.DeepEqual(s.changes, other.changes)
}

// index of the member with a NEM id, or -1.
func (s *Inputs) index(nem int) int {
	if i, ok := s.byNEM[nem]; ok {
		return i
	}
	return -1
}
