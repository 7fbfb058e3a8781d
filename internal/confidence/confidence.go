// Package confidence computes the uncertainty of the mean of repeated measurements.
package confidence

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Level is the level of all intervals: the probability that one covers the true mean of independent, normally distributed repeats.
const Level = 0.95

// Mean returns the mean of repeats and half the width of its confidence interval by Student's t (William Sealy Gosset, "The probable error
// of a mean", Biometrika 6, 1908), in the values' unit. The mean of no values is NaN. The half width of fewer than two values is NaN,
// as nothing shows their spread.
func Mean(values []float64) (mean, halfWidth float64) {
	mean = stat.Mean(values, nil)
	n := float64(len(values))
	if n < 2 {
		return mean, math.NaN()
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile((1 + Level) / 2)
	return mean, t * stat.StdErr(stat.StdDev(values, nil), n)
}
