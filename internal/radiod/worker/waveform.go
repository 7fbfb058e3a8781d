package worker

import (
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// waveform turns a network's spec and changes into the settings of its radio model.
type waveform interface {
	// apply applies one change. Changes that the model does not have are none of its business: the operator
	// refuses them.
	apply(change *v1alpha1.RadioChange)
	// snapshot returns the current settings; later changes do not affect them.
	snapshot() settings
}

// settings of a radio model at a moment.
type settings interface {
	// model makes a model with these settings, for a new network.
	model() radio.Model
	// configure changes a model of the same waveform without disturbing frames in flight, on the thread of
	// its loop.
	configure(now int64, model radio.Model)
	// statistics of a port in a model of the same waveform, on the thread of its loop. With reset, worst
	// values start again.
	statistics(model radio.Model, p *radio.Port, reset bool) nodeStatistics
	// medium of such a model, on the thread of its loop; nil without a physical layer.
	medium(model radio.Model) heardLinks
}

// heardLinks gives the links of a medium.
type heardLinks interface {
	// LinksHeard is the number of links on which something was sent.
	LinksHeard() int
	// AppendLinks appends the links to a port.
	AppendLinks(all []phy.LinkStatistics, to *radio.Port) []phy.LinkStatistics
}

// nodeStatistics are a model's statistics of one port, in addition to the engine's.
type nodeStatistics struct {
	slots SlotCounters
	// classes are the waiting frames by class of service; nil for models without classes.
	classes []int
}

// newWaveform makes a network's waveform before its changes. It prepares whatever takes long, because apply
// runs on the thread of the network's loop. Without a waveform the error says why the network cannot work.
// With one it names the changes that are left out.
func newWaveform(spec *v1alpha1.RadioNetworkSpec, changes []v1alpha1.TimedRadioChange, air *environment) (waveform, error) {
	switch {
	case spec.Waveform.RFPipe != nil:
		return newRFPipe(spec, changes, air)
	case spec.Waveform.TDMA != nil:
		return newTDMA(spec, changes, air)
	default:
		return newLinks(spec, air), nil
	}
}
