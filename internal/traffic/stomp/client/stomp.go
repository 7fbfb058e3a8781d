// Package client is a STOMP 1.2 client for the traffic generator. The library go-stomp reads and writes frames. The connection is
// our own: the library's does not report when a frame is written, and takes none while another waits for its receipt.
package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"

	"vignette.dev/vignette/internal/traffic/mqtttopic"
	"vignette.dev/vignette/internal/traffic/transport"
)

const (
	// destinations is the prefix of topics' destinations in RabbitMQ and others.
	destinations = "/topic/"
	// guest is the user name and password of a broker without security.
	guest = "guest"
	// maxKey and maxBytes are the limits of RabbitMQ, which stores STOMP messages as AMQP's.
	maxKey   = 255
	maxBytes = 128 << 20
	// escapedSlash is RabbitMQ's escape of a slash in a destination's name.
	escapedSlash = "%2F"
)

// client maintains one connection.
type client struct {
	setup  transport.Setup
	events transport.Events
	dialer *transport.Dialer
	outbox *transport.Outbox
	// subscriptions are requested at the start of a connection, which fails if one is refused.
	subscriptions *transport.Subscriptions
	cancel        context.CancelFunc
	done          sync.WaitGroup
}

// Open is a transport.Open.
func Open(setup transport.Setup, events transport.Events) (transport.Client, error) {
	if err := validate(setup); err != nil {
		return nil, err
	}
	dialer, err := transport.NewDialer(setup)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &client{setup: setup, events: events, dialer: dialer, outbox: transport.NewOutbox(setup.PublishQoS() > 0), cancel: cancel,
		subscriptions: transport.NewSubscriptions(setup, events)}
	c.done.Go(func() { c.run(ctx) })
	return c, nil
}

func validate(setup transport.Setup) error {
	for _, filter := range setup.Filters() {
		if err := mqtttopic.ValidFilter(filter); err != nil {
			return err
		}
		if err := checkTopic("topic filter", filter); err != nil {
			return err
		}
	}
	if setup.PublishQoS() > 1 || setup.SubscribeQoS() > 1 {
		return fmt.Errorf("QoS %d to publish, %d to subscribe: STOMP has 0 and 1", setup.PublishQoS(), setup.SubscribeQoS())
	}
	if setup.LargestBytes > maxBytes {
		return fmt.Errorf("payload of %d bytes on topic %s: a broker takes up to %d", setup.LargestBytes, setup.LargestTopic, maxBytes)
	}
	return checkTopic("topic", setup.LargestTopic)
}

func checkTopic(what, topic string) error {
	switch {
	case len(topic) > maxKey:
		return fmt.Errorf("%s %s has %d bytes: a destination's name has at most %d", what, topic, len(topic), maxKey)
	case strings.Contains(topic, escapedSlash):
		return fmt.Errorf("%s %s has %s inside: RabbitMQ would take it for another character", what, topic, escapedSlash)
	}
	return nil
}

// destination returns that of a topic or filter: its routing key, with escaped slashes.
func destination(topic string) string {
	return destinations + strings.ReplaceAll(transport.RoutingKey(topic), "/", escapedSlash)
}

// topic returns that of a message's destination, in which RabbitMQ escapes more than it reads.
func topic(destination string) string {
	name := strings.TrimPrefix(destination, destinations)
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	return transport.Topic(name)
}

// Publish never waits: the connection sends the message as soon as it can.
func (c *client) Publish(topic string, payload []byte) error {
	if err := checkTopic("topic", topic); err != nil {
		return err
	}
	return c.outbox.Put(topic, payload)
}

// Close waits until all messages are written and, with QoS 1, acknowledged.
func (c *client) Close(ctx context.Context) {
	c.outbox.WaitEmpty(ctx)
	c.cancel()
	c.done.Wait()
}

// run connects and reconnects until the client is closed.
func (c *client) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := c.connection(ctx); err != nil && ctx.Err() == nil {
			c.events.Connection(false, err.Error())
		}
	}
}

// connection runs one connection and returns why it ended.
func (c *client) connection(ctx context.Context) error {
	socket, err := c.dialer.Dial(ctx)
	if err != nil {
		return err
	}
	defer socket.Close()
	// Until the subscription exists, only closing the socket stops the session.
	begun := context.AfterFunc(ctx, func() { socket.Close() })
	s, err := c.begin(socket)
	if err != nil {
		return err
	}
	begun()
	c.outbox.Connected()
	defer c.outbox.Disconnected()
	c.events.Connection(true, c.dialer.Connected())
	return s.use(ctx)
}

// begin runs the handshake and subscribes on a new socket.
func (c *client) begin(socket net.Conn) (*session, error) {
	username, password, err := c.dialer.Login()
	if err != nil {
		return nil, err
	}
	if username == "" {
		username, password = guest, guest
	}
	s := newSession(c, socket)
	if err := s.connect(username, password); err != nil {
		return nil, fmt.Errorf("handshake: %w", err)
	}
	if err := s.subscribe(); err != nil {
		if refusal, ok := errors.AsType[brokerError](err); ok {
			c.subscriptions.Refused(string(refusal), c.setup.Filters()...)
		}
		return nil, fmt.Errorf("subscription: %w", err)
	}
	c.subscriptions.Granted(c.setup.Filters()...)
	return s, nil
}

var errLost = errors.New("connection lost")
