package propagation

import (
	"math"
	"math/rand/v2"
	"testing"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/terrain"
)

func at(latitude, longitude, altitude float64) geo.Position {
	return geo.Position{Latitude: latitude, Longitude: longitude, Altitude: altitude}
}

// eastOf is that many metres east of a place on the equator, along the ellipsoid.
func eastOf(metres, altitude float64) geo.Position {
	return at(0, metres/geo.SemiMajorAxis*180/math.Pi, altitude)
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s: got %v; want %v ± %v", what, got, want, within)
	}
}

func TestFreeSpaceIsWhatEMANEGivesForTheSamePositions(t *testing.T) {
	near(t, "a thousandth of a degree", FreeSpace{}.Pathloss(at(40, -74, 3), at(40.001, -74, 3), 2.4e9), 80.961, 0.0005)
	near(t, "a hundredth of a degree", FreeSpace{}.Pathloss(at(40, -74, 3), at(40.01, -74, 3), 2.4e9), 100.961, 0.0005)
}

func TestFreeSpaceLossIsITURP525s(t *testing.T) {
	near(t, "1 km at 1 MHz", FreeSpaceLoss(1000, 1e6), 32.4478, 0.0001)
	near(t, "twice the distance", FreeSpaceLoss(2000, 3e8)-FreeSpaceLoss(1000, 3e8), 20*math.Log10(2), 1e-12)
	near(t, "one place", FreeSpaceLoss(0, 3e8), 0, 0)
}

func TestTwoRayIsItsClosedFormFarAway(t *testing.T) {
	a, b := eastOf(0, 3), eastOf(2000, 5)
	near(t, "2 km", TwoRay{}.Pathloss(a, b, 300e6), 40*math.Log10(geo.Distance(a, b))-20*math.Log10(15), 1e-9)
	near(t, "twice as far", TwoRay{}.Pathloss(a, eastOf(4000, 5), 300e6)-TwoRay{}.Pathloss(a, b, 300e6), 40*math.Log10(2), 0.001)
	near(t, "one place", TwoRay{}.Pathloss(a, a, 300e6), 0, 0)
	if loss := (TwoRay{}).Pathloss(a, eastOf(2000, 0), 300e6); !math.IsInf(loss, 1) {
		t.Errorf("an antenna on the ground: %v", loss)
	}
}

func TestTwoRayAndFreeSpaceMeetAtTheCrossoverDistance(t *testing.T) {
	crossover := CrossoverMetres(3, 5, 300e6)
	near(t, "4π·3·5/λ", crossover, 188.62, 0.01)
	for distance, excess := range map[float64]float64{crossover / 2: 0, crossover: 0, 2 * crossover: 20 * math.Log10(2)} {
		a, b := eastOf(0, 3), eastOf(distance, 5)
		near(t, "loss beside free space", TwoRay{}.Pathloss(a, b, 300e6)-FreeSpace{}.Pathloss(a, b, 300e6), excess, 0.001)
	}
}

func TestTwoRayIsNeverBelowFreeSpace(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		a, b := eastOf(0, math.Exp(7*random.Float64())), eastOf(math.Exp(12*random.Float64()), math.Exp(7*random.Float64()))
		hertz := 30e6 * math.Exp(5*random.Float64())
		if two, free := (TwoRay{}).Pathloss(a, b, hertz), (FreeSpace{}).Pathloss(a, b, hertz); two < free {
			t.Fatalf("from %v to %v at %v Hz: %v dB; free space has %v", a, b, hertz, two, free)
		}
	}
}

func TestTheHorizonOfTwoAntennasOf10MetresIs26Kilometres(t *testing.T) {
	near(t, "4.12 (√10 + √10) km", HorizonMetres(10, 10), 26077, 1)
}

func TestTwoRayMeasuresHeightsAboveItsGround(t *testing.T) {
	low, high := TwoRay{}.Pathloss(eastOf(0, 3), eastOf(2000, 3), 300e6), TwoRay{Ground: terrain.Flat(200)}.Pathloss(eastOf(0, 203), eastOf(2000, 203), 300e6)
	near(t, "on a plateau", high, low, 0.001)
	if loss := (TwoRay{Ground: &terrain.Grid{CellLatitude: 1, CellLongitude: 1}}).Pathloss(eastOf(0, 3), eastOf(2000, 3), 300e6); !math.IsNaN(loss) {
		t.Errorf("unknown ground: %v", loss)
	}
}

