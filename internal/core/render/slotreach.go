package render

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Separation is the greatest distance between two nodes of a network in a run.
type Separation struct {
	Metres  float64
	Between [2]string
	// At is when they first are so far apart.
	At time.Duration
}

// Roaming are the members of a TDMA network of EMANE's whose distances decide on its slots, of which some move.
type Roaming struct {
	Network string
	// Platforms carry the first of the nodes, and the others are at the fixed positions.
	Nodes     []string
	Platforms []int
	Fixed     []geo.Position
	// Until is the end of the run.
	Until time.Duration
}

// Separation returns the members' greatest distance, from the compiled scenario.
func (r *Roaming) Separation(ctx context.Context, compiled *scenario.Scenario) (Separation, error) {
	far, err := compiled.Farthest(ctx, r.Platforms, r.Fixed, r.Until)
	if err != nil || far.Metres == 0 {
		return Separation{}, err
	}
	return Separation{Metres: far.Metres, Between: [2]string{r.Nodes[far.A], r.Nodes[far.B]}, At: far.At}, nil
}

// RoamingNetworks returns the networks for which Scenario.Farthest is needed.
func RoamingNetworks(spec *v1alpha1.ExperimentSpec, t *topology.Topology, waveforms map[string]v1alpha1.WaveformSpec, s *Scenario) (found []Roaming) {
	for _, n := range slottedNetworks(spec, t, waveforms, s) {
		if len(n.Platforms) > 0 {
			found = append(found, n.Roaming)
		}
	}
	return found
}

// slottedNetwork is a TDMA network of EMANE's that drops bursts which fill their slots, if they come from farther than its reach:
// EMANE adds propagation delays where it computes pathlosses or gains from positions.
type slottedNetwork struct {
	Roaming
	reach float64
	// changed is whether the reach is that of a later schedule.
	changed bool
	engine  v1alpha1.Engine
	path    *field.Path
	// ifPlaced is whether EMANE does so only if the scenario, which is not known, has antenna profiles or fading.
	ifPlaced bool
	// unplaced is whether a member moves by a scenario that is not known.
	unplaced bool
}

func slottedNetworks(spec *v1alpha1.ExperimentSpec, t *topology.Topology, waveforms map[string]v1alpha1.WaveformSpec, s *Scenario) (found []slottedNetwork) {
	for i, network := range spec.Networks {
		waveform, known := waveforms[network.Name]
		if !known || network.Engine != v1alpha1.EngineEMANE {
			continue
		}
		n := slottedNetwork{engine: network.Engine, path: field.NewPath("spec", "networks").Index(i)}
		n.Network, n.Until = network.Name, untilOf(spec, s)
		nodes := attached(t, network.Name, everyNode)
		rendered, antennas := &v1alpha1.RadioNetworkSpec{Waveform: waveform, FadingSelections: s.fades(network, waveform)}, n.place(nodes, s)
		for _, node := range nodes {
			rendered.Members = append(rendered.Members, v1alpha1.Member{Node: node.Name, Group: node.Group, NEM: node.NEM})
		}
		if n.setReach(rendered, antennas, Changes(&v1alpha1.Experiment{Spec: *spec}, network.Name)) {
			found = append(found, n)
		}
	}
	return found
}

// setReach reports whether there is a limit, or may be one.
func (n *slottedNetwork) setReach(rendered *v1alpha1.RadioNetworkSpec, antennas bool, changes []v1alpha1.TimedRadioChange) bool {
	first, limited := emane.SlotReach(rendered, antennas)
	if !limited && n.unplaced {
		first, n.ifPlaced = emane.SlotReach(rendered, true)
	}
	rendered.Changes = changes
	n.reach, _ = emane.SlotReach(rendered, antennas || n.ifPlaced)
	n.changed = n.reach < first
	return limited || n.ifPlaced
}

// place adds the network's nodes, and reports whether any has an antenna profile.
func (n *slottedNetwork) place(nodes []topology.Node, s *Scenario) (antennas bool) {
	var fixed []string
	for _, node := range nodes {
		antennas = antennas || s.hasAntennaProfile(node)
		switch {
		case node.Position != nil:
			fixed, n.Fixed = append(fixed, node.Name), append(n.Fixed, positionOf(*node.Position))
		case s == nil:
			n.unplaced = true
		case s.PlatformOf(node) != nil && s.Statistics.Positions:
			n.Nodes, n.Platforms = append(n.Nodes, node.Name), append(n.Platforms, int(*s.PlatformOf(node)))
		}
	}
	n.Nodes = append(n.Nodes, fixed...)
	return antennas
}

