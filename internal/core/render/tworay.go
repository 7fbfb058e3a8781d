package render

import (
	"cmp"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/propagation"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// twoRayWarnings are about networks with the two-ray model outside of the formula's range.
func twoRayWarnings(t *topology.Topology, spec *v1alpha1.ExperimentSpec, waveforms map[string]v1alpha1.WaveformSpec) (found field.ErrorList) {
	for i, network := range spec.Networks {
		waveform := waveforms[network.Name]
		p := waveform.PHY()
		if p == nil || p.Pathloss != v1alpha1.PathlossTwoRay {
			continue
		}
		warnings := twoRayRange(t, network, p).Warnings()
		if network.Engine == v1alpha1.EngineEMANE {
			warnings = []string{"EMANE uses altitudes above the sea as the antennas' heights, not antennaHeight, and a node at altitude 0 receives nothing"}
		}
		for _, warning := range warnings {
			found = append(found, field.Invalid(field.NewPath("spec", "networks").Index(i), network.Name, warning))
		}
	}
	return found
}

// twoRayRange is the range of a network's nodes. Distances are known between fixed ones only.
func twoRayRange(t *topology.Topology, network v1alpha1.Network, p *v1alpha1.PHY) *propagation.TwoRayRange {
	type antenna struct {
		at     *v1alpha1.Position
		metres float64
	}
	var antennas []antenna
	last := ""
	for _, node := range attached(t, network.Name, everyNode) {
		if node.Position == nil || node.Template != last { // nodes of one entry have the same position
			antennas = append(antennas, antenna{node.Position, p.AntennaMetres(network.Radios, node.Name, node.Group)})
		}
		last = node.Template
	}
	var span propagation.TwoRayRange
	hertz := cmp.Or(p.Frequency, v1alpha1.DefaultFrequency).Hertz()
	for i, a := range antennas {
		for _, b := range antennas[:i] {
			if a.at == nil || b.at == nil {
				span.AddApart(a.metres, b.metres, hertz)
				continue
			}
			from, to := positionOf(*a.at), positionOf(*b.at)
			from.Altitude, to.Altitude = a.metres, b.metres
			span.Add(geo.Distance(from, to), a.metres, b.metres, hertz)
		}
	}
	return &span
}
