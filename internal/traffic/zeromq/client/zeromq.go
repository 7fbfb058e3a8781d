// Package client is a ZeroMQ publish/subscribe client for the traffic generator, on libzmq: ZMTP 3 over TCP (rfc.zeromq.org/spec/23), or
// PGM by multicast (RFC 3208), in UDP or by raw sockets. A message is two frames: topic and content.
package client

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"vignette.dev/vignette/internal/traffic/mqtttopic"
	"vignette.dev/vignette/internal/traffic/protocol"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/traffic/zeromq"
	"vignette.dev/vignette/internal/traffic/zeromq/zmq"
)

// Client publishes on one socket and subscribes on another, both to the same broker.
type Client struct {
	setup   transport.Setup
	events  transport.Events
	dialer  *transport.Dialer
	library *zmq.Context
	ctx     context.Context
	cancel  context.CancelFunc
	done    sync.WaitGroup

	mu sync.Mutex
	// publisher is nil without a connection.
	publisher *zmq.Socket
	// lingers is how long the sockets may take to send their last messages while the client closes.
	lingers time.Duration
}

// Open is a transport.Open.
func Open(s transport.Setup, events transport.Events) (transport.Client, error) {
	if err := check(s); err != nil {
		return nil, err
	}
	dialer, err := transport.NewDialer(s)
	if err != nil {
		return nil, err
	}
	library, err := zmq.Open()
	if err != nil {
		return nil, err
	}
	c := &Client{setup: s, events: events, dialer: dialer, library: library}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.done.Go(c.run)
	return c, nil
}

// check returns an error for a setup that ZeroMQ does not support.
func check(s transport.Setup) error {
	for _, filter := range s.Filters() {
		if err := mqtttopic.ValidFilter(filter); err != nil {
			return err
		}
	}
	switch {
	case s.Security != nil && *s.Security != (protocol.Security{}):
		return fmt.Errorf("security of %s: the ZeroMQ client has neither TLS nor a login", s.Broker)
	case zeromq.Multicast(s.Transport) && s.PGM == nil:
		return fmt.Errorf("pgm is missing: transport %s wants its multicast groups", s.Transport)
	case zeromq.Multicast(s.Transport) && s.PGM.RateKilobits < zeromq.MinPGMKilobits:
		return fmt.Errorf("pgm.rateKilobits is %d: want %d at least", s.PGM.RateKilobits, zeromq.MinPGMKilobits)
	case !zeromq.Multicast(s.Transport) && s.Transport != zeromq.TransportTCP && s.Transport != "":
		return fmt.Errorf("transport %q: want %s, %s or %s", s.Transport, zeromq.TransportTCP, zeromq.TransportPGM, zeromq.TransportPGMRaw)
	}
	return nil
}

// run connects, and reconnects after each loss to the next broker.
func (c *Client) run() {
	for {
		broker, err := c.dialer.Next(c.ctx)
		if err != nil {
			return
		}
		err = c.session(broker)
		reason := "closed"
		if c.ctx.Err() == nil {
			reason = broker + ": " + transport.Words(err)
		}
		c.events.Connection(false, reason)
	}
}

// session runs one connection of each socket until one fails. It opens new sockets each time: libzmq would queue
// messages for a lost broker, and retry only that one.
func (c *Client) session(broker string) error {
	links, err := c.connect(broker)
	defer func() { c.end(links) }()
	if err != nil {
		return err
	}
	timeout, cancel := context.WithTimeout(c.ctx, c.dialer.Timeout())
	defer cancel()
	for _, l := range links {
		if err := l.waitConnected(timeout); err != nil {
			return err
		}
	}
	c.begin(links)
	g, ctx := errgroup.WithContext(c.ctx)
	for _, l := range links {
		g.Go(func() error { return l.waitLost(ctx) })
		if l.kind == zmq.SUB {
			g.Go(func() error { return c.receive(ctx, l.socket) })
		}
	}
	return g.Wait()
}

