package rfpipe

import (
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
)

// sender has the queue and the transmission of one node.
type sender struct {
	port    *radio.Port
	rate    float64 // bit/s
	offered uint64
	sending bool
	// free is when the duty cycle lets the node send again.
	free int64
	// next is sent after the frame on the air; queue is behind it. EMANE never drops next.
	next  *burst
	queue queue
}

// burst is one frame of a sender, from its arrival at the radio to the end of its transmission.
type burst struct {
	phy.Transmission
	sender  *sender
	sending bool
	waits   bool         // held until the duty cycle lets its sender send
	remote  bool         // sent on another host
	frame   *radio.Frame // while it waits
	next    *burst       // in the queue
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
		q.last.next = b
	}
	q.last = b
	q.length++
}

// pop returns the oldest, or nil.
func (q *queue) pop() *burst {
	b := q.first
	if b != nil {
		q.first, b.next = b.next, nil
		q.length--
	}
	return b
}
