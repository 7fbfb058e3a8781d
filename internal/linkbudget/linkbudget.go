// Package linkbudget has what decides the power at a receiver: the radios that a network's spec gives its members, and the pathloss
// by positions. radiod's radios follow it, and maps show it. It also generates TDMA schedules.
package linkbudget

import (
	"cmp"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/propagation"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Radio is one node's current radio.
type Radio struct {
	phy.Radio
	RateBitsPerSecond float64
}

// Radios of a network's members as it begins, and the waveform's own.
func Radios(spec *v1alpha1.RadioNetworkSpec, rate v1alpha1.DataRate) (own []Radio, common Radio) {
	p := spec.Waveform.PHY()
	common = Radio{phy.Radio{FrequencyHertz: p.Frequency.Hertz(), BandwidthHertz: p.Bandwidth.Hertz(), TransmitPowerDBm: p.TransmitPower.DBm(),
		AntennaGainDBi: p.AntennaGain.DBi(), NoiseFigureDB: p.NoiseFigure.DB(), SubID: cmp.Or(int(p.SubID), 1), Transmit: true}, rate.BitsPerSecond()}
	own = make([]Radio, len(spec.Members))
	for i := range own {
		own[i] = common
	}
	for i := range spec.Radios {
		o := &spec.Radios[i]
		for _, name := range o.Nodes {
			Patch(own, spec.Members, name, &v1alpha1.RadioPatch{TransmitPower: o.TransmitPower, AntennaGain: o.AntennaGain, NoiseFigure: o.NoiseFigure})
		}
	}
	return own, common
}

// Patch changes the radios of the members that a name includes. Changes of jammers and schedules do not concern radios.
func Patch(radios []Radio, members []v1alpha1.Member, name string, p *v1alpha1.RadioPatch) {
	for i := range members {
		if Includes(name, &members[i]) {
			radios[i].patch(p)
		}
	}
}

// Includes reports whether a node's or group's name in a change includes a member. No name includes all.
func Includes(name string, member *v1alpha1.Member) bool {
	return name == "" || member.IsCalled(name)
}

func (r *Radio) patch(p *v1alpha1.RadioPatch) {
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
		r.RateBitsPerSecond = p.Rate.BitsPerSecond()
	}
}

// Model of the propagation for a pathloss by positions.
func Model(source v1alpha1.PathlossSource) propagation.Model {
	if source == v1alpha1.PathlossTwoRay {
		return propagation.TwoRay{}
	}
	return propagation.FreeSpace{}
}

// Antenna returns an antenna's position. For two rays only its height above flat ground counts, which an altitude above the sea does
// not give.
func Antenna(source v1alpha1.PathlossSource, at geo.Position, height float64) geo.Position {
	if source == v1alpha1.PathlossTwoRay {
		at.Altitude = height
	}
	return at
}

// Position on the ellipsoid.
func Position(p *v1alpha1.Position) geo.Position {
	return geo.Position{Latitude: p.Latitude.Float(), Longitude: p.Longitude.Float(), Altitude: p.Altitude.Float()}
}
