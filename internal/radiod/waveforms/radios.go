package waveforms

import (
	"vignette.dev/vignette/internal/linkbudget"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// radios has the radios of a network's members.
type radios struct {
	members []v1alpha1.Member
	own     []linkbudget.Radio
	common  linkbudget.Radio // of the waveform
}

func newRadios(spec *v1alpha1.RadioNetworkSpec, rate v1alpha1.DataRate) *radios {
	r := &radios{members: spec.Members}
	r.own, r.common = linkbudget.Radios(spec, rate)
	return r
}

// patch changes the radios that a name includes. Changes of jammers and schedules do not concern radios.
func (r *radios) patch(name string, p *v1alpha1.RadioPatch) {
	linkbudget.Patch(r.own, r.members, name, p)
}

// state copies the current radios; later patches do not affect the copy. A port that is not a member any more does not
// send.
func (r *radios) state() *dataplane.Radios {
	s := &dataplane.Radios{ByNEM: make(map[int]dataplane.Radio, len(r.own)), Other: dataplane.Radio(r.common)}
	s.Other.Transmit = false
	for i := range r.own {
		s.ByNEM[int(r.members[i].NEM)] = dataplane.Radio(r.own[i])
	}
	return s
}
