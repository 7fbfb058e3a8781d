package link

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

// sample is a measurement with a stream of random numbers of its own. It returns why the model's closed form
// is rejected at 1 %, or "".
type sample func(seed int64) (rejected string)

// atOnePercent tests a hypothesis with fixed seeds.
func atOnePercent(t *testing.T, s sample) {
	t.Helper()
	for seed := range int64(3) {
		if rejected := s(seed + 1); rejected != "" {
			t.Errorf("seed %d: %s", seed+1, rejected)
		}
	}
}

// kolmogorovSmirnov tests that values come from a continuous distribution, with the asymptotic critical value
// at 1 %. It applies the finite-sample correction of M. A. Stephens, EDF statistics for goodness of fit, JASA
// 69, 1974.
func kolmogorovSmirnov(values []float64, distribution func(float64) float64) string {
	slices.Sort(values)
	n, distance := float64(len(values)), 0.0
	for i, v := range values {
		p := distribution(v)
		distance = max(distance, p-float64(i)/n, float64(i+1)/n-p)
	}
	root := math.Sqrt(n)
	if statistic := distance * (root + 0.12 + 0.11/root); statistic > 1.628 {
		return fmt.Sprintf("Kolmogorov-Smirnov statistic %.3f; want at most 1.628", statistic)
	}
	return ""
}

// share tests a count out of n against its mean and the variance of one, in the normal approximation.
func share(count, n int, mean, variance float64) string {
	deviation := (float64(count) - float64(n)*mean) / math.Sqrt(float64(n)*variance)
	if math.Abs(deviation) > 2.576 {
		return fmt.Sprintf("%d of %d, %.2f standard deviations from %.0f; want at most 2.576", count, n, deviation, float64(n)*mean)
	}
	return ""
}

func binomial(count, n int, p float64) string { return share(count, n, p, p*(1-p)) }

// geometric tests that lengths, from 1 on, end with probability p at each step. It is Pearson's chi-square
// with at least five lengths expected in each class. The critical value at 1 % is Wilson and Hilferty's
// approximation.
func geometric(lengths []int, p float64) string {
	n := float64(len(lengths))
	counts := map[int]int{}
	for _, l := range lengths {
		counts[l]++
	}
	statistic, freedom, rest, left := 0.0, 0, len(lengths), n // left: expected from here on
	for k := 1; left*(1-p) >= 5 && left*p >= 5; k++ {
		expected := left * p
		statistic += (float64(counts[k]) - expected) * (float64(counts[k]) - expected) / expected
		rest, left, freedom = rest-counts[k], left-expected, freedom+1
	}
	statistic += (float64(rest) - left) * (float64(rest) - left) / left
	f := 2 / (9 * float64(freedom))
	if critical := float64(freedom) * math.Pow(1-f+2.326*math.Sqrt(f), 3); statistic > critical {
		return fmt.Sprintf("chi-square %.1f with %d degrees of freedom; want at most %.1f", statistic, freedom, critical)
	}
	return ""
}

// queueOf is a queue whose frames never fill it.
func queueOf(seed int64, p Parameters) *Queue {
	p.Limit = math.MaxInt
	return &Queue{Parameters: p, streams: newStreams(seed, 3, Everybody)}
}

func TestTheDelayOfFramesFollowsTheJittersDistribution(t *testing.T) {
	const rate, length, mean, jitter = 250e3, 500, 100 * time.Millisecond, 20 * time.Millisecond
	const serialised = 8e9 * length / rate
	for name, c := range map[string]struct {
		Distribution
		distribution func(float64) float64 // of the delay's deviation from its mean, in units of the jitter
	}{
		"uniform":           {Uniform, uniformly},
		"normal":            {Normal, normally},
		"pareto":            {Pareto, byPareto},
		"pareto and normal": {ParetoNormal, byParetoNormal},
	} {
		t.Run(name, func(t *testing.T) {
			atOnePercent(t, func(seed int64) string {
				q := queueOf(seed, Parameters{RateBitsPerSecond: rate, Delay: mean, Jitter: jitter, Distribution: c.Distribution})
				deviations := make([]float64, 20_000)
				for i := range deviations {
					now := int64(i) * int64(time.Second) // the link is idle again
					arrival, _, _ := q.Offer(now, length)
					deviations[i] = (float64(arrival-now) - serialised - float64(mean)) / float64(jitter)
				}
				if rejected := correlated(deviations, 0); rejected != "" {
					return rejected
				}
				return kolmogorovSmirnov(withoutCutoff(deviations), c.distribution)
			})
		})
	}
}

// withoutCutoff leaves out values at the cut-off of Pareto's distribution, which would be a step.
func withoutCutoff(deviations []float64) []float64 {
	return slices.DeleteFunc(deviations, func(x float64) bool { return x == 4 })
}

