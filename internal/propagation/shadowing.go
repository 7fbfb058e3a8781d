package propagation

import (
	"math"
	"math/rand/v2"

	"vignette.dev/vignette/internal/geo"
)

// sinusoids in the sum. With their number the field's distribution approaches the normal one.
const sinusoids = 64

// Shadowing is a normally distributed field in dB over pairs of places, with mean zero. A pair always has the
// same value, in both directions. When its ends move by a and b metres, the correlation with the previous
// value is exp(-a/D) exp(-b/D): Gudmundson's correlation at each end (Electronics Letters 27, 1991; for two
// moving ends Wang, Tameh, Nix, IEEE Trans. Vehicular Technology 57, 2008).
//
// The field is a sum of sinusoids in both positions. Their wave vectors are drawn from the spectrum of that
// correlation, a multivariate Cauchy distribution of scale 1/D.
type Shadowing struct {
	deviationDB, distanceMetres float64
	waves                       [sinusoids]wave
}

// wave vectors in radians per metre, and a phase in radians.
type wave struct {
	first, second [3]float64
	phase         float64
}

// NewShadowing with a standard deviation in dB and the distance in metres over which correlation falls to 1/e.
func NewShadowing(seed int64, deviationDB, distanceMetres float64) *Shadowing {
	s := &Shadowing{deviationDB: deviationDB, distanceMetres: distanceMetres}
	random := rand.New(rand.NewPCG(uint64(seed), 0x736861646f77))
	cauchy := func() (k [3]float64) {
		scale := distanceMetres * math.Abs(random.NormFloat64())
		for i := range k {
			k[i] = random.NormFloat64() / scale
		}
		return k
	}
	for i := range s.waves {
		s.waves[i] = wave{first: cauchy(), second: cauchy(), phase: 2 * math.Pi * random.Float64()}
	}
	return s
}

// DB of shadowing between two places.
func (s *Shadowing) DB(from, to geo.Position) float64 {
	a, b := cartesian(from), cartesian(to)
	sum := 0.0
	for i := range s.waves {
		w := &s.waves[i]
		sum += math.Cos(dot(w.first, a)+dot(w.second, b)+w.phase) + math.Cos(dot(w.first, b)+dot(w.second, a)+w.phase)
	}
	// Both directions are one field added to its mirror image. If the ends are close the two are alike, and
	// their sum would deviate more.
	apart := math.Sqrt((a[0]-b[0])*(a[0]-b[0]) + (a[1]-b[1])*(a[1]-b[1]) + (a[2]-b[2])*(a[2]-b[2]))
	return s.deviationDB * sum / math.Sqrt(sinusoids*(1+math.Exp(-2*apart/s.distanceMetres)))
}

func dot(a, b [3]float64) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

// cartesian metres of a place, without altitude, because shadowing objects stand on the ground.
func cartesian(p geo.Position) [3]float64 {
	p.Altitude = 0
	v := p.ECEF()
	return [3]float64{v.X, v.Y, v.Z}
}