// connect starts to connect a socket for each direction.
func (c *Client) connect(broker string) (links []*link, err error) {
	publish, subscribe, err := c.endpoints(broker)
	if err != nil {
		return nil, err
	}
	if c.setup.Publish != nil {
		l, err := c.open(zmq.PUB, publish)
		if err != nil {
			return links, err
		}
		links = append(links, l)
	}
	if c.setup.Subscribe != nil {
		l, err := c.open(zmq.SUB, subscribe)
		if err != nil {
			return links, err
		}
		links = append(links, l)
	}
	return links, nil
}

// endpoints returns a broker's endpoints for publishers and for subscribers.
func (c *Client) endpoints(broker string) (publish, subscribe string, err error) {
	if zeromq.Multicast(c.setup.Transport) {
		return PGMEndpoints(c.setup.Transport, c.setup.Interface, *c.setup.PGM)
	}
	host, port, err := net.SplitHostPort(broker)
	if err != nil {
		return "", "", err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number > 65534 {
		return "", "", fmt.Errorf("broker %q: want a port up to 65534, as subscribers use the one above", broker)
	}
	// libzmq does not report a name that it cannot resolve.
	addresses, err := net.DefaultResolver.LookupNetIP(c.ctx, "ip4", host)
	if err != nil {
		return "", "", err
	}
	return fmt.Sprintf("tcp://%s:%d", addresses[0].Unmap(), number), fmt.Sprintf("tcp://%s:%d", addresses[0].Unmap(), number+1), nil
}

// begin allows publishing.
func (c *Client) begin(links []*link) {
	c.mu.Lock()
	for _, l := range links {
		if l.kind == zmq.PUB {
			c.publisher = l.socket
		}
	}
	c.mu.Unlock()
	c.events.Connection(true, c.dialer.Connected())
}

// end closes the sockets. Messages that a failed connection had not taken are lost, as in TCP's buffers.
func (c *Client) end(links []*link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.publisher = nil
	linger := time.Duration(0)
	if c.ctx.Err() != nil {
		linger = c.lingers
	}
	for _, l := range links {
		l.close(linger)
	}
}

// receive receives messages until ctx ends.
func (c *Client) receive(ctx context.Context, s *zmq.Socket) error {
	warned := false
	for {
		frames, err := s.Receive()
		at := time.Now()
		if zmq.Again(err) {
			err = s.Wait(ctx)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		topic, content, err := c.parse(frames)
		if err != nil {
			if !warned {
				c.setup.Warn(fmt.Sprintf("a message that is not topic and content is ignored, as all such: %v", err))
				warned = true
			}
			continue
		}
		if mqtttopic.MatchAny(c.setup.Filters(), topic) {
			c.events.Received(at, topic, content)
		}
	}
}

// parse parses a message. Over PGM its frames may follow the first frames of an incomplete message.
func (c *Client) parse(frames [][]byte) (topic string, content []byte, err error) {
	n := len(frames)
	if n < 2 || n > 2 && !zeromq.Multicast(c.setup.Transport) {
		return "", nil, fmt.Errorf("it has %d frames: want 2", n)
	}
	topic = string(frames[n-2])
	return topic, frames[n-1], mqtttopic.Valid(topic)
}

// Publish passes a message to libzmq, which sends it if a subscriber of the broker wants it. A full queue refuses it.
func (c *Client) Publish(topic string, payload []byte) error {
	if err := mqtttopic.Valid(topic); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.publisher == nil {
		return transport.ErrNotConnected
	}
	at := time.Now()
	err := c.publisher.Send([]byte(topic), payload)
	if zmq.Again(err) {
		return fmt.Errorf("the queue of %d messages is full: %w", highWater(c.setup.LargestBytes), transport.ErrNoRoom)
	}
	if err != nil {
		return err
	}
	c.events.Sent(at, topic, payload)
	return nil
}

// Close gives the published messages until ctx ends, and disconnects.
func (c *Client) Close(ctx context.Context) {
	if deadline, ok := ctx.Deadline(); ok {
		c.mu.Lock()
		c.lingers = max(0, time.Until(deadline))
		c.mu.Unlock()
	}
	c.cancel()
	c.done.Wait()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := c.library.Close(); err != nil {
			c.setup.Warn(err.Error())
		}
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}
