// Package confidence tells how well the mean of repeated measurements is known.
package confidence

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Level of all intervals: an interval covers the true mean with this probability, if repeats are independent and normally distributed.
const Level = 0.95

// Mean gives the mean of repeats and half the width of its confidence interval by Student's t (William Sealy Gosset, "The probable error
// of a mean", Biometrika 6, 1908), in the values' unit. The mean of nothing is NaN; the half width of fewer than two values, of which
// nobody can tell how far repeats lie apart, is NaN.
func Mean(values []float64) (mean, halfWidth float64) {
	mean = stat.Mean(values, nil)
	n := float64(len(values))
	if n < 2 {
		return mean, math.NaN()
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile((1 + Level) / 2)
	return mean, t * stat.StdErr(stat.StdDev(values, nil), n)
}
