package worker

import (
	"cmp"
	"slices"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// matches reports whether a node's or group's name in a spec includes the member.
func matches(name string, member *v1alpha1.Member) bool {
	return isEverybody(name) || member.IsCalled(name)
}

// isEverybody reports whether a name includes all nodes.
func isEverybody(name string) bool { return name == "" || name == link.Everybody }

// nodeRadio is one node's current radio.
type nodeRadio struct {
	phy.Radio
	rateBitsPerSecond float64
}

// radios has the radios of a network's members.
type radios struct {
	members []v1alpha1.Member
	byNEM   map[int]int // index of the member
	own     []nodeRadio
	common  nodeRadio // of the waveform
}

func newRadios(spec *v1alpha1.RadioNetworkSpec, rate v1alpha1.DataRate) *radios {
	p := spec.Waveform.PHY()
	common := nodeRadio{phy.Radio{FrequencyHertz: p.Frequency.Hertz(), BandwidthHertz: p.Bandwidth.Hertz(), TransmitPowerDBm: p.TransmitPower.DBm(),
		AntennaGainDBi: p.AntennaGain.DBi(), NoiseFigureDB: p.NoiseFigure.DB(), SubID: cmp.Or(int(p.SubID), 1), Transmit: true}, rate.BitsPerSecond()}
	r := &radios{members: spec.Members, byNEM: make(map[int]int, len(spec.Members)), own: make([]nodeRadio, len(spec.Members)), common: common}
	for i := range spec.Members {
		r.byNEM[int(spec.Members[i].NEM)] = i
		r.own[i] = common
	}
	for i := range spec.Radios {
		o := &spec.Radios[i]
		for _, name := range o.Nodes {
			r.patch(name, &v1alpha1.RadioPatch{TransmitPower: o.TransmitPower, AntennaGain: o.AntennaGain, NoiseFigure: o.NoiseFigure})
		}
	}
	return r
}

// patch changes the radios that a name includes. Changes of jammers and schedules do not concern radios.
func (r *radios) patch(name string, p *v1alpha1.RadioPatch) {
	for i := range r.members {
		if matches(name, &r.members[i]) {
			r.own[i].patch(p)
		}
	}
}

func (r *nodeRadio) patch(p *v1alpha1.RadioPatch) {
	if p.TransmitPower != nil {
		r.TransmitPowerDBm = p.TransmitPower.DBm()
	}
	if p.AntennaGain != nil {
		r.AntennaGainDBi = p.AntennaGain.DBi()
	}
	if p.NoiseFigure != nil {
		r.NoiseFigureDB = p.NoiseFigure.DB()
	}
	if p.Frequency != nil {
		r.FrequencyHertz = p.Frequency.Hertz()
	}
	if p.Transmit != nil {
		r.Transmit = *p.Transmit
	}
	if p.Rate != nil {
		r.rateBitsPerSecond = p.Rate.BitsPerSecond()
	}
}

// snapshot copies the current radios; later patches do not affect the copy.
func (r *radios) snapshot() *radios {
	return &radios{members: r.members, byNEM: r.byNEM, own: slices.Clone(r.own), common: r.common}
}

// phyRadio returns a port's radio. A port that is not a member any more does not send.
func (r *radios) phyRadio(p *radio.Port) phy.Radio { return r.radio(p).Radio }

func (r *radios) rate(p *radio.Port) float64 { return r.radio(p).rateBitsPerSecond }

func (r *radios) radio(p *radio.Port) nodeRadio {
	i, ok := r.byNEM[p.NEM]
	if !ok {
		stranger := r.common
		stranger.Transmit = false
		return stranger
	}
	return r.own[i]
}
