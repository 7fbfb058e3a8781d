package propagation

import (
	"context"
	"math"
	"testing"

	"vignette.dev/vignette/internal/terrain"
)

func TestKnifeEdgeLossIsTheRecommendationsFormula(t *testing.T) {
	// J(0) is the 6.0 dB of half the field; the others are the formula worked out by hand.
	for nu, want := range map[float64]float64{-1: 0, -0.78: 0, 0: 6.0329, 1: 13.9257, 2.4: 20.5393, -0.5: 1.9592} {
		near(t, "J", KnifeEdgeLoss(nu), want, 0.0002)
	}
}

// fresnelLoss is the exact loss behind a knife edge, from the Fresnel integrals by Simpson's rule: ITU-R P.526 equation (30).
func fresnelLoss(nu float64) float64 {
	const n = 200000
	c, s := 0.0, 0.0
	h := nu / n
	for i := 0; i <= n; i++ {
		weight := 2 + 2*float64(i%2)
		if i == 0 || i == n {
			weight = 1
		}
		sine, cosine := math.Sincos(math.Pi / 2 * float64(i) * h * float64(i) * h)
		c, s = c+weight*cosine*h/3, s+weight*sine*h/3
	}
	return -20 * math.Log10(math.Hypot(1-c-s, c-s)/2)
}

func TestKnifeEdgeLossIsNearTheFresnelIntegrals(t *testing.T) {
	for nu := -0.75; nu < 10; nu += 0.25 {
		near(t, "J", KnifeEdgeLoss(nu), fresnelLoss(nu), 0.5)
	}
}

// knifeEdge is flat ground at sea level with one point that stands out.
func knifeEdge(points, at int, height float64) []float64 {
	ground := make([]float64, points)
	ground[at] = height
	return ground
}

func TestBullingtonOfOneEdgeIsThatKnifeEdge(t *testing.T) {
	const metres, points = 10_000.0, 101
	for name, c := range map[string]struct {
		at                            int
		height, transmitter, receiver float64
	}{
		"in the middle, 100 m":      {50, 100, 10, 10},
		"near the transmitter":      {10, 60, 10, 10},
		"unequal antennas":          {30, 150, 40, 5},
		"grazing the line of sight": {50, 10, 10, 10},
		"just below it":             {50, 9, 12, 12},
	} {
		p := Path{Metres: metres, Ground: knifeEdge(points, c.at, c.height), Transmitter: c.transmitter, Receiver: c.receiver,
			FrequencyHertz: 300e6, EffectiveRadiusMetres: 1e15}
		d1 := metres * float64(c.at) / (points - 1)
		d2 := metres - d1
		above := c.height - (c.transmitter*d2+c.receiver*d1)/metres
		j := KnifeEdgeLoss(above * math.Sqrt(2/(SpeedOfLight/300e6)*(1/d1+1/d2)))
		near(t, name, bullingtonLoss(&p), j+(1-math.Exp(-j/6))*(10+0.02*10), 1e-6)
	}
}

// bullingtonLoss in dB beside that of free space: ITU-R P.526-15 §4.5.1.
func bullingtonLoss(p *Path) float64 {
	seen := p.viewOf(1)
	return p.bullington(&seen, 1)
}

func TestTheEarthsBulgeIsAnObstacle(t *testing.T) {
	p := Path{Metres: 60_000, Ground: make([]float64, 601), Transmitter: 30, Receiver: 30, FrequencyHertz: 300e6}
	bulge := 30_000.0 * 30_000 / (2 * DefaultEffectiveRadiusMetres)
	slope := 0.0
	for i := 1; i < 600; i++ {
		d := float64(i) * 100
		slope = max(slope, (d*(60_000-d)/(2*DefaultEffectiveRadiusMetres)-30)/d)
	}
	// Both horizon rays rise by that slope and meet in the middle.
	j := KnifeEdgeLoss(slope * 30_000 * math.Sqrt(2/(SpeedOfLight/300e6)*(2/30_000.0)))
	near(t, "60 km over the sea", bullingtonLoss(&p), j+(1-math.Exp(-j/6))*(10+0.02*60), 1e-6)
	if bulge < 30 {
		t.Fatal("the example must be beyond the horizon")
	}
}