// untilOf is the end of a run with its drain: that of the scenario where the run has none.
func untilOf(spec *v1alpha1.ExperimentSpec, s *Scenario) time.Duration {
	switch {
	case spec.Duration != "":
		return spec.Duration.Std() + spec.Drain.Max.Std()
	case s != nil:
		return s.Statistics.Duration.Std()
	}
	return 0
}

// farthest is the greatest distance between members, and known whether it is that of all of them, or that of the fixed ones.
func (n *slottedNetwork) farthest(s *Scenario) (far Separation, known bool) {
	if s != nil && len(n.Platforms) > 0 {
		if far, known = s.Farthest[n.Network]; known {
			return far, true
		}
	}
	places, names := make([]geo.Vector, len(n.Fixed)), n.Nodes[len(n.Platforms):]
	for i, position := range n.Fixed {
		places[i] = position.ECEF()
	}
	if a, b, metres, apart := geo.Farthest(places, 0); apart {
		far = Separation{Metres: metres, Between: [2]string{names[a], names[b]}}
	}
	return far, len(n.Platforms) == 0 && !n.unplaced
}

// checkSlotReach finds nodes that are too far apart for the slots of a TDMA network of EMANE's.
func checkSlotReach(spec *v1alpha1.ExperimentSpec, t *topology.Topology, waveforms map[string]v1alpha1.WaveformSpec, s *Scenario) (errs field.ErrorList) {
	for _, n := range slottedNetworks(spec, t, waveforms, s) {
		if wrong := n.tooFar(s); wrong != "" {
			errs = append(errs, field.Invalid(n.path.Child("engine"), n.engine, wrong))
		}
	}
	return errs
}

// tooFar says which nodes are farther from each other than the reach; empty if none are, or nobody knows.
func (n *slottedNetwork) tooFar(s *Scenario) string {
	far, known := n.farthest(s)
	if n.ifPlaced || far.Metres <= n.reach {
		return ""
	}
	when, with := "", ""
	if known && len(n.Platforms) > 0 {
		when = " at " + wording.Time(far.At.Round(time.Millisecond))
	}
	if n.changed {
		with = " with a later schedule"
	}
	return fmt.Sprintf("nodes %s and %s are %.1f km apart%s, and EMANE drops bursts that fill their slots beyond %.1f km%s, by their propagation delay: "+
		"want a slotOverhead of at least %v, or engine native", far.Between[0], far.Between[1], far.Metres/1000, when, n.reach/1000, with, emane.SlotOverheadFor(far.Metres))
}

// slotReachWarnings are about networks as those of checkSlotReach of which not all distances are known.
func slotReachWarnings(spec *v1alpha1.ExperimentSpec, t *topology.Topology, waveforms map[string]v1alpha1.WaveformSpec, s *Scenario) (found field.ErrorList) {
	for _, n := range slottedNetworks(spec, t, waveforms, s) {
		if _, known := n.farthest(s); known {
			continue
		}
		when := ""
		if n.ifPlaced && spec.Scenario != nil {
			when = fmt.Sprintf("if scenario %s has antenna profiles or fading, ", spec.Scenario.Ref)
		}
		found = append(found, field.Invalid(n.path, n.Network, fmt.Sprintf(
			"%sEMANE drops bursts that fill their slots beyond %.1f km, by their propagation delay: each further kilometre needs 3.4us more slotOverhead", when, n.reach/1000)))
	}
	return found
}

// CheckReachKept refuses changes of a running network of EMANE's that shorten its reach. The run's distances were checked
// against the reach before, and are not known any more.
func CheckReachKept(before, after *v1alpha1.RadioNetworkSpec, path *field.Path) field.ErrorList {
	if before.Engine != v1alpha1.EngineEMANE {
		return nil
	}
	antennas := slices.ContainsFunc(before.Members, func(m v1alpha1.Member) bool { return m.AntennaProfiles })
	reach, limited := emane.SlotReach(before, antennas)
	shorter, _ := emane.SlotReach(after, antennas)
	if !limited || shorter >= reach {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf("with a schedule of network %s EMANE would drop bursts that fill their slots beyond %.1f km, by their propagation delay, "+
		"and the run's distances fit %.1f km: want a slotoverhead of at least %d microseconds", before.Network, shorter/1000, reach/1000, emane.SlotOverheadFor(reach).Microseconds()))}
}
