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

// twoRayRange is the range of the fixed nodes. The positions of others are not known here.
func twoRayRange(t *topology.Topology, network v1alpha1.Network, p *v1alpha1.PHY) *propagation.TwoRayRange {
	var antennas []geo.Position
	last := ""
	for _, node := range attached(t, network.Name, everyNode) {
		if node.Position != nil && node.Template != last { // nodes of one entry have the same position
			antenna := positionOf(*node.Position)
			antenna.Altitude = p.AntennaMetres(network.Radios, node.Name, node.Group)
			antennas = append(antennas, antenna)
		}
		last = node.Template
	}
	var span propagation.TwoRayRange
	for i, a := range antennas {
		for _, b := range antennas[:i] {
			span.Add(geo.Distance(a, b), a.Altitude, b.Altitude, cmp.Or(p.Frequency, v1alpha1.DefaultFrequency).Hertz())
		}
	}
	return &span
}
