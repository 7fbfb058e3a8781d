package client

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"net"
	"sync"
	"time"

	"vignette.dev/vignette/internal/traffic/mqttsn"
	"vignette.dev/vignette/internal/traffic/mqttsn/wire"
)

// seed of digests, which only this process compares.
var seed = maphash.MakeSeed()

// errEnded reports the gateway's DISCONNECT.
var errEnded = errors.New("the gateway has ended the connection")

// link is a socket to one gateway.
type link struct {
	socket *net.UDPConn
	// answers has answers to requests. broken has the socket's error, or errEnded.
	answers chan wire.Packet
	broken  chan error

	mu sync.Mutex
	// sent and received are the times of the last packet in each direction.
	sent, received time.Time
	// asleep is guarded by the client's lock.
	asleep bool
}

func dial(address *net.UDPAddr) (*link, error) {
	socket, err := net.DialUDP("udp4", nil, address)
	if err != nil {
		return nil, err
	}
	_ = socket.SetReadBuffer(receiveBuffer) // a smaller buffer works too
	now := time.Now()
	return &link{socket: socket, answers: make(chan wire.Packet, 16), broken: make(chan error, 1), sent: now, received: now}, nil
}

func (l *link) close() { l.socket.Close() }

func (l *link) send(p wire.Packet) error {
	b, err := wire.Append(nil, p)
	if err != nil {
		return err
	}
	if _, err := l.socket.Write(b); err != nil {
		return err
	}
	l.mu.Lock()
	l.sent = time.Now()
	l.mu.Unlock()
	return nil
}

func (l *link) noteReceived(at time.Time) {
	l.mu.Lock()
	l.received = at
	l.mu.Unlock()
}

// last returns the times of the last packet sent and received.
func (l *link) last() (sent, received time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent, l.received
}

func (l *link) fail(err error) {
	select {
	case l.broken <- err:
	default:
	}
}

// read reads packets until the socket is closed.
func (c *Client) read(l *link) {
	buffer := make([]byte, wire.MaxDatagram+1)
	for {
		n, err := l.socket.Read(buffer)
		at := time.Now()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// The gateway's port is closed, or its host is unreachable.
			if l.fail(err); c.qos == mqttsn.QoSMinusOne {
				time.Sleep(time.Millisecond) // at most one per sent message
			}
			continue
		}
		p, err := wire.Parse(buffer[:n])
		if err != nil {
			c.warnOnce(fmt.Sprintf("a datagram of the gateway that is no MQTT-SN packet is ignored, as all such: %v", err))
			continue
		}
		l.noteReceived(at)
		c.packet(l, at, p)
	}
}

func (c *Client) warnOnce(text string) {
	c.mu.Lock()
	reported := c.reported
	c.reported = true
	c.mu.Unlock()
	if !reported {
		c.setup.Warn(text)
	}
}

// packet handles a received packet: it answers the gateway's requests, and passes answers to the waiting request.
func (c *Client) packet(l *link, at time.Time, p wire.Packet) {
	switch p := p.(type) {
	case *wire.Publish:
		c.receive(l, at, p)
	case *wire.Register:
		c.mu.Lock()
		c.names[p.TopicID] = p.Topic
		c.mu.Unlock()
		_ = l.send(&wire.Regack{TopicID: p.TopicID, MsgID: p.MsgID})
	case *wire.Pubrel:
		c.mu.Lock()
		delete(c.unreleased, p.MsgID)
		c.mu.Unlock()
		_ = l.send(&wire.Pubcomp{MsgID: p.MsgID})
	case *wire.Pingreq:
		_ = l.send(&wire.Pingresp{})
	case *wire.Advertise, *wire.GWInfo, *wire.SearchGW:
		// The gateway is known already.
	default:
		select {
		case l.answers <- p:
		default: // no request waits
		}
	}
}

