package main

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// delaysOf messages, each with that many receptions.
func delaysOf(messages, receptions int, of func(message int) float64) (all []delay) {
	for m := range messages {
		for range receptions {
			all = append(all, delay{uint32(m), of(m)})
		}
	}
	return all
}

func TestDelaysThatAreAllLaterAreThatFarApart(t *testing.T) {
	even := delaysOf(100, 3, func(m int) float64 { return float64(m) })
	later := delaysOf(100, 3, func(m int) float64 { return float64(m) + 10 })
	d := distancesOf(even, later, 100, 1)
	if got := d.WassersteinMilliseconds; math.Abs(got.Value-10) > 1e-9 || got.Low > 10 || got.High < 10 {
		t.Errorf("Wasserstein distance %+v; want 10", got)
	}
	if got := d.KolmogorovSmirnov; math.Abs(got.Value-0.1) > 1e-9 || got.Low > got.High {
		t.Errorf("Kolmogorov–Smirnov distance %+v; want 0.1", got)
	}
}

func TestTwoModesThatAMedianMissesAreSeen(t *testing.T) {
	// Half of the delays are 20, half 30: the median of either engine is a coin toss, the distributions are the same.
	modes := func(first int) []delay {
		return delaysOf(200, 2, func(m int) float64 {
			if m < first {
				return 20
			}
			return 30
		})
	}
	if d := distancesOf(modes(99), modes(101), 200, 1); d.KolmogorovSmirnov.Value > 0.011 || d.WassersteinMilliseconds.Value > 0.11 {
		t.Errorf("one delay in a hundred differs by 10 ms, and the distances are %+v", d)
	}
	if d := distancesOf(modes(60), modes(140), 200, 1); d.KolmogorovSmirnov.Value < 0.39 || d.KolmogorovSmirnov.Value < 2*d.KolmogorovSmirnov.ByChance {
		t.Errorf("two in five delays differ by 10 ms, and the distances are %+v", d)
	}
}

func TestEqualEnginesAreNoFurtherApartThanByChance(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	draw := func() []delay { return delaysOf(300, 1, func(int) float64 { return random.ExpFloat64() }) }
	beyond := 0
	for seed := range uint64(20) {
		if d := distancesOf(draw(), draw(), 300, seed); d.WassersteinMilliseconds.Value > d.WassersteinMilliseconds.ByChance {
			beyond++
		}
	}
	if beyond > 4 { // 1 of 20 is expected
		t.Errorf("%d of 20 comparisons of equal engines are beyond what is by chance", beyond)
	}
}

func TestAPeriodThatMeetsTheSamePartOfEachFrameIsRefused(t *testing.T) {
	one := selection{models: []string{"tdma"}, engines: []string{"native"}, nodes: []string{"4"}, sizes: []string{"900"}}
	const ms = time.Millisecond
	for period, refused := range map[time.Duration]bool{0: false, 100 * ms: true, 40 * ms: true, 10 * ms: true, 101 * ms: false, -ms: true} {
		if _, err := one.runs(&settings{period: period}); (err != nil) != refused {
			t.Errorf("period %v: %v; want it refused: %t", period, err, refused)
		}
	}
	for nodes := 2; nodes < 50; nodes++ {
		if period := periodOf(nodes); period%slotDuration == 0 {
			t.Errorf("the period for %d nodes is %v, a multiple of the slot", nodes, period)
		}
	}
}
