package geo_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"vignette.dev/vignette/internal/geo"
)

func dms(degrees, minutes, seconds float64) float64 { return degrees + minutes/60 + seconds/3600 }

// The reference values: Flinders Peak to Buninyong from Geoscience Australia's Geocentric Datum of Australia Technical Manual
// (GRS 80, which differs from WGS 84 by less than a tenth of a millimetre here); quarter meridian and degrees of the equator
// from WGS 84's definition.
func TestGroundDistancesAndBearingsAreThoseOfTheEllipsoid(t *testing.T) {
	flinders := geo.Position{Latitude: -dms(37, 57, 3.72030), Longitude: dms(144, 25, 29.52440)}
	buninyong := geo.Position{Latitude: -dms(37, 39, 10.15610), Longitude: dms(143, 55, 35.38390)}
	for name, c := range map[string]struct {
		from, to        geo.Position
		metres, bearing float64
		tolerance       float64
	}{
		"Flinders Peak to Buninyong": {flinders, buninyong, 54972.271, dms(306, 52, 5.37), 0.001},
		"and back":                   {buninyong, flinders, 54972.271, dms(127, 10, 25.07), 0.001},
		"a degree of the equator":    {geo.Position{}, geo.Position{Longitude: 1}, geo.SemiMajorAxis * math.Pi / 180, 90, 0.001},
		"equator to pole":            {geo.Position{Longitude: 8}, geo.Position{Latitude: 90, Longitude: 8}, 10001965.729, 0, 0.001},
		"over the date line":         {geo.Position{Longitude: 179.5}, geo.Position{Longitude: -179.5}, geo.SemiMajorAxis * math.Pi / 180, 90, 0.001},
		"the same place":             {flinders, flinders, 0, 0, 0},
		"nearly antipodal":           {geo.Position{}, geo.Position{Latitude: 0.5, Longitude: 179.7}, 19936288.579, 25.67, 120_000},
	} {
		t.Run(name, func(t *testing.T) {
			if got := geo.Ground(c.from, c.to); math.Abs(got-c.metres) > c.tolerance {
				t.Errorf("ground distance is %.4f m: want %.4f", got, c.metres)
			}
			if got := geo.Bearing(c.from, c.to); c.tolerance < 1 && math.Abs(got-c.bearing) > 1e-5 {
				t.Errorf("bearing is %.6f: want %.6f", got, c.bearing)
			}
		})
	}
}

func TestDistanceIsAStraightLineWithAltitudes(t *testing.T) {
	a := geo.Position{Latitude: 58.2, Longitude: 7.97, Altitude: 10}
	above := a
	above.Altitude = 1010
	if d := geo.Distance(a, above); math.Abs(d-1000) > 1e-6 {
		t.Errorf("distance straight up is %v: want 1000", d)
	}
	if d := geo.Elevation(a, above); math.Abs(d-90) > 1e-4 {
		t.Errorf("elevation straight up is %v: want 90", d)
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

func TestADriveEndsWhereItsBearingAndLengthSay(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	for range 500 {
		from := geo.Position{Latitude: 120*random.Float64() - 60, Longitude: 360*random.Float64() - 180, Altitude: 50}
		bearing, metres := 360*random.Float64(), 1+10_000*random.Float64()
		to := geo.Destination(from, bearing, metres)
		if got := geo.Ground(from, to); math.Abs(got-metres) > 0.1 {
			t.Fatalf("%g m to %g degrees from %v are %g m", metres, bearing, from, got)
		}
		if off := math.Abs(math.Remainder(geo.Bearing(from, to)-bearing, 360)); off*metres > 10 {
			t.Fatalf("%g m to %g degrees from %v are off by %g degrees", metres, bearing, from, off)
		}
		if to.Altitude != 50 {
			t.Fatalf("altitude is %g: want 50", to.Altitude)
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
