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
	// Jitter spreads the delay: evenly from Delay - Jitter to Delay + Jitter, or where NormalJitter is set with
	// Jitter as its standard deviation. A delay below zero becomes zero.
	Jitter       time.Duration
	NormalJitter bool
	// Reorder lets frames overtake each other; without it each waits for those before it.
	Reorder bool
	// Loss is the probability from 0 to 1 that a frame is lost before the queue.
	Loss float64
	// GilbertElliott makes losses come in bursts, in the place of Loss.
	GilbertElliott *GilbertElliott
	// Duplicate is the probability from 0 to 1 that a frame that was not lost is sent twice.
	Duplicate float64
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

// delay of the index-th frame in nanoseconds, by a stream of random numbers.
func (p *Parameters) delay(s stream, index uint64) int64 {
	if p.Jitter <= 0 {
		return int64(p.Delay)
	}
	spread := 2*s.inside(index) - 1
	if p.NormalJitter {
		spread = math.Sqrt2 * math.Erfinv(spread) // the inverse of the normal distribution
	}
	return max(0, int64(p.Delay)+int64(math.Round(float64(p.Jitter)*spread)))
}

func (p *Parameters) limit() int {
	if p.Limit <= 0 {
		return DefaultLimit
	}
	return p.Limit
}
