package preparation

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"vignette.dev/vignette/internal/radiod/spectrum"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Inputs are the inputs of a network's environment.
type Inputs struct {
	// t0 is T0 by CLOCK_REALTIME; 0 if it is not set.
	t0 int64
	// members of the network, and behind them those of the other networks of its spectrum.
	members []v1alpha1.Member
	byNEM   map[int]int // the members' indexes
	// byNode numbers the nodes, which may be members of several networks; nodes are those of the members.
	byNode map[string]int
	nodes  []int
	// heights of the members' antennas above the ground, in metres; jammers have commonHeight.
	heights      []float64
	commonHeight float64
	source       v1alpha1.PathlossSource
	// effects reports whether the scenario's comm effects are used instead of pathloss.
	effects  bool
	scenario *scenario.Scenario // nil for none
	// startFrequencies of the members, Hz.
	startFrequencies []float64
	// fixedGains of the members' antennas in dBi as the network begins; nil where no member has an antenna profile.
	fixedGains []float64
	// changes with jammers and frequencies, and with fixed gains where they count, in order.
	changes []change
}

// change of some members: those from first up to end.
type change struct {
	v1alpha1.TimedRadioChange
	first, end int
}

// InputsOf returns the inputs of a network's environment, in which the other networks of its spectrum are too.
func InputsOf(spec *v1alpha1.RadioNetworkSpec, neighbours []spectrum.Neighbour, compiled *scenario.Scenario) *Inputs {
	physical := cmp.Or(spec.Waveform.PHY(), &v1alpha1.PHY{})
	s := &Inputs{effects: spec.CommEffects, byNEM: map[int]int{}, byNode: map[string]int{}, source: physical.PathlossFrom(),
		scenario: compiled, commonHeight: physical.AntennaMetres(nil, "", "")}
	if spec.T0 != nil {
		s.t0 = spec.T0.UnixNano()
	}
	profiled := hasProfile(spec, compiled) || slices.ContainsFunc(neighbours, func(n spectrum.Neighbour) bool { return hasProfile(&n.Spec, compiled) })
	s.add(spec, 0, true, profiled)
	for i := range neighbours {
		s.add(&neighbours[i].Spec, neighbours[i].Offset, false, profiled)
	}
	slices.SortStableFunc(s.changes, func(a, b change) int { return cmp.Compare(a.AtNanoseconds, b.AtNanoseconds) })
	return s
}

// add adds a network's members, with an offset of their NEM ids. Jammers disturb the own network. Fixed gains count where a
// member of any network has an antenna profile.
func (s *Inputs) add(spec *v1alpha1.RadioNetworkSpec, offset int, own, profiled bool) {
	physical, first := cmp.Or(spec.Waveform.PHY(), &v1alpha1.PHY{}), len(s.members)
	for _, m := range spec.Members {
		if _, known := s.byNode[m.Node]; !known {
			s.byNode[m.Node] = len(s.byNode)
		}
		s.nodes = append(s.nodes, s.byNode[m.Node])
		m.NEM += int32(offset) //nolint:gosec // the operator bounds it
		s.byNEM[int(m.NEM)] = len(s.members)
		s.members = append(s.members, m)
		s.heights = append(s.heights, physical.AntennaMetres(spec.Radios, m.Node, m.Group))
		s.startFrequencies = append(s.startFrequencies, physical.Frequency.Hertz())
	}
	if profiled {
		s.fixedGains = append(s.fixedGains, fixedGainsOf(spec)...)
	}
	if spec.T0 == nil {
		return
	}
	for _, c := range spec.Changes {
		retunes := spec.Waveform.RFPipe != nil && c.Radio != nil && c.Radio.Frequency != nil
		regains := profiled && c.Radio != nil && c.Radio.AntennaGain != nil
		if own && c.Jammer != nil || retunes || regains {
			s.changes = append(s.changes, change{c, first, len(s.members)})
		}
	}
}

// equal reports whether two inputs are equal.
func (s *Inputs) equal(other *Inputs) bool {
	return s.effects == other.effects && s.scenario == other.scenario && s.t0 == other.t0 && s.source == other.source && slices.Equal(s.startFrequencies, other.startFrequencies) &&
		slices.Equal(s.fixedGains, other.fixedGains) &&
		equality.Semantic.DeepEqual(s.members, other.members) && slices.EqualFunc(s.changes, other.changes, change.equal)
}

func (c change) equal(other change) bool {
	return c.first == other.first && c.end == other.end && equality.Semantic.DeepEqual(c.TimedRadioChange, other.TimedRadioChange)
}

// index of the member with a NEM id, or -1.
func (s *Inputs) index(nem int) int {
	if i, ok := s.byNEM[nem]; ok {
		return i
	}
	return -1
}
