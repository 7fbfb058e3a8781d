package link

import (
	"math"
	"time"

	"vignette.dev/vignette/internal/radio"
)

// DefaultLimit of frames that wait or are under way, as tc-netem(8) has it.
const DefaultLimit = 1000

// Parameters of one link.
type Parameters struct {
	// RateBitsPerSecond at which the sender serialises frames; 0 means that sending takes no time.
	RateBitsPerSecond float64
	// Delay of every frame after it has been serialised.
	Delay time.Duration
	// Loss is the probability from 0 to 1 that a frame is lost before the queue.
	Loss float64
	// Limit is the most frames that may wait or be under way; 0 means DefaultLimit.
	Limit int
}

// transmission is how long a frame of the given length in bytes occupies the link, nanoseconds.
func (p Parameters) transmission(length int) int64 {
	if p.RateBitsPerSecond <= 0 {
		return 0
	}
	return int64(math.Round(8e9 * float64(length) / p.RateBitsPerSecond))
}

// farFuture in nanoseconds caps times so that absurdly slow links cannot overflow them.
const farFuture = 1 << 61

// Queue is one sender's egress onto one link. Times are nanoseconds of any monotonic clock.
type Queue struct {
	Parameters
	random stream
	index  uint64 // of the next frame in the random stream
	free   int64  // when the link has sent all it was given
	latest int64  // arrival of the newest frame
	depth  int
	to     []*radio.Port // receivers of a broadcast
}

// Depth is the number of frames waiting and under way.
func (q *Queue) Depth() int { return q.depth }

// Offer decides what becomes of a frame of the given length in bytes that is sent at time now. It
// arrives at the returned time, when Arrived must be called, or is dropped for the reason.
//
//	departure = max(now, link free) + 8·length/rate;  arrival = departure + delay
//
// Frames arrive in the order in which they were sent, also when the delay has been lowered meanwhile.
func (q *Queue) Offer(now int64, length int) (arrival int64, reason radio.Reason, accepted bool) {
	index := q.index
	q.index++
	if q.Loss > 0 && q.random.uniform(index) < q.Loss {
		return 0, radio.Loss, false
	}
	if q.depth >= q.limit() {
		return 0, radio.QueueFull, false
	}
	q.depth++
	q.free = min(max(now, q.free)+q.transmission(length), farFuture)
	q.latest = max(q.free+int64(q.Delay), q.latest)
	return q.latest, 0, true
}

// Arrived tells that a frame is no longer under way.
func (q *Queue) Arrived() { q.depth-- }

func (q *Queue) limit() int {
	if q.Limit <= 0 {
		return DefaultLimit
	}
	return q.Limit
}
