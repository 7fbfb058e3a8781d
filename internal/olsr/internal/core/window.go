// Package core has the common parts of both versions of OLSR: duplicates, jittered queues, the choice of
// MPRs, shortest paths. Moments are times since a Router's own beginning.
package core

import "time"

// windowSize is how many sequence numbers back are remembered one by one.
const windowSize = 64

// Window remembers which sequence numbers of one originator were seen, in constant memory. A number far from
// the last means a restarted originator, and begins a new window. So does any after a time without a message.
type Window struct {
	Last uint16
	Seen uint64
	At   time.Duration
	Used bool
}

// Add records a number; fresh is false if it was there.
func (w *Window) Add(sequence uint16, now, hold time.Duration) (fresh bool) {
	ahead := int16(sequence - w.Last)
	switch {
	case !w.Used || now-w.At > hold || ahead >= windowSize || ahead <= -windowSize:
		w.Seen, w.Last = 1, sequence
	case ahead > 0:
		w.Seen, w.Last = w.Seen<<ahead|1, sequence
	default:
		bit := uint64(1) << -ahead
		if w.Seen&bit != 0 {
			return false
		}
		w.Seen |= bit
	}
	w.Used, w.At = true, now
	return true
}

// Has reports whether a number was recorded.
func (w *Window) Has(sequence uint16, now, hold time.Duration) bool {
	back := int16(w.Last - sequence)
	return w.Used && now-w.At <= hold && back >= 0 && back < windowSize && w.Seen&(1<<back) != 0
}

// Newer reports whether sequence number a follows b, with wrap-around (RFC 7181 section 21, RFC 3626 section
// 19).
func Newer(a, b uint16) bool { return int16(a-b) > 0 }
