// Package propagation computes the pathloss between two antennas from their positions.
//
// Every model is a function of the two positions, the frequency and its own parameters. It is reciprocal, and
// may be called by several goroutines at once. An unknown pathloss is NaN. docs/reference/radio/propagation.md has the formulas and
// their limits.
package propagation

import (
	"math"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/terrain"
)

// Model of the propagation between two antennas, without their gains.
type Model interface {
	// Pathloss in dB at a frequency in Hz; never below zero. It is +Inf if nothing arrives and NaN if
	// unknown.
	Pathloss(from, to geo.Position, frequencyHertz float64) float64
}

// SpeedOfLight in m/s.
const SpeedOfLight = 299792458.0

// FreeSpace is Friis's free-space loss, 20 log(4πdf/c), over the distance between the antennas (ITU-R P.525; EMANE's "freespace").
type FreeSpace struct{}

// Pathloss in dB.
func (FreeSpace) Pathloss(from, to geo.Position, frequencyHertz float64) float64 {
	return FreeSpaceLoss(geo.Distance(from, to), frequencyHertz)
}

// FreeSpaceLoss over a distance in metres, in dB; zero at distances for which the formula is negative.
func FreeSpaceLoss(metres, frequencyHertz float64) float64 {
	return max(0, 20*math.Log10(4*math.Pi*metres*frequencyHertz/SpeedOfLight))
}

// TwoRay is the loss of a direct ray and one that flat ground reflects: 40 log d - 20 log(h1 h2), and at least
// that of free space (T. S. Rappaport, Wireless Communications, 2nd ed., 4.6). A position's altitude is that of
// its antenna; DefaultAntennaMetres is for those without one.
type TwoRay struct {
	// Ground above which the antennas' heights are measured; nil is flat and at altitude 0.
	Ground terrain.Surface
}

// DefaultAntennaMetres is the height above the ground of a vehicle's antenna.
const DefaultAntennaMetres = 3.0

// Pathloss in dB; +Inf for an antenna that is not above the ground.
func (m TwoRay) Pathloss(from, to geo.Position, frequencyHertz float64) float64 {
	metres := geo.Distance(from, to)
	h1, h2 := m.height(from), m.height(to)
	switch {
	case math.IsNaN(h1) || math.IsNaN(h2):
		return math.NaN()
	case metres == 0:
		return 0
	case h1 <= 0 || h2 <= 0:
		return math.Inf(1)
	}
	return max(40*math.Log10(metres)-20*math.Log10(h1*h2), FreeSpaceLoss(metres, frequencyHertz))
}

func (m TwoRay) height(p geo.Position) float64 {
	if m.Ground == nil {
		return p.Altitude
	}
	ground, ok := m.Ground.Elevation(p.Latitude, p.Longitude)
	if !ok {
		return math.NaN()
	}
	return p.Altitude - ground
}

// CrossoverMetres is the distance from which the two-ray loss is larger than free space.
func CrossoverMetres(height1, height2, frequencyHertz float64) float64 {
	return 4 * math.Pi * height1 * height2 * frequencyHertz / SpeedOfLight
}

// HorizonMetres is the distance at which the Earth begins to hide two antennas from each other, in the median
// atmosphere.
func HorizonMetres(height1, height2 float64) float64 {
	return math.Sqrt(2*DefaultEffectiveRadiusMetres*height1) + math.Sqrt(2*DefaultEffectiveRadiusMetres*height2)
}

// LogDistance is free space up to 1 m, then 10 n log d (T. S. Rappaport, Wireless Communications, 2nd ed., 4.9), with an
// optional log-normal shadowing.
type LogDistance struct {
	// Exponent n of the distance: 2 is free space.
	Exponent float64
	// Shadowing is nil for none.
	Shadowing *Shadowing
}

// Pathloss in dB.
func (m LogDistance) Pathloss(from, to geo.Position, frequencyHertz float64) float64 {
	metres := max(1, geo.Distance(from, to))
	loss := 20*math.Log10(4*math.Pi*frequencyHertz/SpeedOfLight) + 10*m.Exponent*math.Log10(metres)
	if m.Shadowing != nil {
		loss += m.Shadowing.DB(from, to)
	}
	return max(0, loss)
}
