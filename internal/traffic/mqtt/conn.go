package mqtt

import (
	"errors"
	"net"
	"sync"
	"time"

	"vignette.dev/vignette/internal/traffic/mqttwire"
)

// conn tells when PUBLISH packets are handed to the socket, which neither library does for QoS 1 and 2.
//
// It writes each packet in one piece. The library for MQTT 5 hands packets over in parts, which with
// TCP_NODELAY would become a segment each on any connection but the library's own.
type conn struct {
	net.Conn
	form mqttwire.Form
	sent func(at time.Time, topic string, payload []byte)
	// released is told before a PUBREL is written.
	released func(id uint16)
	// admit is asked before a PUBLISH of QoS 1 or 2 is written; where it says no, the packet is left out.
	admit func(c *conn, id uint16, payload []byte) bool
	// closed is told when the connection is closed by either side.
	closed func(*conn)

	packet  sync.Mutex // held by the library while it writes a packet in parts
	mu      sync.Mutex
	partial []byte
	// head are the first bytes received, of CONNACK: type, length, flags.
	head []byte
}

// headBytes of CONNACK tell whether the session is present (3.2.2.2 in both versions): the properties of MQTT 5 come later.
const headBytes = 3

// Read notes what the broker says of the session, which the library for MQTT 3.1.1 tells of the first connection only.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if missing := headBytes - len(c.head); missing > 0 {
		c.head = append(c.head, b[:min(n, missing)]...)
	}
	return n, err
}

// sessionPresent tells whether the broker still had the client's session. It is for after the CONNACK.
func (c *conn) sessionPresent() bool {
	return len(c.head) == headBytes && c.head[2]&1 == 1
}

// Close tells that the connection is closed.
func (c *conn) Close() error {
	if c.closed != nil {
		c.closed(c)
	}
	return c.Conn.Close()
}

// Lock and Unlock are what the library for MQTT 5 looks for where it writes a packet in parts.
func (c *conn) Lock()   { c.packet.Lock() }
func (c *conn) Unlock() { c.packet.Unlock() }

// Write takes a packet or a part of one, and writes as soon as there is a whole one.
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
	// Before the write: where the kernel's buffer is full the wait for it belongs to the delay, and on
	// one host the receiver may be done before the write returns.
	at := time.Now()
	if id, ok := mqttwire.Pubrel(packet); ok && c.released != nil {
		c.released(id)
	}
	publish, known := mqttwire.Publish{}, false
	if packet[0]>>4 == mqttwire.TypePublish {
		var err error
		publish, err = mqttwire.ParsePublish(packet, c.form)
		known = err == nil
	}
	if id, ok := mqttwire.PublishID(packet); ok && known && c.admit != nil && !c.admit(c, id, publish.Payload) {
		return nil
	}
	if _, err := c.Conn.Write(packet); err != nil {
		return err
	}
	if known {
		c.sent(at, publish.Topic, publish.Payload)
	}
	return nil
}
