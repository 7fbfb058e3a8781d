package transport

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// ErrNoRoom is the error of a message that was not sent because too much waits before it for a link that is slower.
var ErrNoRoom = errors.New("the connection takes no more: the message is not sent")

// mostWaiting bytes of messages without a promise.
const mostWaiting = 16 << 20

// OutboxMessage is a message on its way to a connection's writer.
type OutboxMessage struct {
	// Number of the message on this connection, from 1 in the order of writing.
	Number  uint64
	Topic   string
	Payload []byte
}

// Outbox holds a client's messages between Publish and whoever writes them to a connection, so that Publish never waits for a socket.
//
// An outbox that keeps messages (QoS 1) has each until it is acknowledged, over any number of connections: what was not acknowledged on
// one is written again on the next, before all else and in its order. One that does not (QoS 0) refuses messages while there is no
// connection, and forgets what was not written when a connection ends.
type Outbox struct {
	keeps bool

	mu        sync.Mutex
	wake      chan struct{}
	connected bool
	waiting   []OutboxMessage
	bytes     int
	written   uint64
	// unacknowledged by their numbers.
	unacknowledged map[uint64]OutboxMessage
}

// NewOutbox makes one that keeps messages until they are acknowledged, or not.
func NewOutbox(keeps bool) *Outbox {
	return &Outbox{keeps: keeps, wake: make(chan struct{}, 1), unacknowledged: map[uint64]OutboxMessage{}}
}

// Put a message at the end. With an error it will never be written.
func (o *Outbox) Put(topic string, payload []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.keeps && !o.connected {
		return ErrNotConnected
	}
	if !o.keeps && o.bytes > 0 && o.bytes+len(payload) > mostWaiting {
		return ErrNoRoom
	}
	o.append(OutboxMessage{Topic: topic, Payload: payload})
	return nil
}

func (o *Outbox) append(m OutboxMessage) {
	o.waiting = append(o.waiting, m)
	o.bytes += len(m.Payload)
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// Connected begins a connection, with numbers from 1.
func (o *Outbox) Connected() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.connected, o.written = true, 0
}

// Disconnected ends a connection.
func (o *Outbox) Disconnected() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.connected = false
	if !o.keeps {
		o.waiting, o.bytes = nil, 0
		return
	}
	again := make([]OutboxMessage, 0, len(o.unacknowledged)+len(o.waiting))
	for _, m := range o.unacknowledged {
		again = append(again, m)
		o.bytes += len(m.Payload)
	}
	slices.SortFunc(again, func(a, b OutboxMessage) int { return int(int64(a.Number) - int64(b.Number)) })
	clear(o.unacknowledged)
	o.waiting = append(again, o.waiting...)
}

// Next takes the message that is to be written, and waits for one; false when ctx ends. It is for one goroutine.
func (o *Outbox) Next(ctx context.Context) (OutboxMessage, bool) {
	for {
		if m, ok := o.take(); ok {
			return m, true
		}
		select {
		case <-ctx.Done():
			return OutboxMessage{}, false
		case <-o.wake:
		}
	}
}

func (o *Outbox) take() (OutboxMessage, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		return OutboxMessage{}, false
	}
	m := o.waiting[0]
	o.waiting[0] = OutboxMessage{} // its payload is not to be held
	o.waiting = o.waiting[1:]
	o.bytes -= len(m.Payload)
	o.written++
	m.Number = o.written
	if o.keeps {
		o.unacknowledged[m.Number] = m
	}
	return m, true
}

// Acknowledge that the broker has a message.
func (o *Outbox) Acknowledge(number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.unacknowledged, number)
}

// Reject tells that the broker does not want a message now: it is written once more.
func (o *Outbox) Reject(number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m, ok := o.unacknowledged[number]; ok {
		delete(o.unacknowledged, number)
		o.append(m)
	}
}

// Empty tells that nothing waits to be written or acknowledged.
func (o *Outbox) Empty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.waiting) == 0 && len(o.unacknowledged) == 0
}

// WaitEmpty waits until it is, or ctx ends.
func (o *Outbox) WaitEmpty(ctx context.Context) {
	for !o.Empty() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}
