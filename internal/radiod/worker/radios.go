package worker

import (
	"slices"

	"vignette.dev/vignette/internal/linkbudget"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// isEverybody reports whether a name includes all nodes.
func isEverybody(name string) bool { return name == "" || name == link.Everybody }

// nodeRadio is one node's current radio.
type nodeRadio = linkbudget.Radio

// radios has the radios of a network's members.
type radios struct {
	members []v1alpha1.Member
	byNEM   map[int]int // index of the member
	own     []nodeRadio
	common  nodeRadio // of the waveform
}

func newRadios(spec *v1alpha1.RadioNetworkSpec, rate v1alpha1.DataRate) *radios {
	r := &radios{members: spec.Members, byNEM: make(map[int]int, len(spec.Members))}
	r.own, r.common = linkbudget.Radios(spec, rate)
	for i := range spec.Members {
		r.byNEM[int(spec.Members[i].NEM)] = i
	}
	return r
}

// patch changes the radios that a name includes. Changes of jammers and schedules do not concern radios.
func (r *radios) patch(name string, p *v1alpha1.RadioPatch) {
	linkbudget.Patch(r.own, r.members, name, p)
}

// snapshot copies the current radios; later patches do not affect the copy.
func (r *radios) snapshot() *radios {
	return &radios{members: r.members, byNEM: r.byNEM, own: slices.Clone(r.own), common: r.common}
}

// phyRadio returns a port's radio. A port that is not a member any more does not send.
func (r *radios) phyRadio(p *radio.Port) phy.Radio { return r.radio(p).Radio }

func (r *radios) rate(p *radio.Port) float64 { return r.radio(p).RateBitsPerSecond }

func (r *radios) radio(p *radio.Port) nodeRadio {
	i, ok := r.byNEM[p.NEM]
	if !ok {
		stranger := r.common
		stranger.Transmit = false
		return stranger
	}
	return r.own[i]
}
