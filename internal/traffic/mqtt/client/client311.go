package client

import (
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	mqttwire "vignette.dev/vignette/internal/traffic/mqtt/wire"
	"vignette.dev/vignette/internal/traffic/transport"
)

// protocol311 is the protocol level of MQTT 3.1.1. Without it the library may fall back to 3.1.
const protocol311 = 4

// maxQoS is the highest return code of a subscription that is no refusal.
const maxQoS = 2

// quiesceMilliseconds is how long writing a DISCONNECT may take.
const quiesceMilliseconds = 250

type client311 struct {
	setup  setup
	events transport.Events
	dialer *dialer
	client paho.Client
	cancel context.CancelFunc
	once   exactlyOnce
	window *window
	ctx    context.Context // until Close
	// patience with the answer to a SUBSCRIBE.
	patience time.Duration
	// connections counts connections, so that a handler recognises that its own was replaced.
	connections   atomic.Int64
	subscriptions *transport.Subscriptions
}

func newClient311(s setup, d *dialer, events transport.Events) *client311 {
	ctx, cancel := context.WithCancel(context.Background())
	c := &client311{setup: s, events: events, dialer: d, ctx: ctx, cancel: cancel, patience: handshake, window: newWindow(), subscriptions: transport.NewSubscriptions(s.Setup, events)}
	d.released, d.admit = c.window.released, c.window.admit
	o := paho.NewClientOptions().
		AddBroker("tcp://" + s.Broker). // a name only: the dialer knows where to go
		SetClientID(s.ClientID).
		SetProtocolVersion(protocol311).
		SetCredentialsProvider(d.user).
		SetCleanSession(!s.keepsSession).
		SetKeepAlive(s.keepAlive).
		// conn.keepAlive pings, and ends connections.
		SetPingTimeout(math.MaxInt64).
		// A message that the library has not begun to write by then goes out on the next connection only. A stuck link may take minutes.
		SetWriteTimeout(time.Hour).
		SetConnectTimeout(2 * (handshake + d.Timeout())). // the dialer's wait limits it
		SetConnectRetry(true).
		// The dialer waits. The library's own pauses are too long, and practically off.
		SetConnectRetryInterval(time.Millisecond).
		SetMaxReconnectInterval(time.Millisecond).
		SetAutoReconnect(true).
		SetOrderMatters(true).
		SetStore(c.window).
		SetCustomOpenConnectionFn(func(*url.URL, paho.ClientOptions) (net.Conn, error) { return d.dial(ctx) }).
		SetDefaultPublishHandler(c.received).
		SetOnConnectHandler(func(paho.Client) { c.connected() }).
		SetConnectionLostHandler(func(_ paho.Client, err error) { events.Lost(err) })
	o.SetConnectionNotificationHandler(func(_ paho.Client, n paho.ConnectionNotification) {
		if failed, ok := n.(paho.ConnectionNotificationFailed); ok {
			events.Lost(failed.Reason)
		}
	})
	c.client = paho.NewClient(o)
	c.client.Connect()
	if s.publishQoS > 0 {
		go c.window.run(c.client.IsConnectionOpen, c.publish)
	}
	return c
}

// connected subscribes if the broker does not know the session: after its restart, at another broker, with a clean session. A broker
// that knows it would send its retained messages again.
func (c *client311) connected() {
	conn, broker := c.dialer.connected()
	go conn.keepAlive(c.ctx.Done(), c.setup.keepAlive)
	c.window.wake()
	if !conn.sessionPresent() {
		c.subscriptions.Forget()
	}
	c.events.Connection(true, broker)
	connection := c.connections.Add(1)
	go c.subscriptions.Ask(c.ctx, func(missing []string) bool { return c.subscribe(connection, missing) })
}

// subscribe requests filters, and reports whether the connection still exists.
func (c *client311) subscribe(connection int64, filters []string) bool {
	if c.connections.Load() != connection {
		return false
	}
	levels := map[string]byte{}
	for _, filter := range filters {
		levels[filter] = c.setup.subscribeQoS
	}
	// Without a handler per filter a message that matches several filters is delivered once.
	token := c.client.SubscribeMultiple(levels, nil)
	answered := token.WaitTimeout(c.patience)
	if c.connections.Load() != connection || !c.client.IsConnectionOpen() {
		return false
	}
	if !answered {
		c.subscriptions.Refused(fmt.Sprintf("no answer within %v", c.patience), filters...)
		return true
	}
	if err := token.Error(); err != nil {
		c.setup.Warn(fmt.Sprintf("subscription: %v", err))
		return true
	}
	c.answered(filters, token.(*paho.SubscribeToken).Result())
	return true
}

// answered handles the broker's return codes (MQTT 3.1.1, 3.9.3): the QoS of each filter, or a refusal.
func (c *client311) answered(filters []string, codes map[string]byte) {
	for _, filter := range filters {
		switch code, ok := codes[filter]; {
		case !ok:
			c.subscriptions.Refused("the broker's answer does not have it", filter)
		case code > maxQoS:
			c.subscriptions.Refused(fmt.Sprintf("return code %#x", code), filter)
		default:
			c.subscriptions.Granted(filter)
		}
	}
}

func (c *client311) received(_ paho.Client, m paho.Message) {
	at := time.Now()
	if m.Qos() == 2 && !c.once.first(m.MessageID(), m.Duplicate(), m.Topic(), m.Payload()) {
		return
	}
	c.events.Received(at, m.Topic(), m.Payload())
}

func (c *client311) Publish(topic string, payload []byte) error {
	if c.setup.publishQoS == 0 {
		return c.dialer.out.put(topic, payload)
	}
	if err := mqttwire.ValidPublish(topic, payload); err != nil {
		return err
	}
	c.window.put(topic, payload)
	return nil
}

// publish passes a message to the library, whose store keeps it from then on.
func (c *client311) publish(m held) {
	token := c.client.Publish(m.topic, c.setup.publishQoS, c.setup.retain, m.payload)
	select {
	case <-token.Done():
		if err := token.Error(); err != nil {
			c.setup.Warn(fmt.Sprintf("a message on topic %s is not sent: %v", m.topic, err))
		}
	default:
	}
}

func (c *client311) Close(ctx context.Context) {
	c.dialer.out.drain(ctx)
	c.window.drain(ctx)
	c.client.Disconnect(quiesceMilliseconds)
	c.cancel()
}

// exactlyOnce recognises repeated messages of QoS 2: the library delivers a message when it arrives, repeated or not, and
// forgets packet ids. Ids are reused, and a message marked as a repetition may be new, so contents are compared.
type exactlyOnce struct {
	mu   sync.Mutex
	seed maphash.Seed
	seen map[uint16]uint64
}

func (e *exactlyOnce) first(id uint16, repeated bool, topic string, payload []byte) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seen == nil {
		e.seen, e.seed = map[uint16]uint64{}, maphash.MakeSeed()
	}
	content := maphash.String(e.seed, topic) ^ maphash.Bytes(e.seed, payload)
	before, known := e.seen[id]
	e.seen[id] = content
	return !(repeated && known && before == content)
}
