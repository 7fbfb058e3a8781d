// Package terrain gives the height of the ground, read from a grid or generated from a seed.
package terrain

import "math"

// Surface is the ground. Its methods may be called by several goroutines at once.
type Surface interface {
	// Elevation above mean sea level in metres at a place given in degrees; ok is false if it is unknown.
	Elevation(latitude, longitude float64) (metres float64, ok bool)
}

// Flat ground at its height above mean sea level, everywhere.
type Flat float64

// Elevation is the same everywhere.
func (f Flat) Elevation(_, _ float64) (metres float64, ok bool) { return float64(f), true }

// Place on the ground in degrees.
type Place struct{ Latitude, Longitude float64 }

// exactSpacingMetres is the spacing of a great circle's points that are computed exactly. Between them latitude and
// longitude are interpolated linearly. The error is below 1 m up to 60 degrees of latitude and 5 m up to 84.
const exactSpacingMetres = 5000

// earthRadiusMetres is the mean radius of the Earth.
const earthRadiusMetres = 6371008.8

// Profile fills heights with the elevation at equally spaced places along the great circle, from one end to
// the other. It needs at least two heights. ok is false if one of them is unknown.
func Profile(ground Surface, from, to Place, heights []float64) (ok bool) {
	arc := newArc(from, to)
	n := len(heights) - 1
	knots := min(n, int(arc.metres()/exactSpacingMetres)+1)
	knot, start, end := -1, from, from
	for i := range heights {
		along := float64(i) / float64(n) * float64(knots)
		for knot < min(int(along), knots-1) {
			knot++
			start, end = end, to
			if knot < knots-1 {
				end = arc.at(float64(knot+1) / float64(knots))
			}
		}
		share := along - float64(knot)
		latitude := start.Latitude + share*(end.Latitude-start.Latitude)
		longitude := wrap(start.Longitude + share*wrap(end.Longitude-start.Longitude))
		if heights[i], ok = ground.Elevation(latitude, longitude); !ok {
			return false
		}
	}
	return true
}

// wrap brings a longitude into -180 … 180 degrees.
func wrap(longitude float64) float64 {
	if longitude > 180 {
		return longitude - 360
	}
	if longitude < -180 {
		return longitude + 360
	}
	return longitude
}

// arc of a great circle.
type arc struct {
	a, b  [3]float64
	angle float64
}

func newArc(from, to Place) arc {
	a, b := unit(from), unit(to)
	cross := [3]float64{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
	sine := math.Sqrt(cross[0]*cross[0] + cross[1]*cross[1] + cross[2]*cross[2])
	return arc{a: a, b: b, angle: math.Atan2(sine, a[0]*b[0]+a[1]*b[1]+a[2]*b[2])}
}

func unit(p Place) [3]float64 {
	sinLatitude, cosLatitude := math.Sincos(p.Latitude * math.Pi / 180)
	sinLongitude, cosLongitude := math.Sincos(p.Longitude * math.Pi / 180)
	return [3]float64{cosLatitude * cosLongitude, cosLatitude * sinLongitude, sinLatitude}
}

func (c arc) metres() float64 { return c.angle * earthRadiusMetres }

// at returns the place at a share, 0 to 1, of the arc.
func (c arc) at(share float64) Place {
	s := math.Sin(c.angle)
	u, v := math.Sin((1-share)*c.angle)/s, math.Sin(share*c.angle)/s
	x, y, z := u*c.a[0]+v*c.b[0], u*c.a[1]+v*c.b[1], u*c.a[2]+v*c.b[2]
	return Place{Latitude: math.Atan2(z, math.Hypot(x, y)) * 180 / math.Pi, Longitude: math.Atan2(y, x) * 180 / math.Pi}
}
