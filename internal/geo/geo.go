// Package geo has positions on the WGS 84 ellipsoid, the distances between them, and a local flat frame.
package geo

import (
	"fmt"
	"math"
)

// Position on the WGS 84 ellipsoid.
type Position struct {
	// Latitude and Longitude in degrees, north and east positive.
	Latitude, Longitude float64
	// Altitude in metres. Scenario files do not say above what; all code takes it as above the ellipsoid.
	Altitude float64
}

// Velocity of a platform.
type Velocity struct {
	// Azimuth in degrees clockwise from true north, Elevation in degrees above the horizon.
	Azimuth, Elevation float64
	// Speed in metres per second.
	Speed float64
}

// Orientation of a platform's body in degrees.
type Orientation struct{ Pitch, Roll, Yaw float64 }

// The defining parameters of WGS 84 (NIMA TR8350.2), in metres, and what follows from them.
const (
	SemiMajorAxis       = 6378137.0
	Flattening          = 1 / 298.257223563
	semiMinorAxis       = SemiMajorAxis * (1 - Flattening)
	eccentricitySquared = Flattening * (2 - Flattening)
	// MeanRadius of the Earth, (2a+b)/3 (IUGG), in metres.
	MeanRadius = (2*SemiMajorAxis + semiMinorAxis) / 3
)

// Validate returns what is wrong with a position, or nil.
func (p Position) Validate() error {
	switch {
	case !(math.Abs(p.Latitude) <= 90):
		return fmt.Errorf("latitude is %v: want degrees from -90 to 90", p.Latitude)
	case !(math.Abs(p.Longitude) <= 360):
		return fmt.Errorf("longitude is %v: want degrees from -180 to 180", p.Longitude)
	case !(math.Abs(p.Altitude) <= 1e8):
		return fmt.Errorf("altitude is %v: want metres", p.Altitude)
	}
	return nil
}

// Vector of Cartesian coordinates in metres.
type Vector struct{ X, Y, Z float64 }

// Sub is v - w.
func (v Vector) Sub(w Vector) Vector { return Vector{v.X - w.X, v.Y - w.Y, v.Z - w.Z} }

// Length of the vector in metres.
func (v Vector) Length() float64 { return math.Sqrt(v.X*v.X + v.Y*v.Y + v.Z*v.Z) }

// ECEF returns the Earth-centred, Earth-fixed coordinates of a position. For many distances between the same
// positions, differences of these are much cheaper than Distance.
func (p Position) ECEF() Vector {
	sinLat, cosLat := math.Sincos(radians(p.Latitude))
	sinLon, cosLon := math.Sincos(radians(p.Longitude))
	n := SemiMajorAxis / math.Sqrt(1-eccentricitySquared*sinLat*sinLat)
	return Vector{
		X: (n + p.Altitude) * cosLat * cosLon,
		Y: (n + p.Altitude) * cosLat * sinLon,
		Z: (n*(1-eccentricitySquared) + p.Altitude) * sinLat,
	}
}

// FromECEF returns the position with these Earth-centred coordinates, exact to a micrometre near the surface
// (Bowring's formula, iterated).
func FromECEF(v Vector) Position {
	p := math.Hypot(v.X, v.Y)
	if p < 1e-9 {
		return Position{Latitude: math.Copysign(90, v.Z), Altitude: math.Abs(v.Z) - semiMinorAxis}
	}
	const secondEccentricitySquared = eccentricitySquared / (1 - eccentricitySquared)
	reduced := math.Atan2(v.Z, (1-Flattening)*p)
	var latitude float64
	for range 4 {
		s, c := math.Sincos(reduced)
		latitude = math.Atan2(v.Z+secondEccentricitySquared*semiMinorAxis*s*s*s, p-eccentricitySquared*SemiMajorAxis*c*c*c)
		reduced = math.Atan2((1-Flattening)*math.Sin(latitude), math.Cos(latitude))
	}
	sinLat, cosLat := math.Sincos(latitude)
	n := SemiMajorAxis / math.Sqrt(1-eccentricitySquared*sinLat*sinLat)
	altitude := p*cosLat + v.Z*sinLat - SemiMajorAxis*SemiMajorAxis/n
	return Position{Latitude: degrees(latitude), Longitude: degrees(math.Atan2(v.Y, v.X)), Altitude: altitude}
}

// Distance in metres along the straight line between two positions, with altitudes: the path of a radio wave
// in free space.
func Distance(a, b Position) float64 { return a.ECEF().Sub(b.ECEF()).Length() }

// Interpolate between two positions: latitude, longitude (the shorter way round) and altitude change
// linearly, from a at fraction 0 to b at fraction 1. Between two fixes of a vehicle the difference from the
// shortest path is far below a fix's error.
func Interpolate(a, b Position, fraction float64) Position {
	return Position{
		Latitude:  a.Latitude + fraction*(b.Latitude-a.Latitude),
		Longitude: normalise(a.Longitude + fraction*normalise(b.Longitude-a.Longitude)),
		Altitude:  a.Altitude + fraction*(b.Altitude-a.Altitude),
	}
}

// normalise a longitude into [-180, 180].
func normalise(longitude float64) float64 {
	if longitude >= -180 && longitude <= 180 {
		return longitude
	}
	return math.Remainder(longitude, 360)
}

func radians(deg float64) float64 { return deg * (math.Pi / 180) }
func degrees(rad float64) float64 { return rad * (180 / math.Pi) }
