package client

import (
	"bytes"
	"cmp"
	"errors"
	"net"
	"sync"
	"time"

	mqttwire "vignette.dev/vignette/internal/traffic/mqtt/wire"
	"vignette.dev/vignette/internal/traffic/transport"
)

// conn reports when PUBLISH packets go to the socket, which neither library does for QoS 1 and 2.
//
// It writes each packet at once. The library for MQTT 5 writes packets in parts, which with
// TCP_NODELAY would become a segment each.
type conn struct {
	net.Conn
	form mqttwire.Form
	sent func(at time.Time, topic string, payload []byte)
	// released is called before a PUBREL is written.
	released func(id uint16)
	// admit is called before a PUBLISH of QoS 1 or 2 is written, and returns the packets to write instead.
	admit func(c *conn, id uint16, p publishPacket) []publishPacket
	// early has packets that wait for earlier ones, by the window's keys.
	early map[string]publishPacket
	// closed is called when either side closes the connection, and done closes then.
	closed func(*conn)
	done   chan struct{}
	once   sync.Once
	// watched is Conn.
	watched *transport.WatchedConn

	packet  sync.Mutex // the library holds it while it writes a packet in parts
	mu      sync.Mutex
	partial []byte
	losing  sync.Mutex
	// lost is why keepAlive closed the connection, if it did.
	lost error
	// head has the first received bytes, which are of CONNACK: type, length, flags.
	head []byte
}

// headBytes of CONNACK include the flag "session present" (3.2.2.2 in both versions). MQTT 5's properties follow.
const headBytes = 3

// Read records "session present", which the library for MQTT 3.1.1 reports for the first connection only.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if missing := headBytes - len(c.head); missing > 0 {
		c.head = append(c.head, b[:min(n, missing)]...)
	}
	if err != nil {
		c.losing.Lock()
		defer c.losing.Unlock()
		err = cmp.Or(c.lost, err)
	}
	return n, err
}

// sessionPresent reports whether the broker still had the client's session. It is valid after the CONNACK.
func (c *conn) sessionPresent() bool {
	return len(c.head) == headBytes && c.head[2]&1 == 1
}

// Close closes the connection and calls closed.
func (c *conn) Close() error {
	c.once.Do(func() {
		if c.done != nil {
			close(c.done)
		}
	})
	if c.closed != nil {
		c.closed(c)
	}
	return c.Conn.Close()
}

// Lock and Unlock: the library for MQTT 5 calls them around a packet that it writes in parts.
func (c *conn) Lock()   { c.packet.Lock() }
func (c *conn) Unlock() { c.packet.Unlock() }

// Write accepts a packet or a part of one, and writes when the packet is complete.
func (c *conn) Write(part []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	data := part
	if len(c.partial) > 0 {
		c.partial = append(c.partial, part...)
		data = c.partial
	}
	for len(data) > 0 {
		size, err := mqttwire.PacketSize(data)
		if errors.Is(err, mqttwire.ErrShort) || err == nil && size > len(data) {
			c.partial = append(c.partial[:0], data...)
			return len(part), nil
		}
		if err != nil {
			return 0, err
		}
		if err := c.writePacket(data[:size]); err != nil {
			return 0, err
		}
		data = data[size:]
	}
	c.partial = c.partial[:0]
	return len(part), nil
}

func (c *conn) writePacket(packet []byte) error {
	switch packet[0] >> 4 {
	case typePingreq:
		return nil // keepAlive pings
	case mqttwire.TypePublish:
		return c.writePublish(packet)
	}
	if id, ok := mqttwire.Pubrel(packet); ok && c.released != nil {
		c.released(id)
	}
	_, err := c.Conn.Write(packet)
	return err
}

// publishPacket is a PUBLISH with its bytes. Its payload is their end.
type publishPacket struct {
	mqttwire.Publish
	bytes []byte
}

// clone copies a packet, as the library uses its memory again.
func (p publishPacket) clone() publishPacket {
	p.bytes = bytes.Clone(p.bytes)
	p.Payload = p.bytes[len(p.bytes)-len(p.Payload):]
	return p
}

// writePublish writes a PUBLISH, or those that admit returns.
func (c *conn) writePublish(packet []byte) error {
	publish, err := mqttwire.ParsePublish(packet, c.form)
	if err != nil {
		_, err := c.Conn.Write(packet)
		return err
	}
	ready := []publishPacket{{publish, packet}}
	if id, ok := mqttwire.PublishID(packet); ok && c.admit != nil {
		ready = c.admit(c, id, ready[0])
	}
	for _, p := range ready {
		// Taken before the write: a wait for the kernel's full buffer is part of the delay, and on
		// one host the receiver may be done before the write returns.
		at := time.Now()
		if _, err := c.Conn.Write(p.bytes); err != nil {
			return err
		}
		c.sent(at, p.Topic, p.Payload)
	}
	return nil
}
