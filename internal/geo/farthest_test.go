package geo

import (
	"math/rand/v2"
	"testing"
)

func TestTheFarthestPlacesAreThoseOfAllPairs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		places := make([]Vector, random.IntN(12))
		for i := range places {
			places[i] = Vector{X: 1000 * random.Float64(), Y: 1000 * random.Float64(), Z: 50 * random.Float64()}
		}
		beyond := 900 * random.Float64()
		want := beyond
		for i, p := range places {
			for _, q := range places[:i] {
				want = max(want, p.Sub(q).Length())
			}
		}
		a, b, metres, ok := Farthest(places, beyond)
		if metres != want || ok != (want > beyond) || ok && places[a].Sub(places[b]).Length() != want {
			t.Fatalf("places %d and %d, %v m, %t: want %v m beyond %v m", a, b, metres, ok, want, beyond)
		}
	}
}
