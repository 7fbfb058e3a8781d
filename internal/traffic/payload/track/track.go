// Package track has the positions in messages: those of the node's platform, or else of a unit that moves slowly, so that
// messages have plausible, changing content. The same seed gives the same track.
package track

import (
	"math"
	"math/rand/v2"
	"time"
)

// Position is that of a unit, WGS 84.
type Position struct {
	LatitudeDegrees, LongitudeDegrees float64
	// BearingDegrees clockwise from true north; messages have Bearing.
	BearingDegrees         float64
	SpeedKilometresPerHour float64
	AltitudeMetres         float64
}

// Bearing is the bearing in tenths of a degree, from 0 to 359.9. A scenario may have another number of turns.
func (p Position) Bearing() float64 {
	const turn = 3600
	return math.Mod(math.Mod(math.Round(10*p.BearingDegrees), turn)+turn, turn) / 10
}

// Track is the way of a unit.
type Track interface {
	// MoveTo moves the unit to its position at a time, and returns it. Times never decrease.
	MoveTo(t time.Time) Position
}

// Unit is a vehicle that moves at random.
type Unit struct {
	random *rand.Rand
	at     Position
	last   time.Time
}

const (
	// The area of the published example: 0.1 degrees around Lisbon.
	centreLatitude, centreLongitude, spreadDegrees = 38.74, -9.16, 0.1
	metresPerDegree                                = 111_320
	maxSpeedKilometresPerHour                      = 60
	// stream separates these random numbers from others with the same seed.
	stream = 0x747261636b
)

// NewUnit places a unit.
func NewUnit(seed int64) *Unit {
	random := rand.New(rand.NewPCG(uint64(seed), stream))
	return &Unit{random: random, at: Position{
		LatitudeDegrees:        centreLatitude + spreadDegrees*(random.Float64()-0.5),
		LongitudeDegrees:       centreLongitude + spreadDegrees*(random.Float64()-0.5),
		BearingDegrees:         360 * random.Float64(),
		SpeedKilometresPerHour: 10 + 30*random.Float64(),
		AltitudeMetres:         50 + 100*random.Float64(),
	}}
}

// MoveTo implements Track.
func (u *Unit) MoveTo(t time.Time) Position {
	seconds := 0.0
	if !u.last.IsZero() {
		seconds = max(0, t.Sub(u.last).Seconds())
	}
	u.last = t
	p := &u.at
	p.BearingDegrees = math.Mod(p.BearingDegrees+360+10*(u.random.Float64()-0.5), 360)
	p.SpeedKilometresPerHour = min(max(p.SpeedKilometresPerHour+2*(u.random.Float64()-0.5), 0), maxSpeedKilometresPerHour)
	metres := p.SpeedKilometresPerHour / 3.6 * seconds
	sin, cos := math.Sincos(p.BearingDegrees * math.Pi / 180)
	p.LatitudeDegrees += metres * cos / metresPerDegree
	p.LongitudeDegrees += metres * sin / (metresPerDegree * math.Cos(centreLatitude*math.Pi/180))
	return *p
}
