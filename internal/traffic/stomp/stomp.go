// Package stomp is a client of STOMP 1.2 for the traffic generator. Frames are read and written by the library go-stomp; the connection is
// ours, as the library's own neither tells when a frame goes to the socket nor takes one while another waits for its receipt.
package stomp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"

	"vignette.dev/vignette/internal/traffic/mqttwire"
	"vignette.dev/vignette/internal/traffic/transport"
)

const (
	// destinations of topics, as RabbitMQ and others have them.
	destinations = "/topic/"
	// guest is user and password of a broker without security.
	guest = "guest"
	// mostKey and mostBytes are the limits of RabbitMQ, which keeps STOMP's messages as AMQP's.
	mostKey   = 255
	mostBytes = 128 << 20
	// escapedSlash is how RabbitMQ has a slash inside a destination's name.
	escapedSlash = "%2F"
)

// client keeps up one connection.
type client struct {
	setup  transport.Setup
	events transport.Events
	dialer *transport.Dialer
	outbox *transport.Outbox
	// subscriptions are asked for as a connection begins, which fails where one is refused.
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
		if err := mqttwire.ValidFilter(filter); err != nil {
			return err
		}
		if err := checkTopic("topic filter", filter); err != nil {
			return err
		}
	}
	if setup.PublishQoS() > 1 || setup.SubscribeQoS() > 1 {
		return fmt.Errorf("QoS %d to publish, %d to subscribe: STOMP has 0 and 1", setup.PublishQoS(), setup.SubscribeQoS())
	}
	if setup.LargestBytes > mostBytes {
		return fmt.Errorf("payload of %d bytes on topic %s: a broker takes up to %d", setup.LargestBytes, setup.LargestTopic, mostBytes)
	}
	return checkTopic("topic", setup.LargestTopic)
}

func checkTopic(what, topic string) error {
	switch {
	case len(topic) > mostKey:
		return fmt.Errorf("%s %s has %d bytes: a destination's name has at most %d", what, topic, len(topic), mostKey)
	case strings.Contains(topic, escapedSlash):
		return fmt.Errorf("%s %s has %s inside: RabbitMQ would take it for another character", what, topic, escapedSlash)
	}
	return nil
}

// destination of a topic or filter: that of its routing key, in which RabbitMQ wants slashes escaped, and no more.
func destination(topic string) string {
	return destinations + strings.ReplaceAll(transport.RoutingKey(topic), "/", escapedSlash)
}

// topic of a message's destination. There RabbitMQ escapes more than it understands itself.
func topic(destination string) string {
	name := strings.TrimPrefix(destination, destinations)
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	return transport.Topic(name)
}

// Publish never waits: the message goes out as soon as the connection takes it.
func (c *client) Publish(topic string, payload []byte) error {
	if err := checkTopic("topic", topic); err != nil {
		return err
	}
	return c.outbox.Put(topic, payload)
}

// Close waits until all is written and, with QoS 1, receipted.
func (c *client) Close(ctx context.Context) {
	c.outbox.WaitEmpty(ctx)
	c.cancel()
	c.done.Wait()
}

// run connects, again and again.
func (c *client) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := c.connection(ctx); err != nil && ctx.Err() == nil {
			c.events.Connection(false, err.Error())
		}
	}
}

// connection is one from its beginning to its end, and says why it ended.
func (c *client) connection(ctx context.Context) error {
	socket, err := c.dialer.Dial(ctx)
	if err != nil {
		return err
	}
	defer socket.Close()
	// Until the subscription stands nobody but the socket can be told to stop.
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

// begin is the handshake and the subscriptions on a new socket.
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
