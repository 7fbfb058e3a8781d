package link

import (
	"math"

	"vignette.dev/vignette/internal/radio"
)

// farFuture in nanoseconds caps times so that absurdly slow links cannot overflow them.
const farFuture = 1 << 61

// Queue is one sender's egress onto one link. Times are nanoseconds of any monotonic clock.
type Queue struct {
	Parameters
	streams streams
	index   uint64  // of the next frame in the random streams
	bad     bool    // the state of the Gilbert-Elliott model
	before  fate    // of the frame before
	score   float64 // of the delay of the frame before, while delays are correlated
	scored  bool
	free    int64 // when the link has sent all it was given
	latest  int64 // latest arrival of all frames so far
	depth   int
	bytes   int64
	to      []*radio.Port // receivers of a broadcast
}

// Depth is the number of frames waiting and under way.
func (q *Queue) Depth() int { return q.depth }

// Offer decides what becomes of a frame of the given length in bytes that is sent at time now. It
// arrives at the returned time, when Arrived must be called, or is dropped for the reason.
//
//	departure = max(now, link free) + 8·length/rate;  arrival = departure + delay ± jitter
//
// Unless Reorder is set the arrival is no earlier than that of any frame before, also when the delay
// has been lowered meanwhile.
func (q *Queue) Offer(now int64, length int) (arrival int64, reason radio.Reason, accepted bool) {
	index := q.index
	q.index++
	score := q.nextScore(index) // also of a lost frame, so that losses do not change the delays of others
	if q.lost(index) {
		return 0, radio.Loss, false
	}
	return q.admit(now, length, score)
}

// Duplicated tells whether the frame that Offer accepted last is sent twice. If so OfferDuplicate follows.
func (q *Queue) Duplicated() bool {
	return q.Duplicate > 0 && q.streams.duplicate.uniform(q.index-1) < q.Duplicate
}

// OfferDuplicate is Offer for the second one of a duplicated frame: it cannot be lost, and meets the same queue.
func (q *Queue) OfferDuplicate(now int64, length int) (arrival int64, reason radio.Reason, accepted bool) {
	score := 0.
	if q.Jitter > 0 {
		score = q.correlated(q.streams.duplicateJitter.normal(q.index - 1))
	}
	return q.admit(now, length, score)
}

// Corrupted gives the bit that is wrong of the frame that Offer accepted last, from 0 for the first, or of its duplicate; -1 where none is.
func (q *Queue) Corrupted(length int, duplicate bool) (bit int) {
	s := q.streams.corrupt
	if duplicate {
		s = q.streams.duplicateCorrupt
	}
	if q.Corrupt <= 0 {
		return -1
	}
	u := s.uniform(q.index-1) / q.Corrupt // evenly from 0 to 1 where it is below 1
	if u >= 1 {
		return -1
	}
	return min(int(u*float64(8*length)), 8*length-1)
}

// nextScore is the normal score of a frame's delay.
func (q *Queue) nextScore(index uint64) float64 {
	q.scored = q.scored && q.Jitter > 0 && q.JitterCorrelation > 0
	if q.Jitter <= 0 {
		return 0
	}
	q.score = q.correlated(q.streams.jitter.normal(index))
	q.scored = q.JitterCorrelation > 0
	return q.score
}

// correlated makes of a fresh score one that goes with that of the frame before: an autoregressive process of order 1, standard normal at all times.
func (q *Queue) correlated(fresh float64) float64 {
	if !q.scored {
		return fresh
	}
	r := q.JitterCorrelation
	return r*q.score + math.Sqrt(1-r*r)*fresh
}

// fate of a frame, and the probability of loss that it was drawn with.
type fate struct {
	probability float64
	lost        bool
}

func (q *Queue) lost(index uint64) bool {
	if g := q.GilbertElliott; g != nil {
		q.before = fate{}
		return q.drawn(q.step(g, index), index)
	}
	q.bad = false
	lost := q.drawn(q.Loss, index)
	// To repeat the fate of the frame before now and then keeps the share of losses, and makes the correlation exact.
	if q.LossCorrelation > 0 && q.before.probability == q.Loss && q.streams.state.uniform(index) < q.LossCorrelation {
		lost = q.before.lost
	}
	q.before = fate{q.Loss, lost}
	return lost
}

func (q *Queue) drawn(probability float64, index uint64) bool {
	return probability > 0 && q.streams.loss.uniform(index) < probability
}

// step changes the state before a frame and gives the probability that the frame is lost.
func (q *Queue) step(g *GilbertElliott, index uint64) float64 {
	change := g.GoodToBad
	if q.bad {
		change = g.BadToGood
	}
	if q.streams.state.uniform(index) < change {
		q.bad = !q.bad
	}
	if q.bad {
		return g.LossInBad
	}
	return g.LossInGood
}

func (q *Queue) admit(now int64, length int, score float64) (arrival int64, reason radio.Reason, accepted bool) {
	if q.depth >= q.limit() || q.LimitBytes > 0 && q.bytes+int64(length) > q.LimitBytes {
		return 0, radio.QueueFull, false
	}
	q.depth++
	q.bytes += int64(length)
	q.free = min(max(now, q.free)+q.transmission(length), farFuture)
	arrival = q.free + q.delay(score)
	if !q.Reorder {
		arrival = max(arrival, q.latest)
	}
	q.latest = max(arrival, q.latest)
	return arrival, 0, true
}

// Arrived tells that a frame of the given length in bytes is no longer under way.
func (q *Queue) Arrived(length int) {
	q.depth--
	q.bytes -= int64(length)
}

// follow makes q the successor of another queue for some receiver: what it sends to them arrives after what they
// were sent before. A queue that has sent nothing yet begins when the other has sent all it was given.
func (q *Queue) follow(before *Queue) {
	q.latest = max(q.latest, before.latest)
	if q.index == 0 {
		q.free = max(q.free, before.free)
	}
}