// topicOf returns the topic of a message.
func (c *Client) topicOf(p *wire.Publish) (topic string, ok bool) {
	switch p.Kind {
	case wire.Short:
		return mqttsn.LongName(p.TopicID), true
	case wire.Predefined:
		if c.setup.Publish == nil {
			return "", false
		}
		for topic, id := range c.setup.Publish.PredefinedTopics {
			if id == p.TopicID {
				return topic, true
			}
		}
		return "", false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	topic, ok = c.names[p.TopicID]
	return topic, ok
}

func (c *Client) receive(l *link, at time.Time, p *wire.Publish) {
	topic, ok := c.topicOf(p)
	if !ok {
		_ = l.send(&wire.Puback{TopicID: p.TopicID, MsgID: p.MsgID, Code: wire.InvalidTopicID})
		return
	}
	fresh := true
	if p.QoS == 2 {
		digest := digestOf(topic, p.Data)
		c.mu.Lock()
		before, known := c.unreleased[p.MsgID]
		fresh = !known || before != digest
		c.unreleased[p.MsgID] = digest
		c.mu.Unlock()
	}
	if fresh {
		c.events.Received(at, topic, p.Data)
	}
	switch p.QoS {
	case 1:
		_ = l.send(&wire.Puback{TopicID: p.TopicID, MsgID: p.MsgID})
	case 2:
		_ = l.send(&wire.Pubrec{MsgID: p.MsgID})
	}
}

// digestOf tells a repetition from another message with the same id.
func digestOf(topic string, payload []byte) uint64 {
	return maphash.Comparable(seed, [2]string{topic, string(payload)})
}

// request sends a packet, repeats it without an answer, and returns the first matching answer.
func (c *Client) request(l *link, send func(again bool) error, matches func(wire.Packet) bool) (wire.Packet, error) {
	started := time.Now()
	// alive: another packet arrived, so the gateway is there, and may have sent other packets first.
	for silent, alive := 0, 0; ; {
		if err := send(silent+alive > 0); err != nil {
			return nil, err
		}
		answer, err := c.await(l, time.Now().Add(c.retryAfter), matches)
		if answer != nil || err != nil {
			return answer, err
		}
		if _, received := l.last(); received.After(started) && time.Since(received) < c.retryAfter {
			alive++
		} else {
			silent++
		}
		if silent > c.retries || alive > 10*c.retries {
			return nil, fmt.Errorf("no answer to %d packets in %v", silent+alive, time.Since(started).Round(time.Millisecond))
		}
	}
}

// await waits for an answer; nil after the timeout.
func (c *Client) await(l *link, until time.Time, matches func(wire.Packet) bool) (wire.Packet, error) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return nil, c.ctx.Err()
		case err := <-l.broken:
			return nil, err
		case <-timer.C:
			return nil, nil
		case p := <-l.answers:
			if matches(p) {
				return p, nil
			}
			if d, ok := p.(*wire.Disconnect); ok && !d.Sleep {
				return nil, errEnded
			}
		}
	}
}

// search asks a multicast or broadcast address for a gateway.
func search(ctx context.Context, to *net.UDPAddr, timeout time.Duration) (*net.UDPAddr, error) {
	socket, err := net.ListenUDP("udp4", nil)
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	stop := context.AfterFunc(ctx, func() { _ = socket.SetReadDeadline(time.Now()) })
	defer stop()
	b, err := wire.Append(nil, &wire.SearchGW{Radius: 1})
	if err != nil {
		return nil, err
	}
	if _, err := socket.WriteToUDP(b, to); err != nil {
		return nil, err
	}
	if err := socket.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	buffer := make([]byte, wire.MaxDatagram)
	for {
		n, from, err := socket.ReadFromUDP(buffer)
		if err != nil {
			return nil, fmt.Errorf("no gateway answers at %s: %w", to, err)
		}
		p, err := wire.Parse(buffer[:n])
		if err != nil {
			continue
		}
		switch p := p.(type) {
		case *wire.Advertise:
			return from, nil
		case *wire.GWInfo:
			return gatewayOf(p, from), nil
		}
	}
}

// gatewayOf returns the address in another client's answer (IPv4, with or without a port), or the gateway's own.
func gatewayOf(p *wire.GWInfo, from *net.UDPAddr) *net.UDPAddr {
	switch len(p.Address) {
	case net.IPv4len:
		return &net.UDPAddr{IP: append(net.IP(nil), p.Address...), Port: from.Port}
	case net.IPv4len + 2:
		return &net.UDPAddr{IP: append(net.IP(nil), p.Address[:net.IPv4len]...), Port: int(binary.BigEndian.Uint16(p.Address[net.IPv4len:]))}
	}
	return from
}