func uniformly(x float64) float64 { return min(max((x+1)/2, 0), 1) }
func normally(x float64) float64  { return math.Erfc(-x/math.Sqrt2) / 2 }

// byPareto is that of 4/3 (p - 3/2) where it is less than 4; p has Pareto's with minimum 1 and shape 3.
func byPareto(x float64) float64 {
	below := func(x float64) float64 { return 1 - math.Pow(max(x*3/4+1.5, 1), -3) }
	return below(min(x, 4)) / below(4)
}

// byParetoNormal is the inverse of the quantiles q(u)/4 + 3/4 p(u), by halving.
func byParetoNormal(x float64) float64 {
	low, high := 0., 1.
	for range 30 {
		u := (low + high) / 2
		if math.Sqrt2*math.Erfinv(2*u-1)/4+min(4*(math.Pow(1-u, -1./3)-1.5)/3, 4)*3/4 < x {
			low = u
		} else {
			high = u
		}
	}
	return low
}

func TestCorrelatedDelaysKeepTheirDistributionAndAreCorrelatedAsAsked(t *testing.T) {
	const mean, jitter, r, frames = time.Second, 100 * time.Millisecond, 0.6, 50_000
	for name, c := range map[string]struct {
		Distribution
		distribution func(float64) float64
		// correlation of neighbours in the closed form.
		correlation float64
	}{
		"uniform":           {Uniform, uniformly, 6 / math.Pi * math.Asin(r/2)},
		"normal":            {Normal, normally, r},
		"pareto and normal": {ParetoNormal, byParetoNormal, math.NaN()}, // none is known
	} {
		t.Run(name, func(t *testing.T) {
			atOnePercent(t, func(seed int64) string {
				q := queueOf(seed, Parameters{Delay: mean, Jitter: jitter, Distribution: c.Distribution, JitterCorrelation: r})
				deviations := make([]float64, frames)
				for i := range deviations {
					now := int64(i) * int64(time.Minute)
					arrival, _, _ := q.Offer(now, 100)
					deviations[i] = float64(arrival-now-int64(mean)) / float64(jitter)
				}
				if rejected := correlated(scores(deviations, c.distribution), r); rejected != "" {
					return rejected
				}
				if !math.IsNaN(c.correlation) {
					if got := autocorrelation(deviations); math.Abs(got-c.correlation) > 0.015 {
						return fmt.Sprintf("neighbours' delays have a correlation of %.3f; want %.3f", got, c.correlation)
					}
				}
				apart := make([]float64, 0, frames/20) // as good as independent: 0.6 to the 20th
				for i := 0; i < frames; i += 20 {
					apart = append(apart, deviations[i])
				}
				return kolmogorovSmirnov(apart, c.distribution)
			})
		})
	}
}

// scores are the standard normal ones of values from a distribution.
func scores(values []float64, distribution func(float64) float64) []float64 {
	all := make([]float64, len(values))
	for i, v := range values {
		u := min(max(distribution(v), 1e-12), 1-1e-12)
		all[i] = math.Sqrt2 * math.Erfinv(2*u-1)
	}
	return all
}

func autocorrelation(values []float64) float64 {
	var sum, squares, products float64
	for _, v := range values {
		sum += v
	}
	mean := sum / float64(len(values))
	for i, v := range values {
		squares += (v - mean) * (v - mean)
		if i > 0 {
			products += (v - mean) * (values[i-1] - mean)
		}
	}
	return products / squares
}

// correlated tests the lag 1 of an autoregressive process of order 1, whose estimate has the variance (1 - r²)/n.
func correlated(values []float64, r float64) string {
	deviation := (autocorrelation(values) - r) / math.Sqrt((1-r*r)/float64(len(values)))
	// 2.807 is the bound at 0.5 %: this is the smaller one of two tests of the same sample.
	if math.Abs(deviation) > 2.807 {
		return fmt.Sprintf("autocorrelation %.2f standard deviations from %.2f; want at most 2.807", deviation, r)
	}
	return ""
}

func TestADelayBelowZeroBecomesZero(t *testing.T) {
	const mean, jitter = 10 * time.Millisecond, 20 * time.Millisecond
	for name, c := range map[string]struct {
		Distribution
		zero float64
	}{"uniform": {Uniform, 0.25}, "normal": {Normal, math.Erfc(0.5/math.Sqrt2) / 2},
		"pareto": {Pareto, 1 - math.Pow(1.5-0.5*3/4, -3)}} {
		t.Run(name, func(t *testing.T) {
			atOnePercent(t, func(seed int64) string {
				const frames = 20_000
				q, zeros := queueOf(seed, Parameters{Delay: mean, Jitter: jitter, Distribution: c.Distribution}), 0
				for i := range frames {
					now := int64(i) * int64(time.Second)
					switch arrival, _, _ := q.Offer(now, 100); {
					case arrival < now:
						t.Fatalf("frame %d arrives %d ns before it was sent", i, now-arrival)
					case arrival == now:
						zeros++
					}
				}
				return binomial(zeros, frames, c.zero)
			})
		})
	}
}

