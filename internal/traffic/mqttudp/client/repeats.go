package client

import (
	"context"
	"fmt"
	"hash/maphash"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"vignette.dev/vignette/internal/bell"
	"vignette.dev/vignette/internal/traffic/mqttudp"
)

const (
	// maxRepeatBytes bounds what waits to be repeated.
	maxRepeatBytes = 16 << 20
	// maxSenders is of how many senders numbers are kept.
	maxSenders = 4096
)

// repeats are packets that are to be sent again, in the order of their times.
type repeats struct {
	interval time.Duration
	// changed tells run that the first packet is another one.
	changed bell.Bell

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
	// from is the socket that has sent it. Receivers would take it from another one's port for a new message.
	from *net.UDPConn
	// left is how many times it is still to be sent.
	left int
}

func newRepeats(interval time.Duration) *repeats {
	return &repeats{interval: interval, changed: bell.New()}
}

// add has a packet that a socket sent at a time sent again so many times; false if too much waits already.
func (r *repeats) add(sent time.Time, packet []byte, from *net.UDPConn, times int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes+len(packet) > maxRepeatBytes {
		return false
	}
	r.bytes += len(packet)
	r.insert(repeat{sent.Add(r.interval), slices.Clone(packet), from, times})
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
		r.changed.Ring()
	}
}

// run sends each packet when it is due, until ctx ends.
func (r *repeats) run(ctx context.Context, send func(repeat)) {
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
			one, due := r.takeDue(time.Now())
			if !due {
				break
			}
			send(one)
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

// takeDue returns the first packet if it is due, and keeps it for its next repeat; false if none is due.
func (r *repeats) takeDue(now time.Time) (repeat, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sending = false
	if len(r.queue) == 0 {
		r.tellDrained()
		return repeat{}, false
	}
	one := r.queue[0]
	if one.due.After(now) {
		return repeat{}, false
	}
	r.queue, r.sending = r.queue[1:], true
	if one.left--; one.left > 0 {
		one.due = one.due.Add(r.interval)
		r.insert(one)
	} else {
		r.bytes -= len(one.packet)
	}
	return one, true
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

// discard empties the queue, and returns how many repeats waited.
func (r *repeats) discard() (count int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.queue {
		count += one.left
	}
	r.queue, r.bytes = nil, 0
	return count
}

// seed of hashes, which only this process compares.
var seed = maphash.MakeSeed()

// received are the packets that have come.
type received struct {
	senders map[netip.AddrPort]*numbers
	// warn is called once, for the first sender whose numbers tell nothing; then it is nil.
	warn func(text string)
}

// numbers are the last ones of a sender, in a ring, with hashes of their datagrams.
type numbers struct {
	known map[uint32]uint64
	ring  []uint32
	next  int
	// reused: several messages had the same number, so that all count.
	reused bool
}

func newReceived(warn func(string)) *received {
	return &received{senders: map[netip.AddrPort]*numbers{}, warn: warn}
}

// first reports whether a datagram, whose packet has the given size, is the first with its number from a sender. Without a
// number it always is.
func (r *received) first(sender netip.AddrPort, datagram []byte, size int) bool {
	number, numbered := numberOf(datagram, size)
	if !numbered {
		return true
	}
	of := r.senders[sender]
	if of == nil {
		if len(r.senders) == maxSenders { // forged ones, as no network has so many
			clear(r.senders)
		}
		of = &numbers{known: map[uint32]uint64{}}
		r.senders[sender] = of
	}
	isFirst := of.add(number, maphash.Bytes(seed, datagram))
	if of.reused && r.warn != nil {
		r.warn(fmt.Sprintf("sender %s gives packet number %d to several messages: all of its datagrams count, as of other such senders", sender, number))
		r.warn = nil
	}
	return isFirst
}

// add keeps a number; false if it was known, with the same datagram.
func (n *numbers) add(number uint32, datagram uint64) bool {
	if n.reused {
		return true
	}
	if had, known := n.known[number]; known {
		if had != datagram {
			*n = numbers{reused: true}
		}
		return n.reused
	}
	n.known[number] = datagram
	if len(n.ring) < mqttudp.Remembered {
		n.ring = append(n.ring, number)
		return true
	}
	delete(n.known, n.ring[n.next])
	n.ring[n.next] = number
	n.next = (n.next + 1) % mqttudp.Remembered
	return true
}
