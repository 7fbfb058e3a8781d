// Package client is an AMQP 0-9-1 client for the traffic generator, on RabbitMQ's own library. It publishes and subscribes to the topic
// exchange amq.topic, which every broker has (AMQP 0-9-1, 3.1.3.3). RabbitMQ's plugins for MQTT and STOMP use it, too.
package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"vignette.dev/vignette/internal/traffic/mqtttopic"
	"vignette.dev/vignette/internal/traffic/transport"
)

const (
	exchange = "amq.topic"
	// guest is the user name and password of a broker without security.
	guest = "guest"
	// prefetch is the most unacknowledged messages of QoS 1 to the client. It is large enough for long delays, and small enough to
	// limit repetitions after an outage.
	prefetch = 256
	// maxKey is the longest routing key in bytes (short string, AMQP 0-9-1, 4.2.5.3).
	maxKey = 255
	// maxBytes is the largest message: RabbitMQ's max_message_size.
	maxBytes = 128 << 20
	// closing is how long to wait for the answer to a CLOSE.
	closing = 250 * time.Millisecond
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
		if err := checkKey("topic filter", filter); err != nil {
			return err
		}
	}
	if setup.PublishQoS() > 1 || setup.SubscribeQoS() > 1 {
		return fmt.Errorf("QoS %d to publish, %d to subscribe: AMQP has 0 and 1", setup.PublishQoS(), setup.SubscribeQoS())
	}
	if setup.LargestBytes > maxBytes {
		return fmt.Errorf("payload of %d bytes on topic %s: a broker takes up to %d", setup.LargestBytes, setup.LargestTopic, maxBytes)
	}
	return checkKey("topic", setup.LargestTopic)
}

func checkKey(what, topic string) error {
	if len(topic) > maxKey {
		return fmt.Errorf("%s %s has %d bytes: a routing key of AMQP has at most %d", what, topic, len(topic), maxKey)
	}
	return nil
}

// Publish never waits: the connection sends the message as soon as it can.
func (c *client) Publish(topic string, payload []byte) error {
	if err := checkKey("topic", topic); err != nil {
		return err
	}
	return c.outbox.Put(topic, payload)
}

// Close waits until all messages are written and, with QoS 1, confirmed.
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
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName(c.setup.ClientID)
	connection, err := Login(socket, c.dialer, c.dialer.Timeout(), properties)
	if err != nil {
		return err
	}
	ended := connection.NotifyClose(make(chan *amqp.Error, 1))
	held := connection.NotifyBlocked(make(chan amqp.Blocking, 1))
	s := &session{client: c, connection: connection}
	if err := s.begin(); err != nil {
		return errors.Join(err, closeSoon(connection))
	}
	begun()
	c.outbox.Connected()
	defer c.outbox.Disconnected()
	c.events.Connection(true, c.dialer.Connected())
	defer s.wait()
	using, stop := context.WithCancel(ctx)
	defer stop()
	s.use(using)
	for {
		select {
		case <-ctx.Done():
			return closeSoon(connection)
		case err := <-s.failed:
			return errors.Join(err, closeSoon(connection))
		case reason := <-ended:
			if reason != nil {
				return reason
			}
			return errors.New("connection lost")
		case b, open := <-held:
			if !open {
				held = nil
			} else if b.Active {
				c.setup.Warn("the broker holds publishers back: " + b.Reason)
			}
		}
	}
}

// Login runs AMQP's handshake on a new socket, with the dialer's user name and password, or a guest's.
func Login(socket net.Conn, dialer *transport.Dialer, heartbeat time.Duration, properties amqp.Table) (*amqp.Connection, error) {
	username, password, err := dialer.Login()
	if err != nil {
		return nil, err
	}
	if username == "" {
		username, password = guest, guest
	}
	if err := socket.SetDeadline(time.Now().Add(dialer.Timeout())); err != nil {
		return nil, err
	}
	return amqp.Open(socket, amqp.Config{
		SASL: []amqp.Authentication{&amqp.PlainAuth{Username: username, Password: password}}, Vhost: "/",
		Heartbeat: heartbeat, Locale: "en_US", Properties: properties,
	})
}

// closeSoon closes a connection without waiting long for the broker's answer.
func closeSoon(connection *amqp.Connection) error {
	err := connection.CloseDeadline(time.Now().Add(closing))
	if errors.Is(err, amqp.ErrClosed) {
		return nil
	}
	return err
}
