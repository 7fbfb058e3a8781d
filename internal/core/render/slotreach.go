package render

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// checkSlotReach finds fixed nodes that are too far apart for the slots of a TDMA network of EMANE's, which adds propagation
// delays where it computes pathloss or gains from positions.
func (c *radioChecker) checkSlotReach(network v1alpha1.Network, rendered *v1alpha1.RadioNetworkSpec, profiles bool, path *field.Path) field.ErrorList {
	reach, limited := emane.SlotReach(rendered, profiles)
	if !limited {
		return nil
	}
	var fixed []topology.Node
	for _, node := range attached(c.topology, network.Name, everyNode) {
		if node.Position != nil {
			fixed = append(fixed, node)
		}
	}
	farthest, between := 0.0, [2]string{}
	for i, a := range fixed {
		for _, b := range fixed[:i] {
			if d := geo.Distance(positionOf(*a.Position), positionOf(*b.Position)); d > farthest {
				farthest, between = d, [2]string{b.Name, a.Name}
			}
		}
	}
	if farthest <= reach {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("engine"), network.Engine, fmt.Sprintf("nodes %s and %s are %.1f km apart, and EMANE drops bursts that fill their slots beyond %.1f km, "+
		"by their propagation delay: want a slotOverhead of at least %v, or engine native", between[0], between[1], farthest/1000, reach/1000, emane.SlotOverheadFor(farthest)))}
}

// slotReachWarnings are about networks as those of checkSlotReach whose nodes move: their distances are not known here.
func slotReachWarnings(t *topology.Topology, spec *v1alpha1.ExperimentSpec, waveforms map[string]v1alpha1.WaveformSpec) (found field.ErrorList) {
	for i, network := range spec.Networks {
		waveform := waveforms[network.Name]
		if network.Engine != v1alpha1.EngineEMANE || waveform.PHY() == nil {
			continue
		}
		rendered := &v1alpha1.RadioNetworkSpec{Waveform: waveform}
		moving := false
		for _, node := range attached(t, network.Name, everyNode) {
			rendered.Members = append(rendered.Members, v1alpha1.Member{Node: node.Name, NEM: node.NEM})
			moving = moving || node.Position == nil
		}
		if reach, limited := emane.SlotReach(rendered, false); limited && moving {
			found = append(found, field.Invalid(field.NewPath("spec", "networks").Index(i), network.Name, fmt.Sprintf(
				"EMANE drops bursts that fill their slots beyond %.1f km, by their propagation delay: each further kilometre needs 3.4us more slotOverhead", reach/1000)))
		}
	}
	return found
}
