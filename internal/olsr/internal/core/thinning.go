package core

import "time"

// Thinning passes an originator's messages on to a network with a longer interval, at that interval.
type Thinning struct{ openUntil, next time.Duration }

// Pass reports whether a message that came at the shorter interval passes now. With the first one those that follow
// closely pass too, because several messages may carry one content.
func (t *Thinning) Pass(now, shorter, longer time.Duration) bool {
	if now < t.openUntil {
		return true
	}
	if now < t.next {
		return false
	}
	// The next message after t.next comes within the shorter interval, and so within the longer one of this.
	t.openUntil, t.next = now+shorter/4, now+longer-shorter
	return true
}
