// Package client is an MQTT-SN 1.2 client over UDP for the traffic generator: QoS -1, 0, 1 and 2, topic ids, sleep.
//
// It has one request at a time, as the specification requires (6.13), repeats it every T_RETRY, up to N_RETRY times, and then
// connects again, to the next gateway if there are several.
package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"vignette.dev/vignette/internal/bell"
	"vignette.dev/vignette/internal/traffic/mqttsn"
	"vignette.dev/vignette/internal/traffic/mqttsn/wire"
	"vignette.dev/vignette/internal/traffic/mqtttopic"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

const (
	// retryAfter and retries are T_RETRY and N_RETRY of the specification (7.2): 10 to 15 s, 3 to 5.
	retryAfter = 10 * time.Second
	retries    = 5
	// With several gateways, a silent one is left after 15 s.
	retryAfterWithOthers = 5 * time.Second
	retriesWithOthers    = 2
	// maxQueued is the most messages that wait for earlier ones or for a connection.
	maxQueued = 10000
	// receiveBuffer is requested so that bursts wait in the kernel. net.core.rmem_max bounds it.
	receiveBuffer = 4 << 20
	// congestionWait is the wait before a message refused for congestion is repeated. The specification's T_WAIT, above 5 minutes, is for
	// networks that run for years.
	congestionWait = 5 * time.Second
)

var errQueueFull = fmt.Errorf("%d messages wait already: %w", maxQueued, transport.ErrNoRoom)

// outgoing is a message to be sent.
type outgoing struct {
	topic   string
	payload []byte
	// id of a sent message of QoS 1 or 2. received: PUBREC arrived.
	id       uint16
	received bool
}

// Client is a client of a gateway.
type Client struct {
	setup  transport.Setup
	events transport.Events
	dialer *transport.Dialer
	// id is the client id at the gateway.
	id string
	// qos is that of published messages. clean sessions end with their connections.
	qos   int
	clean bool
	// retryAfter and retries are the constants above, except in tests.
	retryAfter time.Duration
	retries    int

	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}
	// wake signals work: a message, or Close.
	wake bell.Bell

	mu      sync.Mutex
	link    *link
	ready   bool
	closing bool
	queue   []*outgoing
	// ids of topics by name, and names by the gateway's ids, valid on this connection.
	ids   map[string]uint16
	names map[uint16]string
	// unreleased has digests of received messages of QoS 2 without PUBREL, by their ids at the gateway with the address. A gateway that has
	// lost the session uses ids anew.
	unreleased map[uint16]uint64
	gateway    string
	lastID     uint16
	reported   bool

	subscriptions *transport.Subscriptions
	// subscribeAt is when refused subscriptions are requested again. Only run's goroutine uses it.
	subscribeAt time.Time
}

// Open is a transport.Open.
func Open(s transport.Setup, events transport.Events) (transport.Client, error) {
	after, times := retryAfter, retries
	if len(s.Failover) > 0 {
		after, times = retryAfterWithOthers, retriesWithOthers
	}
	c, err := open(s, events, after, times)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func open(s transport.Setup, events transport.Events, after time.Duration, times int) (*Client, error) {
	if err := check(s); err != nil {
		return nil, err
	}
	dialer, err := transport.NewDialer(s)
	if err != nil {
		return nil, err
	}
	c := &Client{setup: s, events: events, dialer: dialer, id: clientID(s.ClientID), qos: s.PublishQoS(), retryAfter: after, retries: times, clean: clean(s),
		done: make(chan struct{}), wake: bell.New(), subscriptions: transport.NewSubscriptions(s, events)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(c.done)
		c.run()
	}()
	return c, nil
}

func check(s transport.Setup) error {
	for _, filter := range s.Filters() {
		if err := mqtttopic.ValidFilter(filter); err != nil {
			return err
		}
	}
	if s.ClientID == "" {
		return fmt.Errorf("client id is empty: want a name unique at the gateway")
	}
	if most := wire.MaxDatagram - wire.PublishHeader; s.LargestBytes > most {
		return fmt.Errorf("payload of %d bytes: MQTT-SN has one datagram for it, which is %d bytes at most", s.LargestBytes, most)
	}
	if s.Security != nil {
		return errors.New("security: MQTT-SN 1.2 has none")
	}
	if s.PublishQoS() != mqttsn.QoSMinusOne {
		return nil
	}
	for _, topic := range topics(s) {
		if _, ok := minusOne(s, topic); !ok {
			return fmt.Errorf("topic %q with QoS -1: want one of publish.predefinedTopics, or a name of two characters", topic)
		}
	}
	return nil
}

// topics returns the topics that the client publishes to, each once.
func topics(s transport.Setup) (list []string) {
	if s.Publish == nil {
		return nil
	}
	seen := map[string]bool{"": true}
	add := func(topic string) {
		if !seen[topic] {
			seen[topic] = true
			list = append(list, topic)
		}
	}
	add(s.Publish.Topic)
	for _, m := range s.Publish.Messages {
		add(m.Topic)
	}
	return list
}

// clean reports whether the session ends with the connection.
func clean(s transport.Setup) bool {
	switch s.Session {
	case trafficconfig.SessionClean:
		return true
	case trafficconfig.SessionPersistent:
		return false
	}
	return s.PublishQoS() <= 0 && s.SubscribeQoS() == 0
}

// clientID has at most the specification's 23 characters. A longer name ends in a digest of the whole name.
func clientID(name string) string {
	if len(name) <= wire.MaxClientID {
		return name
	}
	const digits = 10
	sum := sha256.Sum256([]byte(name))
	return name[:wire.MaxClientID-digits-1] + "-" + hex.EncodeToString(sum[:])[:digits]
}

// topicID is how a PUBLISH names a topic without REGISTER.
type topicID struct {
	kind wire.TopicKind
	id   uint16
}

func minusOne(s transport.Setup, topic string) (topicID, bool) {
	if id, ok := s.Publish.PredefinedTopics[topic]; ok {
		return topicID{wire.Predefined, id}, true
	}
	id, ok := mqttsn.ShortName(topic)
	return topicID{wire.Short, id}, ok
}

// known returns how to name a topic to the gateway; false if it must be registered first.
func (c *Client) known(topic string) (topicID, bool) {
	if c.qos == mqttsn.QoSMinusOne {
		return minusOne(c.setup, topic)
	}
	if id, ok := mqttsn.ShortName(topic); ok {
		return topicID{wire.Short, id}, true
	}
	id, ok := c.ids[topic]
	return topicID{wire.Registered, id}, ok
}

// Publish sends a message of QoS -1 or 0 at once, and one of QoS 1 or 2 after those before it.
func (c *Client) Publish(topic string, payload []byte) error {
	c.mu.Lock()
	id, known := c.known(topic)
	l := c.link
	switch {
	case c.qos <= 0 && l == nil, c.qos == 0 && !c.ready:
		c.mu.Unlock()
		return transport.ErrNotConnected
	case c.qos == mqttsn.QoSMinusOne || c.qos == 0 && known && len(c.queue) == 0 && !l.asleep:
		c.mu.Unlock()
		return c.write(l, topic, &wire.Publish{QoS: c.qos, Retain: c.setup.Publish.Retain, Kind: id.kind, TopicID: id.id, Data: payload})
	case len(c.queue) >= maxQueued:
		c.mu.Unlock()
		return errQueueFull
	}
	c.queue = append(c.queue, &outgoing{topic: topic, payload: payload})
	c.mu.Unlock()
	c.wake.Ring()
	return nil
}

// write sends a PUBLISH and reports it.
func (c *Client) write(l *link, topic string, p *wire.Publish) error {
	at := time.Now()
	if err := l.send(p); err != nil {
		return err
	}
	c.events.Sent(at, topic, p.Data)
	return nil
}

// first returns the first waiting message, or nil.
func (c *Client) first() *outgoing {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return nil
	}
	return c.queue[0]
}

