package dataplane

import (
	"math"
	"testing"

	"vignette.dev/vignette/internal/radio"
)

func TestPathlossToManyIsThatToEach(t *testing.T) {
	unknown := float32(math.NaN())
	for name, c := range map[string]struct {
		from int
		want []float64
	}{
		"the first member":  {5, []float64{80, math.NaN(), 60, math.NaN()}},
		"the last member":   {9, []float64{math.NaN(), math.NaN(), 70, math.NaN()}},
		"nobody's NEM id":   {6, []float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()}},
		"a far too high id": {999, []float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()}},
	} {
		t.Run(name, func(t *testing.T) {
			a := &environment{}
			to := []int{9, 1000, 5, 6}
			got := make([]float64, len(to))
			a.PathlossToAll(c.from, to, 0, got)
			for i := range got {
				if !math.IsNaN(got[i]) {
					t.Errorf("%v dB to %d before anything is known", got[i], to[i])
				}
			}
			if err := a.apply(&Environment{Begins: true, NEMs: []int{5, 9}, Steps: []Step{{Pathloss: Decibels{60, 80, 70, unknown}}}}); err != nil {
				t.Fatal(err)
			}
			a.PathlossToAll(c.from, to, 0, got)
			for i, nem := range to {
				each, known := a.Pathloss(nemPort(c.from), nemPort(nem), 0)
				if want := c.want[i]; got[i] != want && !(math.IsNaN(got[i]) && math.IsNaN(want)) || known == math.IsNaN(want) || known && each != want {
					t.Errorf("%v dB to %d, and asked alone %v, %v; want %v", got[i], nem, each, known, want)
				}
			}
		})
	}
}

func nemPort(nem int) *radio.Port { return &radio.Port{PortOptions: radio.PortOptions{NEM: nem}} }

// BenchmarkPathloss is what a model pays for each question, on the loop.
func BenchmarkPathloss(b *testing.B) {
	a := &environment{}
	nems := make([]int, 24)
	for i := range nems {
		nems[i] = i + 1
	}
	if err := a.apply(&Environment{Begins: true, NEMs: nems, Steps: []Step{{Pathloss: make(Decibels, len(nems)*len(nems))}}}); err != nil {
		b.Fatal(err)
	}
	one, two := nemPort(1), nemPort(24)
	b.ReportAllocs()
	for b.Loop() {
		if _, known := a.Pathloss(one, two, 0); !known {
			b.Fatal("unknown")
		}
	}
}
