package link

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio/radiotest"
)

// sample is a measurement with a stream of random numbers of its own. It tells why the hypothesis that the model
// follows its closed form is rejected at 1 %, or nothing.
type sample func(seed int64) (rejected string)

// atOnePercent tests a hypothesis with fixed seeds, and with fresh ones.
func atOnePercent(t *testing.T, s sample) {
	t.Helper()
	for seed := range int64(3) {
		if rejected := s(seed + 1); rejected != "" {
			t.Errorf("seed %d: %s", seed+1, rejected)
		}
	}
	radiotest.AtOnePercent(t, s)
}

// kolmogorovSmirnov tests that values come from a continuous distribution, with the asymptotic critical value at 1 %
// and the finite-sample correction of M. A. Stephens, EDF statistics for goodness of fit, JASA 69, 1974.
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

// geometric tests that lengths, from 1 on, end with probability p at each step: Pearson's chi-square with at least five
// lengths expected in each class and Wilson and Hilferty's approximation of the critical value at 1 %.
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
		normal       bool
		distribution func(float64) float64 // of the delay's deviation from its mean, in units of the jitter
	}{
		"uniform": {false, func(x float64) float64 { return min(max((x+1)/2, 0), 1) }},
		"normal":  {true, func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }},
	} {
		t.Run(name, func(t *testing.T) {
			atOnePercent(t, func(seed int64) string {
				q := queueOf(seed, Parameters{RateBitsPerSecond: rate, Delay: mean, Jitter: jitter, NormalJitter: c.normal})
				deviations := make([]float64, 20_000)
				for i := range deviations {
					now := int64(i) * int64(time.Second) // the link is idle again
					arrival, _, _ := q.Offer(now, length)
					deviations[i] = (float64(arrival-now) - serialised - float64(mean)) / float64(jitter)
				}
				if rejected := uncorrelated(deviations); rejected != "" {
					return rejected
				}
				return kolmogorovSmirnov(deviations, c.distribution)
			})
		})
	}
}

// uncorrelated tests that neighbours are, with the autocorrelation at lag 1, of variance 1/n.
func uncorrelated(values []float64) string {
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
	// 2.807 is the bound at 0.5 %: this is the smaller one of two tests of the same sample.
	if r := products / squares * math.Sqrt(float64(len(values))); math.Abs(r) > 2.807 {
		return fmt.Sprintf("autocorrelation of %.2f standard deviations; want at most 2.807", r)
	}
	return ""
}

func TestADelayBelowZeroBecomesZero(t *testing.T) {
	const mean, jitter = 10 * time.Millisecond, 20 * time.Millisecond
	for name, c := range map[string]struct {
		normal bool
		zero   float64
	}{"uniform": {false, 0.25}, "normal": {true, math.Erfc(0.5/math.Sqrt2) / 2}} {
		t.Run(name, func(t *testing.T) {
			atOnePercent(t, func(seed int64) string {
				const frames = 20_000
				q, zeros := queueOf(seed, Parameters{Delay: mean, Jitter: jitter, NormalJitter: c.normal}), 0
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
			atOnePercent(t, func(seed int64) string { return geometric(stretches(seed, g, c.lost, 4000), c.end) })
		})
	}
}

// stretches gives the lengths of the first whole stretches of frames that are lost, or not.
func stretches(seed int64, g GilbertElliott, lost bool, count int) (lengths []int) {
	q, length := queueOf(seed, Parameters{GilbertElliott: &g}), 0
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

// fates of frames: whether each was lost and duplicated, and how much its delay was off the mean.
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
	all := Parameters{Loss: 0.1, Duplicate: 0.2, Delay: time.Millisecond, Jitter: time.Millisecond}
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
