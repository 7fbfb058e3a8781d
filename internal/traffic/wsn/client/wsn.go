// Package client is a WS-Notification 1.3 client for the traffic generator. It publishes by Notify to a broker. It subscribes as a consumer,
// to which the broker sends Notify, or fetches messages from a pull point. README.md describes the connections.
package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"vignette.dev/vignette/internal/bell"
	"vignette.dev/vignette/internal/soap"
	"vignette.dev/vignette/internal/traffic/mqtttopic"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/traffic/wsn"
	"vignette.dev/vignette/internal/traffic/wsn/wire"
)

const (
	// Lifetime of a subscription, and time between two renewals.
	lifetime = 5 * time.Minute
	renewal  = time.Minute
	// maxWaiting is the most messages of QoS 0 that wait for earlier ones.
	maxWaiting = 1000
	// pullWaitSeconds is how long a broker may wait before it answers "no messages". One that answers at once is asked every pullPause.
	pullWaitSeconds = 20
	pullPause       = time.Second
	// refusedPause is the pause before a refused message is repeated.
	refusedPause = time.Second
)

// outgoing is a message to be sent.
type outgoing struct {
	topic   string
	content []byte
}

type client struct {
	setup  transport.Setup
	events transport.Events
	dialer *transport.Dialer
	// dotted: topics with dots, in the Simple dialect. pull: a pull point instead of a consumer.
	dotted, pull bool
	consumer     *consumer // nil for none
	// subscribing starts each connection, which fails if the broker refuses.
	subscribing  *transport.Subscriptions
	renewal      time.Duration
	stop         context.CancelFunc
	ending, done chan struct{}
	wake         bell.Bell

	mu        sync.Mutex
	waiting   []outgoing
	connected bool
}

// Open is a transport.Open.
func Open(s transport.Setup, events transport.Events) (transport.Client, error) {
	return open(s, events, renewal)
}

func open(s transport.Setup, events transport.Events, renewal time.Duration) (*client, error) {
	if limit := wire.MaxBytes / 2; s.LargestBytes > limit {
		return nil, fmt.Errorf("messages of %d bytes to topic %s: ws-notification takes up to %d", s.LargestBytes, s.LargestTopic, limit)
	}
	for _, filter := range s.Filters() {
		if err := mqtttopic.ValidFilter(filter); err != nil {
			return nil, err
		}
	}
	dialer, err := transport.NewDialer(s)
	if err != nil {
		return nil, err
	}
	c := &client{setup: s, events: events, dialer: dialer, renewal: renewal, subscribing: transport.NewSubscriptions(s, events), ending: make(chan struct{}), done: make(chan struct{}), wake: bell.New()}
	if w := s.WSN; w != nil {
		c.dotted, c.pull = w.Dialect == wsn.DialectSimple, w.PullPoint
	}
	// The broker sends to consumers without encryption. With TLS the client fetches messages over its own connections.
	c.pull = c.pull || s.Security != nil && s.Security.CAFile != ""
	if len(s.Filters()) > 0 && !c.pull {
		if c.consumer, err = listen(c); err != nil {
			return nil, err
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	go c.run(ctx)
	return c, nil
}

// Publish passes a message to the connection's goroutine, which sends one after the other.
func (c *client) Publish(topic string, content []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.setup.PublishQoS() == 0 {
		switch {
		case !c.connected:
			return transport.ErrNotConnected
		case len(c.waiting) >= maxWaiting:
			return fmt.Errorf("%d messages wait for those before them: %w", len(c.waiting), transport.ErrNoRoom)
		}
	}
	c.waiting = append(c.waiting, outgoing{topic, content})
	c.wake.Ring()
	return nil
}

// first returns the first waiting message.
func (c *client) first() (outgoing, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		return outgoing{}, false
	}
	return c.waiting[0], true
}

// drop removes the first message, which was sent or never will be.
func (c *client) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[0] = outgoing{}
	if c.waiting = c.waiting[1:]; len(c.waiting) == 0 {
		c.waiting = nil // releases the array
	}
}

// setConnected drops waiting messages of QoS 0 with the connection.
func (c *client) setConnected(up bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connected = up
	if !up && c.setup.PublishQoS() == 0 {
		for _, m := range c.waiting {
			c.events.DropUnsent(m.topic, m.content)
		}
		c.waiting = nil
	}
}

// Close waits for messages to be sent, ends the subscription and disconnects.
func (c *client) Close(ctx context.Context) {
	for ctx.Err() == nil {
		if _, more := c.first(); !more {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	close(c.ending)
	select {
	case <-c.done:
	case <-ctx.Done():
	}
	c.stop()
	<-c.done
	if c.consumer != nil {
		c.consumer.close()
	}
}

// topic returns a topic in the form of the broker.
func (c *client) topic(mqtt string) wire.TopicExpression {
	if c.dotted {
		return wire.DottedTopic(mqtt)
	}
	return wire.TopicOf(mqtt).Expression()
}

// filters returns the client's filters, one expression for each subscription.
func (c *client) filters() []wire.TopicExpression {
	if !c.dotted {
		return []wire.TopicExpression{wire.FilterOf(c.setup.Filters()...)}
	}
	var filters []wire.TopicExpression
	for _, filter := range c.setup.Filters() {
		filters = append(filters, wire.DottedFilter(filter))
	}
	return filters
}

// received passes on the messages of a Notify or of a pull point. The error is about those that cannot be read.
func (c *client) received(at time.Time, messages []wire.NotificationMessage) (err error) {
	for _, m := range messages {
		content, unreadable := soap.Extract(m.Message)
		if unreadable != nil {
			err = errors.Join(err, unreadable)
			continue
		}
		topic := c.mqttTopic(m.Topic)
		if c.wanted(topic) {
			c.events.Received(at, topic, content)
		}
	}
	return err
}

// mqttTopic returns a message's topic; empty without one, and if Apache CXF's broker sends a filter with wildcards instead. A
// topic that cannot be read is returned unchanged.
func (c *client) mqttTopic(x wire.TopicExpression) string {
	if c.dotted && x.Dialect == wire.DialectSimple {
		topic := wire.DottedMQTT(x.Text)
		if strings.ContainsAny(topic, "+#") {
			return ""
		}
		return topic
	}
	names, err := x.Topic()
	if err != nil {
		return x.Text
	}
	return names.MQTT()
}

// wanted reports whether a topic matches the filters by MQTT's rules, by which wildcards do not cover topics that begin with $. Without a
// topic it is true.
func (c *client) wanted(topic string) bool {
	if mqtttopic.Valid(topic) != nil {
		return true
	}
	return mqtttopic.MatchAny(c.setup.Filters(), topic)
}