func TestDiffractionIsFreeSpaceOverADeepValley(t *testing.T) {
	a, b := eastOf(0, 500), eastOf(5000, 500)
	near(t, "500 m above the sea", Diffraction{}.Pathloss(a, b, 3e9), FreeSpace{}.Pathloss(a, b, 3e9), 1e-9)
}

func TestDiffractionOverFlatGroundApproachesTwoRay(t *testing.T) {
	// Both describe the ray that the ground reflects, P.526 with the ground's own constants.
	for _, metres := range []float64{2000, 4000} {
		a, b := eastOf(0, 10), eastOf(metres, 10)
		near(t, "flat ground", Diffraction{EffectiveRadiusMetres: 1e9}.Pathloss(a, b, 150e6), TwoRay{}.Pathloss(a, b, 150e6), 3)
	}
}

func TestAHillBetweenMakesMoreLossThanNone(t *testing.T) {
	hills := terrain.Synthetic(1)
	more := 0
	for i := range 100 {
		a, b := at(58.17, 7.95+float64(i)*5e-4, 0), at(58.20, 7.95+float64(i)*5e-4, 0)
		groundA, _ := hills.Elevation(a.Latitude, a.Longitude)
		groundB, _ := hills.Elevation(b.Latitude, b.Longitude)
		a.Altitude, b.Altitude = groundA+3, groundB+3
		loss := Diffraction{Terrain: hills}.Pathloss(a, b, 300e6)
		free := FreeSpace{}.Pathloss(a, b, 300e6)
		if loss < free || loss > free+120 {
			t.Fatalf("%v dB where free space has %v", loss, free)
		}
		if loss > free+25 {
			more++
		}
	}
	if more < 20 {
		t.Errorf("only %d of 100 paths of 3.3 km are shadowed by hills of 150 m", more)
	}
}

func TestDiffractionOverUnknownTerrainIsNotKnown(t *testing.T) {
	grid, err := terrain.Raster(t.Context(), terrain.Flat(0), terrain.Place{Latitude: 58, Longitude: 7}, terrain.Place{Latitude: 58.1, Longitude: 7.1}, 100)
	if err != nil {
		t.Fatal(err)
	}
	if loss := (Diffraction{Terrain: grid}).Pathloss(at(58.05, 7.05, 3), at(58.5, 7.05, 3), 300e6); !math.IsNaN(loss) {
		t.Errorf("got %v", loss)
	}
}

func TestAnAntennaBelowTheGroundLiesOnIt(t *testing.T) {
	m := Diffraction{Terrain: terrain.Flat(100)}
	near(t, "altitude 0 on a plateau of 100 m", m.Pathloss(eastOf(0, 0), eastOf(3000, 0), 300e6)-m.Pathloss(eastOf(0, 100), eastOf(3000, 100), 300e6), 0, 0.001)
}

// The geodesic is that of C. Karney's GeographicLib.
func TestTheDistanceAlongTheGroundIsTheGeodesic(t *testing.T) {
	a, b := at(58.17, 7.95, 300), at(58.6, 8.4, 20)
	near(t, "55 km", groundMetres(a, b), 54652.158, 0.1)
}

func BenchmarkDiffraction(b *testing.B) {
	grid, err := terrain.Raster(context.Background(), terrain.Synthetic(1), terrain.Place{Latitude: 58.1, Longitude: 7.9}, terrain.Place{Latitude: 58.3, Longitude: 8.1}, 50)
	if err != nil {
		b.Fatal(err)
	}
	from, to := at(58.17, 7.95, 300), at(58.19, 7.98, 300)
	b.ReportAllocs()
	for b.Loop() {
		Diffraction{Terrain: grid}.Pathloss(from, to, 300e6)
	}
}

func BenchmarkShadowing(b *testing.B) {
	s := NewShadowing(1, 6, 50)
	from, to := at(58.17, 7.95, 300), at(58.19, 7.98, 300)
	b.ReportAllocs()
	for b.Loop() {
		s.DB(from, to)
	}
}
