package rfpipe

import (
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
)

// sender is what one node's frames go through.
type sender struct {
	port          *radio.Port
	rate          float64 // bit/s
	offered       uint64
	transmissions uint64
	sending       bool
	// next goes when the frame on the air has gone; queue is behind it. EMANE never drops the one that goes next.
	next  *burst
	queue queue
}

func (s *sender) depth() int {
	if s.next == nil {
		return 0
	}
	return 1 + s.queue.length
}

// burst is one frame of a sender, on its way to being sent and while it is.
type burst struct {
	phy.Transmission
	sender  *sender
	sending bool
	heard   bool         // sent on another host
	frame   *radio.Frame // while it waits
	after   *burst       // in a queue
}

// queue is first in, first out.
type queue struct {
	first, last *burst
	length      int
}

func (q *queue) push(b *burst) {
	if q.first == nil {
		q.first = b
	} else {
		q.last.after = b
	}
	q.last = b
	q.length++
}

// pop gives the oldest, or nil.
func (q *queue) pop() *burst {
	b := q.first
	if b != nil {
		q.first, b.after = b.after, nil
		q.length--
	}
	return b
}

// bursts recycles bursts.
type bursts struct{ free *burst }

func (p *bursts) get() *burst {
	b := p.free
	if b == nil {
		return &burst{}
	}
	p.free, b.after = b.after, nil
	return b
}

func (p *bursts) put(b *burst) {
	*b = burst{after: p.free}
	p.free = b
}
