// Package waveforms turns a RadioNetwork's spec and its changes into requests to the data plane.
package waveforms

import (
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// waveform turns a network's spec and changes into the states of its radio model.
type waveform interface {
	// model sets what never changes.
	model(n *dataplane.Network)
	// apply applies one change. Changes that the model does not have are none of its business: the operator
	// refuses them.
	apply(change *v1alpha1.RadioChange)
	// state adds the current state, which later changes do not affect.
	state(s *dataplane.State)
}

// newWaveform makes a network's waveform before its changes. Without a waveform the error says why the network cannot
// work. With one it names the changes that are left out.
func newWaveform(spec *v1alpha1.RadioNetworkSpec, changes []v1alpha1.TimedRadioChange) (waveform, error) {
	switch {
	case spec.Waveform.RFPipe != nil:
		return newRFPipe(spec, changes)
	case spec.Waveform.TDMA != nil:
		return newTDMA(spec, changes)
	default:
		return newLinks(spec), nil
	}
}
