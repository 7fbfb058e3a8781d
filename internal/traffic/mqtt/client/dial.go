package client

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	mqttwire "vignette.dev/vignette/internal/traffic/mqtt/wire"
	"vignette.dev/vignette/internal/traffic/transport"
)

// dialer opens connections for both libraries. Each asks for the login first, and then for a connection.
type dialer struct {
	*transport.Dialer
	form mqttwire.Form
	sent func(at time.Time, topic string, payload []byte)
	out  *outbox
	// released is called for messages of QoS 2 that the broker has.
	released func(id uint16)
	// admit is called before messages of QoS 1 and 2 are written.
	admit func(c *conn, id uint16, p publishPacket) []publishPacket

	mu    sync.Mutex
	last  *conn // the latest connection
	login error // why the attempt has no login
}

// user returns user name and password for the next connection.
func (d *dialer) user() (username, password string) {
	username, password, err := d.Login()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.login = err
	return username, password
}

func (d *dialer) dial(ctx context.Context) (net.Conn, error) {
	inner, err := d.Dial(ctx)
	if err != nil {
		return nil, err
	}
	watched := transport.Watch(inner)
	c := &conn{Conn: watched, watched: watched, done: make(chan struct{}), form: d.form, sent: d.sent, closed: d.out.detach, released: d.released, admit: d.admit, early: map[string]publishPacket{}}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.login != nil {
		return nil, errors.Join(d.login, inner.Close())
	}
	d.last = c
	return c, nil
}

// connected records that the broker accepted the client, and starts messages of QoS 0. It returns the connection, and the broker's host:port.
func (d *dialer) connected() (*conn, string) {
	d.mu.Lock()
	c := d.last
	d.mu.Unlock()
	d.out.attach(c)
	return c, d.Connected()
}

// maxWrite is the most bytes of a write of several messages, as they are told to be sent when all of it is.
const maxWrite = 64 << 10

// outbox writes messages of QoS 0 without the libraries, in a tenth of the time. Messages that were published during a
// write go out together in the next. A message that waits when the connection is lost is never sent.
type outbox struct {
	form   mqttwire.Form
	retain bool
	events transport.Events

	mu sync.Mutex
	// changed signals a message, or another connection.
	changed sync.Cond
	conn    *conn
	waiting []mqttwire.Publish
	bytes   int
}

func newOutbox(form mqttwire.Form, retain bool, events transport.Events) *outbox {
	o := &outbox{form: form, retain: retain, events: events}
	o.changed.L = &o.mu
	return o
}

// put queues a message for writing. It never waits: the publisher's next messages are due at their own times.
func (o *outbox) put(topic string, payload []byte) error {
	if err := mqttwire.ValidPublish(topic, payload); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	m := mqttwire.Publish{Topic: topic, Payload: payload, Retain: o.retain}
	switch {
	case o.conn == nil:
		return transport.ErrNotConnected
	case !transport.HasRoom(o.bytes, size(m)):
		return transport.ErrNoRoom
	}
	o.waiting = append(o.waiting, m)
	o.bytes += size(m)
	if len(o.waiting) == 1 {
		o.changed.Broadcast()
	}
	return nil
}

func size(m mqttwire.Publish) int { return len(m.Topic) + len(m.Payload) }

// attach starts writing to a connection that the broker has accepted.
func (o *outbox) attach(c *conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.conn = c
	o.changed.Broadcast()
	go o.run(c)
}

// detach stops writing to a closed connection.
func (o *outbox) detach(c *conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conn == c {
		for _, m := range o.waiting {
			o.events.DropUnsent(m.Topic, m.Payload)
		}
		o.conn, o.waiting, o.bytes = nil, nil, 0
		o.changed.Broadcast()
	}
}

func (o *outbox) run(c *conn) {
	var packets []byte
	var ends []int // of the packets
	for batch := o.take(c); batch != nil; batch = o.take(c) {
		packets, ends = packets[:0], ends[:0]
		for _, m := range batch {
			packets = mqttwire.Append(packets, m, o.form)
			ends = append(ends, len(packets))
		}
		at := time.Now()
		written, err := c.Conn.Write(packets)
		for i, m := range batch {
			if ends[i] <= written {
				o.events.Sent(at, m.Topic, m.Payload)
			} else {
				o.events.DropUnsent(m.Topic, m.Payload)
			}
		}
		if err != nil {
			c.Close() // a packet may be partly written; the library notices by its read
			return
		}
		clear(batch) // release their payloads: the queue may still have the array
	}
}

// take waits for the next messages for a connection; nil once it is closed.
func (o *outbox) take(c *conn) []mqttwire.Publish {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.conn == c && len(o.waiting) == 0 {
		o.changed.Wait()
	}
	if o.conn != c {
		return nil
	}
	n, bytes := 1, size(o.waiting[0])
	for n < len(o.waiting) && bytes+size(o.waiting[n]) <= maxWrite {
		bytes += size(o.waiting[n])
		n++
	}
	batch := o.waiting[:n]
	o.waiting, o.bytes = o.waiting[n:], o.bytes-bytes
	return batch
}

// drain waits until the writer has taken all messages, or ctx ends.
func (o *outbox) drain(ctx context.Context) {
	poll(ctx, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.waiting) == 0
	})
}
