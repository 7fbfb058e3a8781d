package preparation

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"vignette.dev/vignette/internal/linkbudget"
	"vignette.dev/vignette/internal/radio/tdma"
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
	// hops names a member that sends at several frequencies by its schedule; nil for none.
	hops error
}

// change of some members: those from first up to end.
type change struct {
	v1alpha1.TimedRadioChange
	first, end int
	// frequencies of these members by a new schedule, Hz; nil for none.
	frequencies []float64
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
	changes := slices.SortedStableFunc(slices.Values(spec.Changes), func(a, b v1alpha1.TimedRadioChange) int { return cmp.Compare(a.AtNanoseconds, b.AtNanoseconds) })
	scheduled := s.followSchedules(spec, changes, first)
	if profiled {
		s.fixedGains = append(s.fixedGains, fixedGainsOf(spec)...)
	}
	if spec.T0 == nil {
		return
	}
	for i, c := range changes {
		retunes := spec.Waveform.RFPipe != nil && c.Radio != nil && c.Radio.Frequency != nil
		regains := profiled && c.Radio != nil && c.Radio.AntennaGain != nil
		if own && c.Jammer != nil || retunes || regains || scheduled[i] != nil {
			s.changes = append(s.changes, change{c, first, len(s.members), scheduled[i]})
		}
	}
}

// followSchedules gives the members of a network, which begin at an index, the frequencies of its schedule, if it has one. It
// returns those of the schedules that begin with changes, by the changes' indexes.
func (s *Inputs) followSchedules(spec *v1alpha1.RadioNetworkSpec, changes []v1alpha1.TimedRadioChange, first int) map[int][]float64 {
	isSchedule := func(c v1alpha1.TimedRadioChange) bool { return c.Schedule != "" }
	if spec.Waveform.TDMA == nil || spec.Waveform.TDMA.Schedule == "" && !slices.ContainsFunc(changes, isSchedule) {
		return nil // generated schedules are at phy.frequency
	}
	begins, later, _ := linkbudget.Schedules(spec, changes) // waveforms.Network reports the error
	copy(s.startFrequencies[first:], s.frequenciesBy(begins, spec))
	scheduled := map[int][]float64{}
	for i := range changes {
		if isSchedule(changes[i]) {
			scheduled[i] = s.frequenciesBy(later[&changes[i].RadioChange], spec)
		}
	}
	return scheduled
}

// frequenciesBy returns the members' frequencies by a schedule of their network. It is nil without a schedule, and for a
// generated one.
func (s *Inputs) frequenciesBy(schedule *tdma.Schedule, spec *v1alpha1.RadioNetworkSpec) []float64 {
	if schedule == nil || schedule.Generated() {
		return nil
	}
	if err := schedule.CheckHops(); err != nil && s.hops == nil && spec.Engine != v1alpha1.EngineEMANE {
		s.hops = fmt.Errorf("schedule of %s: %w", spec.Network, err)
	}
	return linkbudget.Frequencies(spec, schedule)
}

// checkHops reports members that send at several frequencies where pathloss differs by frequency: a pair has one pathloss.
func (s *Inputs) checkHops() error {
	switch {
	case s.hops == nil:
		return nil
	case s.source != v1alpha1.PathlossScenario:
		return fmt.Errorf("%w, and pathloss %s is computed for one frequency of each node: want one, pathloss Scenario, or engine emane", s.hops, s.source)
	case s.scenario != nil && len(s.scenario.NewCursor().PathlossFrequencies()) > 0:
		return fmt.Errorf("%w, and the scenario has pathlosses by frequency: want one frequency for each node, or engine emane", s.hops)
	}
	return nil
}

// equal reports whether two inputs are equal.
func (s *Inputs) equal(other *Inputs) bool {
	return s.effects == other.effects && s.scenario == other.scenario && s.t0 == other.t0 && s.source == other.source && slices.Equal(s.startFrequencies, other.startFrequencies) &&
		slices.Equal(s.fixedGains, other.fixedGains) &&
		equality.Semantic.DeepEqual(s.members, other.members) && slices.EqualFunc(s.changes, other.changes, change.equal)
}

func (c change) equal(other change) bool {
	return c.first == other.first && c.end == other.end && slices.Equal(c.frequencies, other.frequencies) && equality.Semantic.DeepEqual(c.TimedRadioChange, other.TimedRadioChange)
}

// index of the member with a NEM id, or -1.
func (s *Inputs) index(nem int) int {
	if i, ok := s.byNEM[nem]; ok {
		return i
	}
	return -1
}
