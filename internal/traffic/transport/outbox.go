package transport

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"vignette.dev/vignette/internal/bell"
	"vignette.dev/vignette/internal/clock"
)

// ErrNoRoom is the error of a message that was not sent because the queue for a slow link is full.
var ErrNoRoom = errors.New("the connection takes no more: the message is not sent")

// maxWaiting is the most bytes that wait without a guarantee (QoS 0).
const maxWaiting = 16 << 20

// HasRoom reports whether another message may wait at QoS 0. The first always may, so that large ones go out.
func HasRoom(waitingBytes, messageBytes int) bool {
	return waitingBytes == 0 || waitingBytes+messageBytes <= maxWaiting
}

// OutboxMessage is a message for a connection's writer.
type OutboxMessage struct {
	// Number is that of the message on this connection, from 1 in the order of writing.
	Number  uint64
	Topic   string
	Payload []byte
}

// Outbox queues a client's messages between Publish and the connection's writer, so that Publish never waits for a socket.
//
// An outbox that keeps messages (QoS 1) has each until it is acknowledged, over any number of connections. Messages without acknowledgement on
// one are written first on the next, in their order. An outbox that does not (QoS 0) refuses messages without a
// connection, and drops unwritten ones at the end of a connection.
type Outbox struct {
	keeps bool
	// drop is called for messages of QoS 0 that are dropped.
	drop func(topic string, payload []byte)

	mu        sync.Mutex
	wake      bell.Bell
	connected bool
	waiting   []OutboxMessage
	bytes     int
	written   uint64
	// unacknowledged messages by number.
	unacknowledged map[uint64]OutboxMessage
}

// NewOutbox returns an outbox that keeps messages until they are acknowledged, or not.
func NewOutbox(keeps bool, events Events) *Outbox {
	return &Outbox{keeps: keeps, drop: events.DropUnsent, wake: bell.New(), unacknowledged: map[uint64]OutboxMessage{}}
}

// Put appends a message. With an error it will never be written.
func (o *Outbox) Put(topic string, payload []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.keeps && !o.connected {
		return ErrNotConnected
	}
	if !o.keeps && !HasRoom(o.bytes, len(payload)) {
		return ErrNoRoom
	}
	o.append(OutboxMessage{Topic: topic, Payload: payload})
	return nil
}

func (o *Outbox) append(m OutboxMessage) {
	o.waiting = append(o.waiting, m)
	o.bytes += len(m.Payload)
	o.wake.Ring()
}

// Connected starts a connection, with numbers from 1.
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
		for _, m := range o.waiting {
			o.drop(m.Topic, m.Payload)
		}
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

// Next waits for the next message to write; false when ctx ends. It is for one goroutine.
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
	o.waiting[0] = OutboxMessage{} // release its payload
	o.waiting = o.waiting[1:]
	o.bytes -= len(m.Payload)
	o.written++
	m.Number = o.written
	if o.keeps {
		o.unacknowledged[m.Number] = m
	}
	return m, true
}

// NotWritten records that the write of a message failed.
func (o *Outbox) NotWritten(m OutboxMessage) {
	if !o.keeps {
		o.drop(m.Topic, m.Payload)
	}
}

// Acknowledge records that the broker has a message.
func (o *Outbox) Acknowledge(number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.unacknowledged, number)
}

// Reject records that the broker refused a message for now: it is written again.
func (o *Outbox) Reject(number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m, ok := o.unacknowledged[number]; ok {
		delete(o.unacknowledged, number)
		o.append(m)
	}
}

// Empty reports whether nothing waits to be written or acknowledged.
func (o *Outbox) Empty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.waiting) == 0 && len(o.unacknowledged) == 0
}

// WaitEmpty waits until the outbox is empty or ctx ends.
func (o *Outbox) WaitEmpty(ctx context.Context) {
	for !o.Empty() && clock.Pause(ctx, 10*time.Millisecond) {
	}
}