func TestLossesAndDuplicatesAreBinomial(t *testing.T) {
	const frames = 50_000
	count := func(seed int64, p Parameters) (lost, duplicated int) {
		q := queueOf(seed, p)
		for range frames {
			if _, _, accepted := q.Offer(0, 100); !accepted {
				lost++
			} else if q.Duplicated() {
				duplicated++
			}
		}
		return lost, duplicated
	}
	for name, p := range map[string]float64{"1 %": 0.01, "10 %": 0.1, "50 %": 0.5} {
		t.Run("loss of "+name, func(t *testing.T) {
			atOnePercent(t, func(seed int64) string {
				lost, _ := count(seed, Parameters{Loss: p})
				return binomial(lost, frames, p)
			})
		})
		t.Run("duplicates of "+name, func(t *testing.T) {
			atOnePercent(t, func(seed int64) string {
				lost, duplicated := count(seed, Parameters{Loss: 0.2, Duplicate: p})
				return binomial(duplicated, frames-lost, p)
			})
		})
	}
}

func TestCorrelatedLossesKeepTheirShareAndComeInGeometricBursts(t *testing.T) {
	const frames, p, c = 200_000, 0.1, 0.7
	p01, p10 := p*(1-c), (1-p)*(1-c) // of a loss after none, and of none after a loss
	atOnePercent(t, func(seed int64) string {
		q, lost := queueOf(seed, Parameters{Loss: p, LossCorrelation: c}), 0
		for range frames {
			if _, _, accepted := q.Offer(0, 100); !accepted {
				lost++
			}
		}
		// Two frames k apart have the correlation c to the k-th.
		return share(lost, frames, p, p*(1-p)*(1+c)/(1-c))
	})
	for name, b := range map[string]struct {
		lost bool
		end  float64
	}{"bursts of losses": {true, p10}, "gaps between them": {false, p01}} {
		t.Run(name, func(t *testing.T) {
			atOnePercent(t, func(seed int64) string {
				return geometric(runLengths(seed, Parameters{Loss: p, LossCorrelation: c}, b.lost, 4000), b.end)
			})
		})
	}
}

func TestALossThatChangesHoldsAtOnceWhateverItsCorrelation(t *testing.T) {
	q := queueOf(1, Parameters{LossCorrelation: 1})
	for i, c := range []struct {
		loss float64
		lost bool
	}{{0, false}, {1, true}, {0, false}, {1, true}} {
		q.Loss = c.loss
		for range 100 {
			if _, _, accepted := q.Offer(0, 100); accepted == c.lost {
				t.Fatalf("step %d: with a loss of %v a frame was accepted: %v", i, c.loss, accepted)
			}
		}
	}
}

func TestCorruptedFramesAreBinomialAndTheirWrongBitsEven(t *testing.T) {
	const frames, length = 50_000, 100
	for name, p := range map[string]float64{"1 %": 0.01, "20 %": 0.2, "100 %": 1} {
		t.Run(name, func(t *testing.T) {
			atOnePercent(t, func(seed int64) string {
				q := queueOf(seed, Parameters{Corrupt: p})
				corrupted := 0
				for range frames {
					q.Offer(0, length)
					if q.Corrupted(length, false) >= 0 {
						corrupted++
					}
				}
				if p == 1 {
					return wantAll(corrupted, frames)
				}
				return binomial(corrupted, frames, p)
			})
			atOnePercent(t, func(seed int64) string {
				q := queueOf(seed, Parameters{Corrupt: p})
				corrupted, first := 0, 0 // first: of them, those wrong in the first quarter
				for range frames {
					q.Offer(0, length)
					switch bit := q.Corrupted(length, true); {
					case bit >= 8*length:
						t.Fatalf("bit %d of %d", bit, 8*length)
					case bit >= 0:
						corrupted++
						if bit < 2*length {
							first++
						}
					}
				}
				return binomial(first, corrupted, 0.25)
			})
		})
	}
}

func wantAll(count, n int) string {
	if count != n {
		return fmt.Sprintf("%d of %d; want all", count, n)
	}
	return ""
}

