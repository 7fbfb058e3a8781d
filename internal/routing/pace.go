package routing

import "time"

const (
	// longestTurn of the thread that counts as one: it does its work and rests.
	longestTurn = 5 * time.Millisecond
	// mostBehind the clock: what routers have missed beyond is due at once.
	mostBehind = 250 * time.Millisecond
)

// pace is the routers' clock. Where their thread could not run for some time, as a garbage collection or the hypervisor had its processor, the routers
// go on from where they were, twice as fast until they have caught up. Else all that they would have sent meanwhile went on the air at
// the same moment, dozens of frames with thousands of receptions, whose ends the radio's loop would come to late. To the routers, who spread their
// messages by hundreds of milliseconds (RFC 5148), it makes no difference.
type pace struct {
	now  time.Time
	seen time.Time // the clock when it was last looked at
}

// advance to what the clock is, or nearer to it. Up to the time due, zero for none, no router has anything to do: that is not caught up with. behind
// tells that now is not the clock's time yet.
func (p *pace) advance(clock, due time.Time) (behind bool) {
	turn := min(clock.Sub(p.seen), longestTurn)
	from := p.now
	if due.IsZero() || due.After(clock) {
		from = clock
	} else {
		from = later(from, due)
	}
	p.seen = clock
	p.now = later(from.Add(2*turn), clock.Add(-mostBehind))
	if !p.now.Before(clock) {
		p.now = clock
	}
	return p.now.Before(clock)
}
