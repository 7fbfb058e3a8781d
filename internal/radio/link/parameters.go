package link

import (
	"math"
	"time"
)

// DefaultLimit of frames that wait or are under way, netem's default (tc-netem(8)).
const DefaultLimit = 1000

// Parameters of one link.
type Parameters struct {
	// RateBitsPerSecond at which the sender serialises frames; 0 means that it takes no time.
	RateBitsPerSecond float64
	// Delay of every frame after it has been serialised.
	Delay time.Duration
	// Jitter spreads the delay by Distribution. A negative delay becomes zero.
	Jitter       time.Duration
	Distribution Distribution
	// JitterCorrelation from 0 to 1 between the normal scores of successive frames' delays.
	JitterCorrelation float64
	// Reorder lets frames overtake each other; without it each waits for those before it.
	Reorder bool
	// Loss is the probability from 0 to 1 that a frame is lost before the queue.
	Loss float64
	// LossCorrelation from 0 to 1 between the losses of successive frames; for Loss, not for GilbertElliott.
	LossCorrelation float64
	// GilbertElliott makes losses come in bursts, and replaces Loss.
	GilbertElliott *GilbertElliott
	// Duplicate is the probability from 0 to 1 that a frame that was not lost is sent twice.
	Duplicate float64
	// Corrupt is the probability from 0 to 1 that one bit of a frame that was not lost arrives wrong.
	Corrupt float64
	// Limit is the most frames that may wait or be under way; 0 means DefaultLimit.
	Limit int
	// LimitBytes is the most bytes that may wait or be under way; 0 means no limit.
	LimitBytes int64
}

// GilbertElliott is the two-state Markov model, with frames instead of bits. Sources: E. N. Gilbert, Capacity
// of a burst-noise channel, Bell System Technical Journal 39, 1960; E. O. Elliott, Estimates of error rates
// for codes on burst-noise channels, ibid. 42, 1963. A link begins good. All fields are probabilities per
// frame from 0 to 1.
type GilbertElliott struct {
	// GoodToBad and BadToGood are the probabilities of a change of state before a frame.
	GoodToBad, BadToGood float64
	// LossInGood and LossInBad are the probabilities of loss in each state.
	LossInGood, LossInBad float64
}

// delay returns a frame's delay in nanoseconds for a normal score.
func (p *Parameters) delay(score float64) int64 {
	if p.Jitter <= 0 {
		return int64(p.Delay)
	}
	return max(0, int64(p.Delay)+int64(math.Round(float64(p.Jitter)*p.Distribution.deviation(score))))
}

// Distribution of the delay about its mean.
type Distribution int

// The distributions of tc-netem(8). Uniform: from -1 to 1 times the jitter. Normal: the jitter is the
// standard deviation. Pareto: shape 3. ParetoNormal: a quarter of Normal and three quarters of Pareto.
const (
	Uniform Distribution = iota
	Normal
	Pareto
	ParetoNormal
)

// deviation from the mean in units of the jitter: the distribution's quantile of the same probability as the
// normal score.
func (d Distribution) deviation(score float64) float64 {
	switch d {
	case Normal:
		return score
	case Pareto:
		return pareto(score)
	case ParetoNormal:
		return score/4 + pareto(score)*3/4
	}
	return math.Erf(score / math.Sqrt2)
}

// maxDeviation cuts off the Pareto distribution where netem's tables end.
const maxDeviation = 4

// pareto is the Pareto distribution with shape 3 and minimum 1, shifted to mean 0 and scaled by 4/3, as
// iproute2's table pareto.
func pareto(score float64) float64 {
	above := math.Erfc(score/math.Sqrt2) / 2 // the share of greater values
	return min((math.Pow(above, -1./3)-1.5)*4/3, maxDeviation)
}

func (p *Parameters) limit() int {
	if p.Limit <= 0 {
		return DefaultLimit
	}
	return p.Limit
}
