package link

import (
	"math"
	"time"
)

// DefaultLimit of frames that wait or are under way, as tc-netem(8) has it.
const DefaultLimit = 1000

// Parameters of one link.
type Parameters struct {
	// RateBitsPerSecond at which the sender serialises frames; 0 means that sending takes no time.
	RateBitsPerSecond float64
	// Delay of every frame after it has been serialised.
	Delay time.Duration
	// Jitter spreads the delay as its Distribution has it. A delay below zero becomes zero.
	Jitter       time.Duration
	Distribution Distribution
	// JitterCorrelation of one frame's delay with the next one's, from 0 to 1: that of their normal scores.
	JitterCorrelation float64
	// Reorder lets frames overtake each other; without it each waits for those before it.
	Reorder bool
	// Loss is the probability from 0 to 1 that a frame is lost before the queue.
	Loss float64
	// LossCorrelation from 0 to 1 of one frame's loss with the next one's; for Loss, not for GilbertElliott.
	LossCorrelation float64
	// GilbertElliott makes losses come in bursts, in the place of Loss.
	GilbertElliott *GilbertElliott
	// Duplicate is the probability from 0 to 1 that a frame that was not lost is sent twice.
	Duplicate float64
	// Corrupt is the probability from 0 to 1 that one bit of a frame that was not lost arrives wrong.
	Corrupt float64
	// Limit is the most frames that may wait or be under way; 0 means DefaultLimit.
	Limit int
	// LimitBytes is the most bytes that may wait or be under way; 0 means any number.
	LimitBytes int64
}

// GilbertElliott is the two-state Markov model of E. N. Gilbert, Capacity of a burst-noise channel,
// Bell System Technical Journal 39, 1960, and E. O. Elliott, Estimates of error rates for codes on
// burst-noise channels, ibid. 42, 1963, with frames in the place of bits. A link begins good. All
// fields are probabilities per frame from 0 to 1.
type GilbertElliott struct {
	// GoodToBad and BadToGood change the state before a frame.
	GoodToBad, BadToGood float64
	// LossInGood and LossInBad lose the frame.
	LossInGood, LossInBad float64
}

// transmission is how long a frame of the given length in bytes occupies the link, nanoseconds.
func (p *Parameters) transmission(length int) int64 {
	if p.RateBitsPerSecond <= 0 {
		return 0
	}
	return int64(math.Round(8e9 * float64(length) / p.RateBitsPerSecond))
}

// delay of a frame in nanoseconds, by its normal score.
func (p *Parameters) delay(score float64) int64 {
	if p.Jitter <= 0 {
		return int64(p.Delay)
	}
	return max(0, int64(p.Delay)+int64(math.Round(float64(p.Jitter)*p.Distribution.deviation(score))))
}

// Distribution of the delay about its mean.
type Distribution int

// The distributions that tc-netem(8) has: evenly from -1 to 1 times the jitter; normal with the jitter as standard deviation; Pareto's with shape
// 3; and a quarter of normal with three quarters of Pareto's.
const (
	Uniform Distribution = iota
	Normal
	Pareto
	ParetoNormal
)

// deviation from the mean in units of the jitter: the quantile of the distribution that a score is of the standard normal one.
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

// mostDeviation of Pareto's distribution: as much as a table of netem's can hold.
const mostDeviation = 4

// pareto has shape 3 and minimum 1, is moved to mean 0 and scaled by 4/3, as iproute2's table of that name.
func pareto(score float64) float64 {
	above := math.Erfc(score/math.Sqrt2) / 2 // the share of greater values
	return min((math.Pow(above, -1./3)-1.5)*4/3, mostDeviation)
}

func (p *Parameters) limit() int {
	if p.Limit <= 0 {
		return DefaultLimit
	}
	return p.Limit
}
