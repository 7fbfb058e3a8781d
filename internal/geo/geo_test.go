package geo_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"vignette.dev/vignette/internal/geo"
)

func TestDistanceIsAStraightLineWithAltitudes(t *testing.T) {
	a := geo.Position{Latitude: 58.2, Longitude: 7.97, Altitude: 10}
	above := a
	above.Altitude = 1010
	if d := geo.Distance(a, above); math.Abs(d-1000) > 1e-6 {
		t.Errorf("distance straight up is %v: want 1000", d)
	}
	antipode := geo.Distance(geo.Position{}, geo.Position{Longitude: 180})
	if math.Abs(antipode-2*geo.SemiMajorAxis) > 1e-6 {
		t.Errorf("distance through the Earth is %v", antipode)
	}
}

func randomPosition(random *rand.Rand) geo.Position {
	return geo.Position{Latitude: 178*random.Float64() - 89, Longitude: 360*random.Float64() - 180, Altitude: 10_000*random.Float64() - 500}
}

func TestCoordinatesGoToEarthCentredOnesAndBack(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		p := randomPosition(random)
		if q := geo.FromECEF(p.ECEF()); geo.Distance(p, q) > 1e-6 {
			t.Fatalf("%v comes back as %v", p, q)
		}
		f := geo.NewFrame(p)
		near := geo.Vector{X: 10_000 * random.NormFloat64(), Y: 10_000 * random.NormFloat64(), Z: 100 * random.NormFloat64()}
		if back := f.ENU(f.FromENU(near)); back.Sub(near).Length() > 1e-5 {
			t.Fatalf("%v comes back as %v", near, back)
		}
	}
	for _, latitude := range []float64{90, -90} {
		p := geo.Position{Latitude: latitude, Altitude: 100}
		if q := geo.FromECEF(p.ECEF()); math.Abs(q.Latitude-latitude) > 1e-9 || math.Abs(q.Altitude-100) > 1e-6 {
			t.Errorf("the pole comes back as %v", q)
		}
	}
}

func TestPositionsThatAreNoneAreRefused(t *testing.T) {
	for _, p := range []geo.Position{{Latitude: 90.1}, {Latitude: math.NaN()}, {Longitude: 361}, {Longitude: math.Inf(1)}, {Altitude: math.NaN()}} {
		if p.Validate() == nil {
			t.Errorf("%v is taken for a position", p)
		}
	}
	if err := (geo.Position{Latitude: -90, Longitude: 180, Altitude: -400}).Validate(); err != nil {
		t.Error(err)
	}
}
