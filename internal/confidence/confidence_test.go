package confidence

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestTheIntervalIsStudents(t *testing.T) {
	// The factors are those of the t table, two-sided 95 %, for n - 1 degrees of freedom.
	for name, c := range map[string]struct {
		values          []float64
		mean, halfWidth float64
	}{
		"two":         {[]float64{1, 3}, 2, 12.7062 * math.Sqrt2 / math.Sqrt(2)},
		"three":       {[]float64{1, 2, 3}, 2, 4.30265 / math.Sqrt(3)},
		"five":        {[]float64{1, 2, 3, 4, 5}, 3, 2.77645 * math.Sqrt(2.5) / math.Sqrt(5)},
		"all alike":   {[]float64{7, 7, 7}, 7, 0},
		"one is none": {[]float64{7}, 7, math.NaN()},
		"of nothing":  {nil, math.NaN(), math.NaN()},
	} {
		t.Run(name, func(t *testing.T) {
			mean, halfWidth := Mean(c.values)
			if !near(mean, c.mean) || !near(halfWidth, c.halfWidth) {
				t.Errorf("%v ± %v; want %v ± %v", mean, halfWidth, c.mean, c.halfWidth)
			}
		})
	}
}

func near(got, want float64) bool {
	return math.IsNaN(got) && math.IsNaN(want) || math.Abs(got-want) < 1e-4
}

func TestTheIntervalCoversTheMeanAsOftenAsItSays(t *testing.T) {
	const trials, repeats = 20000, 4
	draw, covered := rand.New(rand.NewPCG(1, 2)), 0
	for range trials {
		values := make([]float64, repeats)
		for i := range values {
			values[i] = 10 + draw.NormFloat64()
		}
		if mean, halfWidth := Mean(values); math.Abs(mean-10) <= halfWidth {
			covered++
		}
	}
	if share := float64(covered) / trials; math.Abs(share-Level) > 0.006 { // four standard errors of 20 000 trials
		t.Errorf("%.4f of the intervals cover the mean; want %.2f", share, Level)
	}
}
