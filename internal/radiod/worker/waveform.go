package worker

import (
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// waveform folds a network's spec and changes into the settings of its radio model.
type waveform interface {
	// apply carries out one change.
	apply(change *v1alpha1.RadioChange)
	// snapshot is what holds now; later changes do not reach it.
	snapshot() settings
}

// settings of a radio model as they hold from some moment on.
type settings interface {
	// model with these settings, for a new network.
	model() radio.Model
	// configure changes a model of the same waveform, on the thread of its loop, without disturbing frames in flight.
	configure(model radio.Model)
	// statistics of a port in a model of the same waveform, on the thread of its loop. With reset, what is the worst since the last reset starts anew.
	statistics(model radio.Model, p *radio.Port, reset bool) nodeStatistics
	// medium of such a model, on the thread of its loop; nil where it has no physical layer.
	medium(model radio.Model) heardLinks
}

// heardLinks are what a medium knows of what ports have heard and missed; it implements them.
type heardLinks interface {
	// LinksHeard is on how many of them something was sent.
	LinksHeard() int
	// AppendLinks appends those to a port.
	AppendLinks(all []phy.LinkStatistics, to *radio.Port) []phy.LinkStatistics
}

// nodeStatistics are what a model knows of one port besides what the engine counts.
type nodeStatistics struct {
	slots SlotCounters
	// classes are the frames that wait by class of service; nil for models without.
	classes []int
}

// newWaveform makes a network's waveform as it is before its changes, which are given so that all that takes long can be done
// beforehand: apply runs on the thread of the network's loop. Without a waveform the error says why the network cannot work;
// with one, what of the changes is left out.
func newWaveform(spec *v1alpha1.RadioNetworkSpec, changes []v1alpha1.TimedRadioChange, air *air) (waveform, error) {
	switch {
	case spec.Waveform.RFPipe != nil:
		return newRFPipe(spec, changes, air)
	case spec.Waveform.TDMA != nil:
		return newTDMA(spec, changes, air)
	default:
		return newLinks(spec, air), nil
	}
}
