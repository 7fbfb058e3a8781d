// Package wsn is a client of WS-Notification 1.3 for the traffic generator. It publishes by Notify to a broker, and subscribes as a consumer,
// which the broker sends Notify to, or by a pull point, which it asks for messages. README.md says what goes over which connection, and when.
package wsn

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"vignette.dev/vignette/internal/traffic/mqttwire"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/internal/wsn"
)

const (
	// lifetime of a subscription, after which the broker ends it, and the time between two renewals.
	lifetime = 5 * time.Minute
	renewal  = time.Minute
	// mostWaiting messages of QoS 0, while those before them are on their way.
	mostWaiting = 1000
	// pullWaitSeconds that a broker may take until it answers that there are no messages; one that answers at once is asked every pullPause.
	pullWaitSeconds = 20
	pullPause       = time.Second
	// refusedPause after a message that the broker did not accept, before it is repeated.
	refusedPause = time.Second
)

// outgoing message.
type outgoing struct {
	topic   string
	content []byte
}

type client struct {
	setup  transport.Setup
	events transport.Events
	dialer *transport.Dialer
	// dotted topics, in the Simple dialect; pull instead of a consumer.
	dotted, pull bool
	consumer     *consumer // nil for none
	// subscribing begins each connection, which fails where the broker refuses it.
	subscribing  *transport.Subscriptions
	renewal      time.Duration
	stop         context.CancelFunc
	ending, done chan struct{}
	wake         chan struct{}

	mu        sync.Mutex
	waiting   []outgoing
	connected bool
}

// Open is a transport.Open.
func Open(s transport.Setup, events transport.Events) (transport.Client, error) {
	return open(s, events, renewal)
}

func open(s transport.Setup, events transport.Events, renewal time.Duration) (*client, error) {
	if limit := wsn.MaxBytes / 2; s.LargestBytes > limit {
		return nil, fmt.Errorf("messages of %d bytes to topic %s: ws-notification takes up to %d", s.LargestBytes, s.LargestTopic, limit)
	}
	for _, filter := range s.Filters() {
		if err := mqttwire.ValidFilter(filter); err != nil {
			return nil, err
		}
	}
	dialer, err := transport.NewDialer(s)
	if err != nil {
		return nil, err
	}
	c := &client{setup: s, events: events, dialer: dialer, renewal: renewal, subscribing: transport.NewSubscriptions(s, events), ending: make(chan struct{}), done: make(chan struct{}), wake: make(chan struct{}, 1)}
	if w := s.WSN; w != nil {
		c.dotted, c.pull = w.Dialect == trafficconfig.DialectSimple, w.PullPoint
	}
	// The broker sends to consumers without encryption: with TLS what comes is fetched over the client's own connections.
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

// Publish hands a message to the connection's goroutine, which sends one after the other.
func (c *client) Publish(topic string, content []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.setup.PublishQoS() == 0 {
		switch {
		case !c.connected:
			return transport.ErrNotConnected
		case len(c.waiting) >= mostWaiting:
			return fmt.Errorf("%d messages wait for those before them: the message is not sent", len(c.waiting))
		}
	}
	c.waiting = append(c.waiting, outgoing{topic, content})
	c.signal()
	return nil
}

func (c *client) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// first message that waits.
func (c *client) first() (outgoing, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		return outgoing{}, false
	}
	return c.waiting[0], true
}

// drop the first message: it has been sent or never will be.
func (c *client) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[0] = outgoing{}
	if c.waiting = c.waiting[1:]; len(c.waiting) == 0 {
		c.waiting = nil // lets go of the array
	}
}

// setConnected: what QoS 0 has waiting is lost with the connection.
func (c *client) setConnected(up bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connected = up
	if !up && c.setup.PublishQoS() == 0 {
		c.waiting = nil
	}
}

// Close waits for what is to be sent, ends the subscription and disconnects.
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

// topic as the broker is told.
func (c *client) topic(mqtt string) wsn.TopicExpression {
	if c.dotted {
		return wsn.DottedTopic(mqtt)
	}
	return wsn.TopicOf(mqtt).Expression()
}

// filters that the client subscribes to: one expression for each subscription.
func (c *client) filters() []wsn.TopicExpression {
	if !c.dotted {
		return []wsn.TopicExpression{wsn.FilterOf(c.setup.Filters()...)}
	}
	var filters []wsn.TopicExpression
	for _, filter := range c.setup.Filters() {
		filters = append(filters, wsn.DottedFilter(filter))
	}
	return filters
}

// received hands over the messages of a Notify or of a pull point.
func (c *client) received(at time.Time, messages []wsn.NotificationMessage) error {
	for _, m := range messages {
		content, err := wsn.Extract(m.Message)
		if err != nil {
			return err
		}
		topic := c.mqttTopic(m.Topic)
		if c.wanted(topic) {
			c.events.Received(at, topic, content)
		}
	}
	return nil
}

// mqttTopic of a message; empty for one without a topic, and where Apache CXF's broker tells a filter with wildcards in the place of one. A
// topic that cannot be read is given as it stands.
func (c *client) mqttTopic(x wsn.TopicExpression) string {
	if c.dotted && x.Dialect == wsn.DialectSimple {
		topic := wsn.DottedMQTT(x.Text)
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

// wanted is whether a topic is what was subscribed to by the rules of MQTT, which leave topics that begin with $ out of wildcards. Without a
// topic nothing is said of that.
func (c *client) wanted(topic string) bool {
	if mqttwire.ValidTopic(topic) != nil {
		return true
	}
	for _, filter := range c.setup.Filters() {
		if mqttwire.Match(filter, topic) {
			return true
		}
	}
	return false
}
