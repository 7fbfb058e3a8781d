package confidence

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// FewestRepeats is the least number of repeats that shows the variance of runs.
const FewestRepeats = 4

// Counts are one run's: deliveries that arrived, of so many offered, and the number of their messages.
type Counts struct {
	Received, Offered, Messages int64
}

// Share returns the share of delivered of all offered deliveries, and its confidence interval: Wilson's for the number of independent deliveries
// with the same variance as the runs. It is the rule of comparisons (analysis/vignette_analysis/comparison/effects.py, docs/reference/comparison.md), of runs alone.
// Limits are NaN for fewer than two runs. All is NaN if nothing was offered.
func Share(runs []Counts) (share, low, high float64) {
	var received, offered, messages float64
	for _, run := range runs {
		received, offered, messages = received+float64(run.Received), offered+float64(run.Offered), messages+float64(run.Messages)
	}
	share = received / offered
	switch {
	case len(runs) < 2 || offered == 0:
		return share, math.NaN(), math.NaN()
	case received == 0 || received == offered: // without variance the deliveries of one message count as one
		low, high = wilson(share, max(min(messages, offered), 1))
	default:
		low, high = wilson(share, effective(runs, share, offered))
	}
	return share, low, high
}

// effective returns the number of independent deliveries with the same uncertainty.
func effective(runs []Counts, share, offered float64) float64 {
	binomial, between, freedom := share*(1-share)/offered, 0.0, float64(len(runs)-1)
	for _, run := range runs {
		between += math.Pow(float64(run.Received)-share*float64(run.Offered), 2)
	}
	variance := max(between*(freedom+1)/freedom/(offered*offered), binomial)
	if beyond := variance - binomial; len(runs) < FewestRepeats {
		freedom *= math.Pow(variance/beyond, 2) // Satterthwaite: runs show only their differences beyond chance
	}
	few := 1.0
	if !math.IsInf(freedom, 1) {
		few = z() / distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile((1+Level)/2)
	}
	return offered * binomial / variance * few * few
}

func z() float64 { return distuv.UnitNormal.Quantile((1 + Level) / 2) }

// wilson returns the score interval of a share of n (Edwin B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", JASA 22, 1927).
func wilson(share, n float64) (low, high float64) {
	weight := z() * z() / n
	centre, half := (share+weight/2)/(1+weight), z()/(1+weight)*math.Sqrt(share*(1-share)/n+weight/(4*n))
	return max(centre-half, 0), min(centre+half, 1)
}