func TestGilbertElliottLossesFollowTheClosedForm(t *testing.T) {
	for name, g := range map[string]GilbertElliott{
		"Gilbert's, all lost in bad": {GoodToBad: 0.01, BadToGood: 0.25, LossInBad: 1},
		"Elliott's, some in each":    {GoodToBad: 0.005, BadToGood: 0.1, LossInBad: 0.7, LossInGood: 0.02},
		"hardly ever in one state":   {GoodToBad: 0.6, BadToGood: 0.9, LossInBad: 0.5, LossInGood: 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			bad := g.GoodToBad / (g.GoodToBad + g.BadToGood)
			mean := bad*g.LossInBad + (1-bad)*g.LossInGood
			// The covariance of two frames k apart is that of their states, which decays as memory to the k-th.
			memory := 1 - g.GoodToBad - g.BadToGood
			contrast := (g.LossInBad - g.LossInGood) * (g.LossInBad - g.LossInGood)
			variance := mean*(1-mean) + 2*bad*(1-bad)*contrast*memory/(1-memory)
			atOnePercent(t, func(seed int64) string {
				const frames = 400_000
				q, lost := queueOf(seed, Parameters{GilbertElliott: &g}), 0
				for range 2000 { // until its good beginning is forgotten
					q.Offer(0, 100)
				}
				for range frames {
					if _, _, accepted := q.Offer(0, 100); !accepted {
						lost++
					}
				}
				return share(lost, frames, mean, variance)
			})
		})
	}
}

func TestGilbertElliottBurstsAreGeometric(t *testing.T) {
	g := GilbertElliott{GoodToBad: 0.02, BadToGood: 0.25, LossInBad: 1}
	for name, c := range map[string]struct {
		lost bool
		end  float64
	}{"bursts of losses": {true, g.BadToGood}, "gaps between them": {false, g.GoodToBad}} {
		t.Run(name, func(t *testing.T) {
			atOnePercent(t, func(seed int64) string {
				return geometric(runLengths(seed, Parameters{GilbertElliott: &g}, c.lost, 4000), c.end)
			})
		})
	}
}

// runLengths returns the lengths of the first complete runs of frames that are lost, or not.
func runLengths(seed int64, p Parameters, lost bool, count int) (lengths []int) {
	q, length := queueOf(seed, p), 0
	for len(lengths) < count {
		_, _, accepted := q.Offer(0, 100)
		switch {
		case accepted != lost:
			length++
		case length > 0:
			lengths, length = append(lengths, length), 0
		}
	}
	return lengths
}

func TestAGilbertElliottLinkBeginsGood(t *testing.T) {
	q := queueOf(1, Parameters{GilbertElliott: &GilbertElliott{BadToGood: 0.1, LossInBad: 1}})
	for i := range 1000 {
		if _, _, accepted := q.Offer(0, 100); !accepted {
			t.Fatalf("frame %d was lost on a link that never becomes bad", i)
		}
	}
	q.GilbertElliott = &GilbertElliott{GoodToBad: 1, LossInBad: 1}
	if _, _, accepted := q.Offer(0, 100); accepted {
		t.Error("the first frame passed a link that becomes bad before it")
	}
	q.GilbertElliott = nil
	q.Offer(0, 100)
	q.GilbertElliott = &GilbertElliott{BadToGood: 0, LossInBad: 1}
	if _, _, accepted := q.Offer(0, 100); !accepted {
		t.Error("a link whose model was ended and begun again was still bad")
	}
}

// fates returns for frames whether each was lost and duplicated, and how much its delay was off the mean.
func fates(p Parameters) (lost, duplicated []bool, deviation []int64) {
	q := queueOf(7, p)
	for i := range 5000 {
		now := int64(i) * int64(time.Second)
		arrival, _, accepted := q.Offer(now, 100)
		twice := accepted && q.Duplicated()
		if twice {
			q.OfferDuplicate(now, 100)
		}
		if !accepted {
			arrival = now
		}
		lost, duplicated, deviation = append(lost, !accepted), append(duplicated, twice), append(deviation, arrival-now)
	}
	return lost, duplicated, deviation
}

func TestSwitchingOneEffectOnDoesNotChangeAnother(t *testing.T) {
	all := Parameters{Loss: 0.1, LossCorrelation: 0.5, Duplicate: 0.2, Corrupt: 0.3, Delay: time.Millisecond, Jitter: time.Millisecond, JitterCorrelation: 0.5}
	lost, duplicated, deviation := fates(all)
	alone := all
	alone.Jitter, alone.Duplicate = 0, 0
	if got, _, _ := fates(alone); !slices.Equal(got, lost) {
		t.Error("other frames are lost without jitter and duplicates")
	}
	alone = all
	alone.Loss, alone.Jitter = 0, 0
	_, got, _ := fates(alone)
	for i := range got {
		if duplicated[i] != (got[i] && !lost[i]) {
			t.Fatalf("frame %d: duplicated %v; without loss and jitter %v", i, duplicated[i], got[i])
		}
	}
	alone = all
	alone.Loss, alone.Duplicate = 0, 0
	_, _, delays := fates(alone)
	for i := range delays {
		if !lost[i] && delays[i] != deviation[i] {
			t.Fatalf("frame %d takes %d ns; without loss and duplicates %d", i, deviation[i], delays[i])
		}
	}
}
