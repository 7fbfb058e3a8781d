package link

import (
	"math"

	"vignette.dev/vignette/internal/radio"
)

// Queue is one sender's egress onto one link. Times are nanoseconds of any monotonic clock.
type Queue struct {
	Parameters
	streams       streams
	index         uint64   // of the next frame in the random streams
	inBadState    bool     // the state of the Gilbert-Elliott model
	previousLoss  lossDraw // of the previous frame
	score         float64  // of the previous frame's delay, if delays are correlated
	hasScore      bool
	freeAt        int64 // when the link has sent all its frames
	latestArrival int64 // latest arrival of all frames so far
	depth         int
	bytes         int64
	to            []*radio.Port // receivers of a broadcast
}

// Depth is the number of frames waiting and under way.
func (q *Queue) Depth() int { return q.depth }

// Offer decides about a frame of the given length in bytes that is sent at time now. The frame arrives at the
// returned time, when Arrived must be called, or is dropped for the reason.
//
//	departure = max(now, link free) + 8·length/rate;  arrival = departure + delay ± jitter
//
// Unless Reorder is set, the arrival is no earlier than that of any frame before. This also holds if the
// delay has been lowered meanwhile.
func (q *Queue) Offer(now int64, length int) (arrival int64, reason radio.Reason, accepted bool) {
	index := q.index
	q.index++
	score := q.nextScore(index) // also for a lost frame, so that losses do not change other delays
	if q.lost(index) {
		return 0, radio.Loss, false
	}
	return q.enqueue(now, length, score)
}

// Duplicated reports whether the frame that Offer accepted last is sent twice. OfferDuplicate must follow
// then.
func (q *Queue) Duplicated() bool {
	return q.Duplicate > 0 && q.streams.duplicate.uniform(q.index-1) < q.Duplicate
}

// OfferDuplicate is Offer for the duplicate of a frame. It cannot be lost, and goes through the same queue.
func (q *Queue) OfferDuplicate(now int64, length int) (arrival int64, reason radio.Reason, accepted bool) {
	score := 0.
	if q.Jitter > 0 {
		score = q.correlated(q.streams.duplicateJitter.normal(q.index - 1))
	}
	return q.enqueue(now, length, score)
}

// Corrupted returns the index of the wrong bit in the frame that Offer accepted last, or in its duplicate. It
// is -1 if none is wrong.
func (q *Queue) Corrupted(length int, duplicate bool) (bit int) {
	s := q.streams.corrupt
	if duplicate {
		s = q.streams.duplicateCorrupt
	}
	if q.Corrupt <= 0 {
		return -1
	}
	u := s.uniform(q.index-1) / q.Corrupt // uniform from 0 to 1 if it is below 1
	if u >= 1 {
		return -1
	}
	return min(int(u*float64(8*length)), 8*length-1)
}

// nextScore returns the normal score of a frame's delay.
func (q *Queue) nextScore(index uint64) float64 {
	q.hasScore = q.hasScore && q.Jitter > 0 && q.JitterCorrelation > 0
	if q.Jitter <= 0 {
		return 0
	}
	q.score = q.correlated(q.streams.jitter.normal(index))
	q.hasScore = q.JitterCorrelation > 0
	return q.score
}

// correlated combines an independent score with that of the previous frame. It is an autoregressive process
// of order 1 with a standard normal distribution.
func (q *Queue) correlated(fresh float64) float64 {
	if !q.hasScore {
		return fresh
	}
	r := q.JitterCorrelation
	return r*q.score + math.Sqrt(1-r*r)*fresh
}

// lossDraw is whether a frame was lost, and the probability that it was drawn with.
type lossDraw struct {
	probability float64
	lost        bool
}

func (q *Queue) lost(index uint64) bool {
	if g := q.GilbertElliott; g != nil {
		q.previousLoss = lossDraw{}
		return q.drawLoss(q.nextState(g, index), index)
	}
	q.inBadState = false
	lost := q.drawLoss(q.Loss, index)
	// Repeating the previous outcome at random keeps the share of losses and makes the correlation exact.
	if q.LossCorrelation > 0 && q.previousLoss.probability == q.Loss && q.streams.state.uniform(index) < q.LossCorrelation {
		lost = q.previousLoss.lost
	}
	q.previousLoss = lossDraw{q.Loss, lost}
	return lost
}

func (q *Queue) drawLoss(probability float64, index uint64) bool {
	return probability > 0 && q.streams.loss.uniform(index) < probability
}

// nextState changes the state before a frame and returns the frame's probability of loss.
func (q *Queue) nextState(g *GilbertElliott, index uint64) float64 {
	change := g.GoodToBad
	if q.inBadState {
		change = g.BadToGood
	}
	if q.streams.state.uniform(index) < change {
		q.inBadState = !q.inBadState
	}
	if q.inBadState {
		return g.LossInBad
	}
	return g.LossInGood
}

func (q *Queue) enqueue(now int64, length int, score float64) (arrival int64, reason radio.Reason, accepted bool) {
	if q.depth >= q.limit() || q.LimitBytes > 0 && q.bytes+int64(length) > q.LimitBytes {
		return 0, radio.QueueFull, false
	}
	q.depth++
	q.bytes += int64(length)
	q.freeAt = min(max(now, q.freeAt)+radio.TimeOnAir(length, q.RateBitsPerSecond), radio.FarFuture)
	arrival = q.freeAt + q.delay(score)
	if !q.Reorder {
		arrival = max(arrival, q.latestArrival)
	}
	q.latestArrival = max(arrival, q.latestArrival)
	return arrival, 0, true
}

// Arrived ends a frame of the given length in bytes.
func (q *Queue) Arrived(length int) {
	q.depth--
	q.bytes -= int64(length)
}

// continueAfter makes q the successor of another queue for some receivers. They get its frames after those of the
// other queue. A queue that has sent nothing yet begins when the other has sent all its frames.
func (q *Queue) continueAfter(before *Queue) {
	q.latestArrival = max(q.latestArrival, before.latestArrival)
	if q.index == 0 {
		q.freeAt = max(q.freeAt, before.freeAt)
	}
}
