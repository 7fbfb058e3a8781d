package geo

import "math"

// Frame is a flat, local frame: X to the east, Y to the north, Z up, in metres from an origin on or near the ellipsoid.
type Frame struct {
	origin                         Position
	centre                         Vector
	sinLat, cosLat, sinLon, cosLon float64
}

// NewFrame with this origin.
func NewFrame(origin Position) Frame {
	f := Frame{origin: origin, centre: origin.ECEF()}
	f.sinLat, f.cosLat = math.Sincos(radians(origin.Latitude))
	f.sinLon, f.cosLon = math.Sincos(radians(origin.Longitude))
	return f
}

// ENU returns a position's coordinates in the frame. They are those of the plane that touches the ellipsoid
// at the origin: a place on the ground 10 km away is 8 m below it.
func (f Frame) ENU(p Position) Vector { return f.ENUOf(p.ECEF()) }

// ENUOf is ENU of a place by its Earth-centred coordinates.
func (f Frame) ENUOf(ecef Vector) Vector {
	d := ecef.Sub(f.centre)
	horizontal := f.cosLon*d.X + f.sinLon*d.Y
	return Vector{
		X: -f.sinLon*d.X + f.cosLon*d.Y,
		Y: -f.sinLat*horizontal + f.cosLat*d.Z,
		Z: f.cosLat*horizontal + f.sinLat*d.Z,
	}
}

// FromENU returns the position with these coordinates in the frame: the reverse of ENU.
func (f Frame) FromENU(v Vector) Position {
	horizontal := -f.sinLat*v.Y + f.cosLat*v.Z
	return FromECEF(Vector{
		X: f.centre.X - f.sinLon*v.X + f.cosLon*horizontal,
		Y: f.centre.Y + f.cosLon*v.X + f.sinLon*horizontal,
		Z: f.centre.Z + f.cosLat*v.Y + f.sinLat*v.Z,
	})
}

// Position returns the place X metres east and Y metres north of the origin along the curved surface, Z
// metres above the origin's altitude. Generators of movement place platforms so, on a flat map. Distances
// between such places are true to 1 part in 100 000 within 20 km of the origin.
func (f Frame) Position(v Vector) Position {
	p := f.FromENU(Vector{X: v.X, Y: v.Y})
	p.Altitude = f.origin.Altitude + v.Z
	return p
}

// VelocityBetween is the velocity of an even movement from one position to another in some seconds.
func VelocityBetween(from, to Position, seconds float64) Velocity {
	d := NewFrame(from).ENU(to)
	// The altitude, not the height above a plane: on a curved surface level movement has no elevation.
	climb, level := to.Altitude-from.Altitude, math.Hypot(d.X, d.Y)
	v := Velocity{Speed: math.Hypot(level, climb) / seconds, Elevation: degrees(math.Atan2(climb, level))}
	if level > 0 {
		v.Azimuth = math.Mod(degrees(math.Atan2(d.X, d.Y))+360, 360)
	}
	return v
}
