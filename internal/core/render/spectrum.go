package render

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// checkSpectra finds networks that cannot interfere with the others of their spectrum, as far as the waveforms are known.
func checkSpectra(spec *v1alpha1.ExperimentSpec, t *topology.Topology, waveforms map[string]v1alpha1.WaveformSpec, scenario *Scenario) (errs field.ErrorList) {
	groups, inOrder := map[string]*spectrumGroup{}, []*spectrumGroup(nil)
	for i, network := range spec.Networks {
		waveform, known := waveforms[network.Name]
		if network.Spectrum == "" || !known {
			continue
		}
		path := field.NewPath("spec", "networks").Index(i).Child("spectrum")
		g := groups[network.Spectrum]
		if g == nil {
			g = newSpectrumGroup(network.Spectrum, path, scenario)
			groups[network.Spectrum], inOrder = g, append(inOrder, g)
		}
		if err := g.add(network, &waveform, attached(t, network.Name, everyNode), path); err != nil {
			errs = append(errs, err)
		}
	}
	if len(waveforms) < len(spec.Networks) {
		return errs
	}
	for _, g := range inOrder {
		if err := g.check(); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// spectrumGroup is the networks of one spectrum.
type spectrumGroup struct {
	path     *field.Path // of the first
	name     string
	scenario *Scenario // nil if there is none or it is not known yet
	// networks that can share it, and the highest NEM id of a member.
	networks, highest int
	first             spectrumMember
	// nodes and subIDs by network, for EMANE's networks.
	nodes  map[string]string
	subIDs map[int32]string
	// counted reports whether a network counts interference; broken whether one cannot share the spectrum.
	counted, broken bool
}

// spectrumMember is what the networks of a spectrum have in common.
type spectrumMember struct {
	engine   v1alpha1.Engine
	pathloss v1alpha1.PathlossSource
	masks    string // of EMANE's, by whose numbers receivers know the masks of senders
}

func newSpectrumGroup(name string, path *field.Path, scenario *Scenario) *spectrumGroup {
	return &spectrumGroup{path: path, name: name, scenario: scenario, nodes: map[string]string{}, subIDs: map[int32]string{}}
}

// add returns why a network with these nodes cannot share the spectrum.
func (g *spectrumGroup) add(network v1alpha1.Network, w *v1alpha1.WaveformSpec, nodes []topology.Node, path *field.Path) *field.Error {
	if w.PHY() == nil {
		g.broken = true
		return field.Forbidden(path, fmt.Sprintf("is for radio models, and network %s has the model %s", network.Name, w.Model()))
	}
	m := spectrumMember{cmp.Or(network.Engine, v1alpha1.EngineNative), w.PHY().PathlossFrom(), ""}
	if w.EMANE != nil {
		m.masks = w.EMANE.SpectralMasks
	}
	if g.networks == 0 {
		g.first = m
	}
	if why := g.unlike(network, m, w.PHY(), nodes); why != "" {
		g.broken = true
		return field.Invalid(path, network.Spectrum, why)
	}
	g.networks++
	g.counted = g.counted || w.InterferenceCounted() != v1alpha1.InterferenceNone
	for _, node := range nodes {
		g.highest = max(g.highest, int(node.NEM))
	}
	return nil
}

// unlike returns what a network has that does not suit those before it.
func (g *spectrumGroup) unlike(network v1alpha1.Network, m spectrumMember, p *v1alpha1.PHY, nodes []topology.Node) string {
	switch {
	case m.engine != g.first.engine:
		return fmt.Sprintf("its networks need one engine: network %s has %s, one before it %s", network.Name, m.engine, g.first.engine)
	case m.pathloss != g.first.pathloss:
		return fmt.Sprintf("its networks need one pathloss: network %s has %s, one before it %s", network.Name, m.pathloss, g.first.pathloss)
	case m.engine != v1alpha1.EngineEMANE:
		return ""
	case m.masks != g.first.masks:
		return fmt.Sprintf("EMANE knows a sender's spectral mask by its number: network %s needs the emane.spectralMasks of the networks before it", network.Name)
	}
	subID := cmp.Or(p.SubID, 1)
	if other := g.subIDs[subID]; other != "" {
		return fmt.Sprintf("EMANE tells its networks apart by phy.subid, and networks %s and %s both have %d", other, network.Name, subID)
	}
	g.subIDs[subID] = network.Name
	for _, node := range nodes {
		if other := g.nodes[node.Name]; other != "" {
			return fmt.Sprintf("with EMANE a node is in one of its networks, and %s is in %s and %s: want engine native, or two nodes", node.Name, other, network.Name)
		}
		g.nodes[node.Name] = network.Name
		if g.scenario.hasAntennaProfile(node) {
			return fmt.Sprintf("with EMANE its nodes have no antenna profiles, and %s of network %s has one in the scenario: want engine native", node.Name, network.Name)
		}
	}
	return ""
}

// check returns what is wrong with all networks together.
func (g *spectrumGroup) check() *field.Error {
	switch {
	case g.broken:
		return nil
	case g.networks == 1:
		return field.Invalid(g.path, g.name, "no other network has this spectrum: two or more share one")
	case !g.counted:
		return field.Invalid(g.path, g.name, "none of its networks counts interference: one needs a waveform with interference OutOfBand or All")
	case (g.networks+1)*g.highest > tdma.MaxNEM: // networks know each other's radios by ids of their own
		return field.Invalid(g.path, g.name, fmt.Sprintf("%d networks with NEM ids up to %d: the highest id times the networks and one more must be at most %d", g.networks, g.highest, tdma.MaxNEM))
	}
	return nil
}
