package terrain

import "math"

// Hills are synthetic ground: fractal noise that is the same for the same seed, on every machine.
//
// The noise is a sum of octaves of value noise on a lattice in space (K. Perlin, "An Image Synthesizer", SIGGRAPH 1985, has the
// construction; the lattice's numbers here come from SplitMix64). Products are rounded one by one, since a processor that
// fuses multiplication and addition would otherwise give other hills.
type Hills struct {
	Seed int64
	// BaseMetres is the mean elevation, HeightMetres the largest height of the longest waves above it.
	BaseMetres, HeightMetres float64
	// WavelengthMetres of the longest waves; each octave halves it and the height.
	WavelengthMetres float64
	Octaves          int
}

// Synthetic hills as on Norway's southern coast: valleys a kilometre or two apart, some 150 m deep.
func Synthetic(seed int64) *Hills {
	return &Hills{Seed: seed, BaseMetres: 250, HeightMetres: 200, WavelengthMetres: 1800, Octaves: 6}
}

// Elevation of the hills; it is known everywhere.
func (h *Hills) Elevation(latitude, longitude float64) (metres float64, ok bool) {
	sinLatitude, cosLatitude := sincos(latitude / 2)
	sinLongitude, cosLongitude := sincos(wrap(longitude) / 2)
	// The angles from their halves, so that the series covers a quarter turn only.
	z := float64(2 * sinLatitude * cosLatitude)
	across := 1 - float64(2*sinLatitude*sinLatitude)
	x := float64(across * (1 - float64(2*sinLongitude*sinLongitude)))
	y := float64(across * float64(2*sinLongitude*cosLongitude))
	wavelength, height := h.WavelengthMetres, h.HeightMetres
	metres = h.BaseMetres
	for octave := range h.Octaves {
		scale := earthRadiusMetres / wavelength
		metres += float64(height * h.noise(uint64(octave), float64(x*scale), float64(y*scale), float64(z*scale)))
		wavelength, height = wavelength/2, height/2
	}
	return metres, true
}

// noise from -1 to 1, continuous with its first two derivatives.
func (h *Hills) noise(octave uint64, x, y, z float64) float64 {
	fx, fy, fz := math.Floor(x), math.Floor(y), math.Floor(z)
	u, v, w := smooth(x-fx), smooth(y-fy), smooth(z-fz)
	ix, iy, iz := int64(fx), int64(fy), int64(fz)
	var plane [2]float64
	for k := range int64(2) {
		south := mix(h.lattice(octave, ix, iy, iz+k), h.lattice(octave, ix+1, iy, iz+k), u)
		north := mix(h.lattice(octave, ix, iy+1, iz+k), h.lattice(octave, ix+1, iy+1, iz+k), u)
		plane[k] = mix(south, north, v)
	}
	return mix(plane[0], plane[1], w)
}

// lattice is a number from -1 to 1 that depends on the place in the lattice and the seed.
func (h *Hills) lattice(octave uint64, x, y, z int64) float64 {
	s := uint64(h.Seed)
	for _, v := range [...]uint64{octave, uint64(x), uint64(y), uint64(z)} {
		s = splitMix(s ^ v)
	}
	return float64(int64(s>>11))/(1<<52) - 1
}

func splitMix(s uint64) uint64 {
	s += 0x9e3779b97f4a7c15
	s = (s ^ s>>30) * 0xbf58476d1ce4e5b9
	s = (s ^ s>>27) * 0x94d049bb133111eb
	return s ^ s>>31
}

func mix(a, b, share float64) float64 { return a + float64(share*(b-a)) }

// smooth is 6t⁵ - 15t⁴ + 10t³.
func smooth(t float64) float64 {
	s := float64(t*6) - 15
	s = float64(t*s) + 10
	return float64(float64(t*t) * float64(t*s))
}

// sincos of -90 to 90 degrees by Taylor's series, each product rounded.
func sincos(degrees float64) (sine, cosine float64) {
	x := degrees * (math.Pi / 180)
	square := float64(x * x)
	sine, cosine = 1, 1
	for k := 24; k >= 2; k -= 2 {
		cosine = 1 - float64(square*cosine)/float64(k*(k-1))
		sine = 1 - float64(square*sine)/float64(k*(k+1))
	}
	return float64(x * sine), cosine
}
