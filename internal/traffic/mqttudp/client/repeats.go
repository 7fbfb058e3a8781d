package client

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	mqttwire "vignette.dev/vignette/internal/traffic/mqtt/wire"
)

const (
	// maxRepeatBytes bounds what waits to be repeated.
	maxRepeatBytes = 16 << 20
	// window is how many numbers of a sender are kept, and maxSenders of how many senders.
	window     = 1024
	maxSenders = 4096
)

// repeats are packets that are to be sent again, in the order of their times.
type repeats struct {
	interval time.Duration
	// changed tells run that the first packet is another one.
	changed chan struct{}

	mu    sync.Mutex
	queue []repeat
	bytes int
	// sending: run has taken a packet and sends it.
	sending bool
	// drained is closed when all is sent; nil if nobody waits for that.
	drained chan struct{}
}

type repeat struct {
	due    time.Time
	packet []byte
	// left is how many times it is still to be sent.
	left int
}

func newRepeats(interval time.Duration) *repeats {
	return &repeats{interval: interval, changed: make(chan struct{}, 1)}
}

// add has a packet that was sent at a time sent again so many times; false if too much waits already.
func (r *repeats) add(sent time.Time, packet []byte, times int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes+len(packet) > maxRepeatBytes {
		return false
	}
	r.bytes += len(packet)
	r.insert(repeat{sent.Add(r.interval), slices.Clone(packet), times})
	return true
}

// insert keeps the queue in order. The new one is nearly always the last.
func (r *repeats) insert(one repeat) {
	at := len(r.queue)
	for at > 0 && r.queue[at-1].due.After(one.due) {
		at--
	}
	r.queue = slices.Insert(r.queue, at, one)
	if at == 0 {
		select {
		case r.changed <- struct{}{}:
		default:
		}
	}
}

// run sends each packet when it is due, until ctx ends.
func (r *repeats) run(ctx context.Context, send func(packet []byte)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if wait, some := r.next(); some {
			timer.Reset(wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-r.changed:
			continue
		case <-timer.C:
		}
		for {
			packet := r.takeDue(time.Now())
			if packet == nil {
				break
			}
			send(packet)
		}
	}
}

// next returns the time to the first packet; false if there is none.
func (r *repeats) next() (time.Duration, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		return 0, false
	}
	return time.Until(r.queue[0].due), true
}

// takeDue returns the first packet if it is due, and keeps it for its next repeat; nil if none is due.
func (r *repeats) takeDue(now time.Time) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sending = false
	if len(r.queue) == 0 {
		r.tellDrained()
		return nil
	}
	one := r.queue[0]
	if one.due.After(now) {
		return nil
	}
	r.queue, r.sending = r.queue[1:], true
	if one.left--; one.left > 0 {
		one.due = one.due.Add(r.interval)
		r.insert(one)
	} else {
		r.bytes -= len(one.packet)
	}
	return one.packet
}

func (r *repeats) tellDrained() {
	if r.drained != nil {
		close(r.drained)
		r.drained = nil
	}
}

// drain waits until all packets are sent, or ctx ends.
func (r *repeats) drain(ctx context.Context) {
	r.mu.Lock()
	if len(r.queue) == 0 && !r.sending {
		r.mu.Unlock()
		return
	}
	drained := make(chan struct{})
	r.drained = drained
	r.mu.Unlock()
	select {
	case <-drained:
	case <-ctx.Done():
	}
}

// received are the numbers of packets that have come, by the sender's address.
type received map[netip.AddrPort]*numbers

// numbers are the last ones of a sender, in a ring.
type numbers struct {
	known map[uint32]bool
	ring  []uint32
	next  int
}

// first reports whether a datagram that has a whole packet is the first with its number from a sender. Without a number it is always.
func (r received) first(sender netip.AddrPort, datagram []byte) bool {
	size, err := mqttwire.PacketSize(datagram)
	if err != nil {
		return true
	}
	number, numbered := numberOf(datagram, size)
	if !numbered {
		return true
	}
	of := r[sender]
	if of == nil {
		if len(r) == maxSenders { // forged ones, as no network has so many
			clear(r)
		}
		of = &numbers{known: map[uint32]bool{}}
		r[sender] = of
	}
	return of.add(number)
}

// add keeps a number; false if it was known.
func (n *numbers) add(number uint32) bool {
	if n.known[number] {
		return false
	}
	n.known[number] = true
	if len(n.ring) < window {
		n.ring = append(n.ring, number)
		return true
	}
	delete(n.known, n.ring[n.next])
	n.ring[n.next] = number
	n.next = (n.next + 1) % window
	return true
}
