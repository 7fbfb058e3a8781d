package linkbudget

import (
	"cmp"
	"math"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// NoiseOf a jammer.
func NoiseOf(j *v1alpha1.Jammer) (n phy.Noise) {
	if j.Frequency != nil {
		n.FrequencyHertz = j.Frequency.Hertz()
	}
	if j.Bandwidth != nil {
		n.BandwidthHertz = j.Bandwidth.Hertz()
	}
	return n
}

// End is an antenna at one end of a path: its position, and its height above the ground in metres.
type End struct {
	Position geo.Position
	Height   float64
}

// JammerLoss is the pathloss in dB from a jammer to a receiver that listens on a frequency.
func JammerLoss(source v1alpha1.PathlossSource, n phy.Noise, jammer, receiver End, frequencyHertz float64) float64 {
	frequency := cmp.Or(n.FrequencyHertz, frequencyHertz)
	return Model(source).Pathloss(Antenna(source, jammer.Position, jammer.Height), Antenna(source, receiver.Position, receiver.Height), frequency)
}

const (
	// maxRangeDegrees of latitude, about 1000 km.
	maxRangeDegrees = 9
	// rangeSteps halve the distance to within a few metres.
	rangeSteps = 18
)

// JammerMetres is how far a jammer with a position reaches: up to there a radio as in the waveform has it above its own noise, and
// beyond it the models do not count it (phy.Medium). It is at most about 1000 km. A jammer that reaches nobody has none.
func JammerMetres(spec *v1alpha1.RadioNetworkSpec, j *v1alpha1.Jammer) (metres float64, known bool) {
	counted := spec.Waveform.InterferenceCounted()
	if j.Position == nil || j.Power == nil || counted == "" || counted == v1alpha1.InterferenceNone {
		return 0, false
	}
	_, radio := Radios(spec, "")
	physical, noise := spec.Waveform.PHY(), NoiseOf(j)
	source := physical.PathlossFrom()
	from := End{Position(j.Position), physical.AntennaMetres(nil, "", "")}
	share := noise.Share(radio.FrequencyHertz, radio.BandwidthHertz)
	allowed := j.Power.DBm() + 10*math.Log10(share) + radio.AntennaGainDBi - radio.SensitivityDBm()
	reaches := func(degrees float64) (metres float64, ok bool) {
		to := from
		to.Position.Latitude += math.Copysign(degrees, -from.Position.Latitude) // towards the equator
		return geo.Distance(from.Position, to.Position), JammerLoss(source, noise, from, to, radio.FrequencyHertz) <= allowed
	}
	if _, ok := reaches(0); !ok {
		return 0, false
	}
	if metres, ok := reaches(maxRangeDegrees); ok {
		return metres, true
	}
	near, far := 0.0, float64(maxRangeDegrees)
	for range rangeSteps {
		if _, ok := reaches((near + far) / 2); ok {
			near = (near + far) / 2
		} else {
			far = (near + far) / 2
		}
	}
	metres, _ = reaches(near)
	return metres, true
}
