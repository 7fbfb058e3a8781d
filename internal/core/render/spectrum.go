package render

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// maxNEM is the highest NEM id. Networks of one spectrum know each other's radios by ids of their own.
const maxNEM = 65535

// checkSpectra finds networks that cannot interfere with the others of their spectrum, as far as the waveforms are known.
func checkSpectra(spec *v1alpha1.ExperimentSpec, t *topology.Topology, waveforms map[string]v1alpha1.WaveformSpec) (errs field.ErrorList) {
	groups := map[string]*spectrumGroup{}
	for i, network := range spec.Networks {
		waveform, known := waveforms[network.Name]
		if network.Spectrum == "" || !known {
			continue
		}
		path := field.NewPath("spec", "networks").Index(i).Child("spectrum")
		if groups[network.Spectrum] == nil {
			groups[network.Spectrum] = &spectrumGroup{path: path, name: network.Spectrum}
		}
		if err := groups[network.Spectrum].add(network, &waveform, nemsOn(t, network.Name), path); err != nil {
			errs = append(errs, err)
		}
	}
	for _, network := range spec.Networks {
		if g := groups[network.Spectrum]; g != nil && len(waveforms) == len(spec.Networks) {
			delete(groups, network.Spectrum)
			if err := g.check(); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errs
}

// spectrumGroup is the networks of one spectrum.
type spectrumGroup struct {
	path *field.Path // of the first
	name string
	// networks that can share it, and the highest NEM id of a member.
	networks, highest int
	pathloss          v1alpha1.PathlossSource
	// counted reports whether a network counts interference; broken whether one cannot share the spectrum.
	counted, broken bool
}

// add returns why a network cannot share the spectrum.
func (g *spectrumGroup) add(network v1alpha1.Network, w *v1alpha1.WaveformSpec, nems []int, path *field.Path) (err *field.Error) {
	p := w.PHY()
	switch {
	case p == nil:
		err = field.Forbidden(path, fmt.Sprintf("is for radio models, and network %s has the model %s", network.Name, w.Model()))
	case network.Engine == v1alpha1.EngineEMANE:
		err = field.Forbidden(path, fmt.Sprintf("is for engine native, and network %s has engine emane, which gives each network a channel of its own", network.Name))
	case g.networks > 0 && cmp.Or(p.Pathloss, v1alpha1.PathlossScenario) != g.pathloss:
		err = field.Invalid(path, network.Spectrum, fmt.Sprintf("its networks need one pathloss: network %s has %s, one before it %s", network.Name, p.Pathloss, g.pathloss))
	}
	if err != nil {
		g.broken = true
		return err
	}
	g.networks++
	g.pathloss, g.counted = cmp.Or(p.Pathloss, v1alpha1.PathlossScenario), g.counted || w.InterferenceCounted() != v1alpha1.InterferenceNone
	for _, nem := range nems {
		g.highest = max(g.highest, nem)
	}
	return nil
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
	case (g.networks+1)*g.highest > maxNEM:
		return field.Invalid(g.path, g.name, fmt.Sprintf("%d networks with NEM ids up to %d: the highest id times the networks and one more must be at most %d", g.networks, g.highest, maxNEM))
	}
	return nil
}
