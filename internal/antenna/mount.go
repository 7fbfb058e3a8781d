package antenna

import (
	"math"

	"vignette.dev/vignette/internal/geo"
)

// Platform is where an antenna is mounted. Its fields can be compared, to find out whether a gain holds still.
type Platform struct {
	Position geo.Position
	// Orientation and Velocity turn the platform: it faces where it moves to, and is turned from there. All zero, it faces north and is level.
	Orientation geo.Orientation
	Velocity    geo.Velocity
}

// Mount is an antenna's place, from which directions are computed.
type Mount struct {
	centre           geo.Vector
	frame            geo.Frame
	yaw, pitch, roll float64 // radians
	turn             rotation
	placement        Placement
}

// NewMount of an antenna on a platform.
func NewMount(p Platform, placement Placement) Mount {
	const radian = math.Pi / 180
	m := Mount{centre: p.Position.ECEF(), frame: geo.NewFrame(p.Position), placement: placement}
	m.yaw = fullCircle(p.Velocity.Azimuth+p.Orientation.Yaw) * radian
	m.pitch = folded(p.Velocity.Elevation+p.Orientation.Pitch) * radian
	m.roll = p.Orientation.Roll * radian
	m.turn = newRotation(m.yaw, m.pitch, m.roll)
	return m
}

// direction to another antenna in the platform's own frame: azimuth from 0 to below 360 degrees clockwise from ahead, elevation from -90 to 90.
// EMANE turns the other antenna's place by the difference of the platforms' angles, and so does this.
func (m *Mount) direction(to *Mount) (azimuth, elevation float64) {
	d := m.frame.ENUOf(to.centre)
	at := m.turn.apply(Placement{North: d.Y, East: d.X, Up: d.Z})
	if to.placement != (Placement{}) {
		there := newRotation(m.yaw-to.yaw, m.pitch-to.pitch, m.roll-to.roll)
		at = at.plus(there.apply(to.placement))
	}
	at = at.minus(m.placement)
	distance := math.Sqrt(at.North*at.North + at.East*at.East + at.Up*at.Up)
	if distance > 0 {
		elevation = math.Asin(at.Up/distance) * (180 / math.Pi)
	}
	if at.North == 0 && at.East == 0 {
		return 270, elevation // as EMANE has it where there is no azimuth
	}
	// EMANE 1.5 has 360 for exactly south, where it should be 180.
	return fullCircle(math.Atan2(at.East, at.North) * (180 / math.Pi)), elevation
}

// Pointed is an antenna that is turned on its platform.
type Pointed struct {
	*Profile
	// Azimuth and Elevation in degrees that the antenna is turned by.
	Azimuth, Elevation float64
}

// Gain in dBi towards another antenna, with what blocks it, at the mount of this one.
func (p *Pointed) Gain(at, to *Mount) float64 {
	azimuth, elevation := at.direction(to)
	gain := p.Antenna.gain(fullCircle(azimuth-p.Azimuth), folded(elevation-p.Elevation), missingGainDBi)
	if p.Blockage != nil {
		gain += p.Blockage.gain(azimuth, elevation, 0) // what blocks an antenna does not turn with it
	}
	return gain
}

func (p Placement) plus(q Placement) Placement {
	return Placement{p.North + q.North, p.East + q.East, p.Up + q.Up}
}

func (p Placement) minus(q Placement) Placement {
	return Placement{p.North - q.North, p.East - q.East, p.Up - q.Up}
}

// rotation by yaw, then pitch, then roll, of coordinates north, east and up.
type rotation [3][3]float64

func newRotation(yaw, pitch, roll float64) rotation {
	sy, cy := math.Sincos(yaw)
	sp, cp := math.Sincos(pitch)
	sr, cr := math.Sincos(roll)
	return rotation{
		{cy * cp, sy * cp, sp},
		{cy*sp*sr - sy*cr, cy*cr + sy*sp*sr, -cp * sr},
		{-(cy*sp*cr + sy*sr), -(sy*sp*cr - cy*sr), cp * cr},
	}
}

func (r *rotation) apply(v Placement) Placement {
	row := func(i int) float64 { return v.North*r[i][0] + v.East*r[i][1] + v.Up*r[i][2] }
	return Placement{row(0), row(1), row(2)}
}

// fullCircle is an angle from 0 to below 360 degrees.
func fullCircle(degrees float64) float64 {
	if degrees = math.Mod(degrees, 360); degrees < 0 {
		degrees += 360
	}
	if degrees >= 360 { // of a tiny angle below 0
		return 0
	}
	return degrees
}

// folded is an angle from -90 to 90 degrees. As in EMANE, one that points back, such as 100, becomes the opposite one, -80.
func folded(degrees float64) float64 {
	for degrees = fullCircle(degrees); degrees > 90; {
		if degrees < 270 {
			degrees -= 180
		} else {
			degrees -= 360
		}
	}
	return degrees
}