// pop removes the first message.
func (c *Client) pop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue[0] = nil
	c.queue = c.queue[1:]
}

func (c *Client) nextID() uint16 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lastID++; c.lastID == 0 {
		c.lastID = 1
	}
	return c.lastID
}

// run connects and reconnects until the client is closed.
func (c *Client) run() {
	for {
		broker, err := c.dialer.Next(c.ctx)
		if err != nil {
			return
		}
		err = c.connection(broker)
		if c.ctx.Err() != nil {
			return
		}
		c.events.Lost(err)
	}
}

// connection serves one gateway until the connection is lost or the client is closed.
func (c *Client) connection(broker string) error {
	address, err := c.find(broker)
	if err != nil {
		return err
	}
	l, err := dial(address)
	if err != nil {
		return err
	}
	defer l.close()
	c.mu.Lock()
	c.link, c.ids, c.names, c.ready = l, map[string]uint16{}, map[uint16]string{}, false
	if c.clean || c.gateway != address.String() { // no session there that has such messages
		c.unreleased, c.gateway = map[uint16]uint64{}, address.String()
	}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.link, c.ready = nil, false
		if c.qos > 0 {
			return
		}
		for _, o := range c.queue {
			c.events.DropUnsent(o.topic, o.payload)
		}
		c.queue = nil
	}()
	go c.read(l)
	if c.qos == mqttsn.QoSMinusOne && c.setup.Subscribe == nil {
		c.events.Connection(true, c.dialer.Connected())
		<-c.ctx.Done() // UDP has no connection to close
		return c.ctx.Err()
	}
	if err := c.begin(l); err != nil {
		return fmt.Errorf("gateway %s: %w", broker, err)
	}
	c.events.Connection(true, c.dialer.Connected())
	if err := c.serve(l); err != nil {
		return fmt.Errorf("gateway %s: %w", broker, err)
	}
	return nil
}

// find returns a gateway's address. A multicast or limited broadcast address is searched (6.1).
func (c *Client) find(broker string) (*net.UDPAddr, error) {
	address, err := net.ResolveUDPAddr("udp4", broker)
	if err != nil {
		return nil, err
	}
	if !address.IP.IsMulticast() && !address.IP.Equal(net.IPv4bcast) {
		return address, nil
	}
	return search(c.ctx, address, c.retryAfter)
}

// Close waits for unacknowledged messages until ctx ends, and disconnects.
func (c *Client) Close(ctx context.Context) {
	c.mu.Lock()
	c.closing = true
	idle := !c.ready && len(c.queue) == 0
	c.mu.Unlock()
	if idle { // a failure changes nothing
		c.cancel()
	}
	c.wake.Ring()
	select {
	case <-c.done:
	case <-ctx.Done():
		c.mu.Lock()
		if c.link != nil && c.ready {
			_ = c.link.send(&wire.Disconnect{})
		}
		c.mu.Unlock()
	}
	c.cancel()
	<-c.done
}
