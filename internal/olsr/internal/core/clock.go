package core

import (
	"math/rand"
	"time"
)

// Forever is later than any moment.
const Forever = time.Duration(1<<63 - 1)

// Epoch converts times to moments: durations since the first time that it saw.
type Epoch struct{ start time.Time }

// Moment of a time. The first one is a day, so that no hold time reaches below zero.
func (e *Epoch) Moment(now time.Time) time.Duration {
	if e.start.IsZero() {
		e.start = now.Add(-24 * time.Hour)
	}
	return now.Sub(e.start)
}

// Time of a moment.
func (e *Epoch) Time(moment time.Duration) time.Time { return e.start.Add(moment) }

// Jitter is a random time from 0 to limit (RFC 5148 section 5).
func Jitter(r *rand.Rand, limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return time.Duration(r.Int63n(int64(limit) + 1))
}

// After returns when a message is next due: an interval later, less jitter up to a limit and a quarter of the
// interval (RFC 5148 section 5.2). A delay is not made up for.
func After(r *rand.Rand, now, due, interval, limit time.Duration) time.Duration {
	return max(now, due) + interval - Jitter(r, min(limit, interval/4))
}