func TestLogDistanceIsItsClosedForm(t *testing.T) {
	a := eastOf(0, 3)
	for _, exponent := range []float64{2, 3, 4.5} {
		want := 20*math.Log10(4*math.Pi*300e6/SpeedOfLight) + 10*exponent*math.Log10(1000)
		near(t, "1 km", LogDistance{Exponent: exponent}.Pathloss(a, eastOf(1000, 3), 300e6), want, 0.001)
	}
	near(t, "exponent 2 is free space", LogDistance{Exponent: 2}.Pathloss(a, eastOf(700, 3), 300e6), FreeSpaceLoss(geo.Distance(a, eastOf(700, 3)), 300e6), 1e-9)
	near(t, "one place has the loss of 1 m", LogDistance{Exponent: 3}.Pathloss(a, a, 300e6), 20*math.Log10(4*math.Pi*300e6/SpeedOfLight), 1e-9)
}

// moments of pairs of values.
type moments struct{ n, x, y, xx, yy, xy, x4 float64 }

func (m *moments) add(x, y float64) {
	m.n, m.x, m.y, m.xx, m.yy, m.xy, m.x4 = m.n+1, m.x+x, m.y+y, m.xx+x*x, m.yy+y*y, m.xy+x*y, m.x4+x*x*x*x
}

func (m *moments) correlation() float64 {
	return (m.xy/m.n - m.x/m.n*m.y/m.n) / math.Sqrt((m.xx/m.n-m.x/m.n*m.x/m.n)*(m.yy/m.n-m.y/m.n*m.y/m.n))
}

func TestShadowingIsNormalAndItsCorrelationFallsExponentiallyAtEachEnd(t *testing.T) {
	const distance = 50.0
	a, b := eastOf(0, 3), eastOf(900, 3)
	for name, c := range map[string]struct{ a, b, correlation float64 }{
		"neither moves":                  {0, 0, 1},
		"one moves by half the distance": {25, 0, math.Exp(-0.5)},
		"one moves by the distance":      {50, 0, math.Exp(-1)},
		"the other moves":                {0, 50, math.Exp(-1)},
		"both move":                      {25, 50, math.Exp(-1.5)},
		"one moves far":                  {400, 0, 0},
	} {
		var m moments
		for seed := range int64(4000) {
			s := NewShadowing(seed, 6, distance)
			m.add(s.DB(a, b), s.DB(eastOf(c.a, 3), eastOf(900+c.b, 3)))
		}
		near(t, name+": correlation", m.correlation(), c.correlation, 0.06)
		near(t, name+": mean", m.x/m.n, 0, 0.35)
		near(t, name+": standard deviation", math.Sqrt(m.xx/m.n), 6, 0.25)
		near(t, name+": kurtosis", m.x4/m.n/(m.xx/m.n*m.xx/m.n), 3, 0.4)
	}
}

func TestShadowingDeviatesAsMuchBetweenCloseEnds(t *testing.T) {
	var m moments
	for seed := range int64(4000) {
		m.add(NewShadowing(seed, 6, 50).DB(eastOf(0, 3), eastOf(10, 3)), 0)
	}
	near(t, "standard deviation", math.Sqrt(m.xx/m.n), 6, 0.25)
}

func TestEveryModelIsReciprocalAndAlwaysGivesTheSame(t *testing.T) {
	hills := terrain.Synthetic(1)
	models := map[string]Model{"FreeSpace": FreeSpace{}, "TwoRay": TwoRay{}, "LogDistance": LogDistance{Exponent: 3, Shadowing: NewShadowing(1, 8, 50)},
		"Diffraction": Diffraction{Terrain: hills}}
	for name, m := range models {
		for i := range 50 {
			a, b := at(58.17+float64(i)*1e-4, 7.95, 300), at(58.2, 7.96+float64(i*i%17)*1e-3, 310)
			there, back := m.Pathloss(a, b, 300e6), m.Pathloss(b, a, 300e6)
			near(t, name+" there and back", there, back, 1e-4)
			if again := m.Pathloss(a, b, 300e6); again != there {
				t.Errorf("%s: %v, then %v", name, there, again)
			}
		}
	}
}

func TestOneSeedIsOneFieldOfShadowing(t *testing.T) {
	a, b := eastOf(0, 3), eastOf(900, 3)
	if NewShadowing(1, 6, 50).DB(a, b) != NewShadowing(1, 6, 50).DB(a, b) || NewShadowing(1, 6, 50).DB(a, b) == NewShadowing(2, 6, 50).DB(a, b) {
		t.Error("the seed, and nothing else, must decide")
	}
}
