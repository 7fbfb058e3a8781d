// Package amqp is a client of AMQP 0-9-1 for the traffic generator, on RabbitMQ's own library. It publishes to and hears from the topic
// exchange amq.topic, which every broker has (AMQP 0-9-1, 3.1.3.3), and where RabbitMQ's plugins for MQTT and STOMP meet it.
package amqp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"vignette.dev/vignette/internal/traffic/mqttwire"
	"vignette.dev/vignette/internal/traffic/transport"
)

const (
	exchange = "amq.topic"
	// guest is user and password of a broker without security.
	guest = "guest"
	// prefetch is how many messages of QoS 1 may be on their way to the client without an acknowledgement: enough that a long delay does not
	// hold them up, and few enough that not everything comes again after an outage.
	prefetch = 256
	// mostKey is what a routing key may have (short string, AMQP 0-9-1, 4.2.5.3).
	mostKey = 255
	// mostBytes of a message, RabbitMQ's max_message_size.
	mostBytes = 128 << 20
	// closing is what a CLOSE may take to be answered.
	closing = 250 * time.Millisecond
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
		if err := checkKey("topic filter", filter); err != nil {
			return err
		}
	}
	if setup.PublishQoS() > 1 || setup.SubscribeQoS() > 1 {
		return fmt.Errorf("QoS %d to publish, %d to subscribe: AMQP has 0 and 1", setup.PublishQoS(), setup.SubscribeQoS())
	}
	if setup.LargestBytes > mostBytes {
		return fmt.Errorf("payload of %d bytes on topic %s: a broker takes up to %d", setup.LargestBytes, setup.LargestTopic, mostBytes)
	}
	return checkKey("topic", setup.LargestTopic)
}

func checkKey(what, topic string) error {
	if len(topic) > mostKey {
		return fmt.Errorf("%s %s has %d bytes: a routing key of AMQP has at most %d", what, topic, len(topic), mostKey)
	}
	return nil
}

// Publish never waits: the message goes out as soon as the connection takes it.
func (c *client) Publish(topic string, payload []byte) error {
	if err := checkKey("topic", topic); err != nil {
		return err
	}
	return c.outbox.Put(topic, payload)
}

// Close waits until all is written and, with QoS 1, confirmed.
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
	connection, err := c.login(socket)
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

// login is AMQP's handshake on a new socket.
func (c *client) login(socket net.Conn) (*amqp.Connection, error) {
	username, password, err := c.dialer.Login()
	if err != nil {
		return nil, err
	}
	if username == "" {
		username, password = guest, guest
	}
	if err := socket.SetDeadline(time.Now().Add(c.dialer.Patience())); err != nil {
		return nil, err
	}
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName(c.setup.ClientID)
	return amqp.Open(socket, amqp.Config{
		SASL: []amqp.Authentication{&amqp.PlainAuth{Username: username, Password: password}}, Vhost: "/",
		Heartbeat: c.dialer.Patience(), Locale: "en_US", Properties: properties,
	})
}

// closeSoon closes a connection without waiting long for the broker's word.
func closeSoon(connection *amqp.Connection) error {
	err := connection.CloseDeadline(time.Now().Add(closing))
	if errors.Is(err, amqp.ErrClosed) {
		return nil
	}
	return err
}
