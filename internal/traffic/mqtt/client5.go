package mqtt

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"
	"github.com/eclipse/paho.golang/paho/session/state"
	"github.com/eclipse/paho.golang/paho/store/memory"

	"vignette.dev/vignette/internal/traffic/transport"
)

// sessionExpirySeconds is a day: longer than any outage that an experiment waits for.
const sessionExpirySeconds = 86400

// firstRefusal is the first reason code that means failure (MQTT 5.0, 2.4).
const firstRefusal = 0x80

// retainedOfNew asks for retained messages only where the broker did not know the subscription (MQTT 5.0, 3.8.3.1).
const retainedOfNew = 1

type client5 struct {
	setup   setup
	dialer  *dialer
	manager *autopaho.ConnectionManager
	cancel  context.CancelFunc
	// unacknowledged holds messages of QoS 1 and 2 until the broker has them.
	unacknowledged *keeper
}

func newClient5(s setup, d *dialer, events transport.Events) (*client5, error) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &client5{setup: s, dialer: d, cancel: cancel}
	c.unacknowledged = &keeper{Store: memory.New(), again: c.enqueue}
	options := autopaho.ClientConfig{
		ServerUrls:                    []*url.URL{{Scheme: "mqtt", Host: s.Broker}}, // a name only: the dialer knows where to go
		KeepAlive:                     uint16(s.keepAlive / time.Second),
		CleanStartOnInitialConnection: !s.keepsSession,
		ConnectTimeout:                2 * (handshake + d.Patience()), // the dialer's wait counts
		ReconnectBackoff:              func(int) time.Duration { return 0 },
		ConnectPacketBuilder:          c.connectPacket,
		AttemptConnection: func(ctx context.Context, _ autopaho.ClientConfig, _ *url.URL) (net.Conn, error) {
			return d.dial(ctx)
		},
		OnConnectionUp: func(m *autopaho.ConnectionManager, _ *paho.Connack) {
			broker, _ := d.connected()
			events.Connection(true, broker)
			go c.subscribe(ctx, m)
		},
		OnConnectionDown: func() bool {
			events.Connection(false, "connection lost")
			return true
		},
		OnConnectError: func(err error) { events.Connection(false, err.Error()) },
		ClientConfig: paho.ClientConfig{
			ClientID:      s.ClientID,
			Session:       state.New(c.unacknowledged, memory.New()),
			PacketTimeout: handshake,
			OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(r paho.PublishReceived) (bool, error) {
				at := time.Now()
				events.Received(at, r.Packet.Topic, r.Packet.Payload)
				return true, nil
			}},
		},
	}
	if s.keepsSession {
		options.SessionExpiryInterval = sessionExpirySeconds
	}
	manager, err := autopaho.NewConnection(ctx, options)
	if err != nil {
		cancel()
		return nil, err
	}
	c.manager = manager
	return c, nil
}

// connectPacket adds the login. A clean session begins anew with each connection, for which the library has no option.
func (c *client5) connectPacket(p *paho.Connect, _ *url.URL) (*paho.Connect, error) {
	username, password := c.dialer.user()
	p.UsernameFlag, p.Username = username != "", username
	p.PasswordFlag, p.Password = password != "", []byte(password)
	p.CleanStart = !c.setup.keepsSession
	return p, nil
}

func (c *client5) subscribe(ctx context.Context, m *autopaho.ConnectionManager) {
	filters := c.setup.Filters()
	if len(filters) == 0 {
		return
	}
	request := &paho.Subscribe{}
	for _, filter := range filters {
		request.Subscriptions = append(request.Subscriptions, paho.SubscribeOptions{Topic: filter, QoS: c.setup.subscribeQoS, RetainHandling: retainedOfNew})
	}
	answer, err := m.Subscribe(ctx, request)
	if err != nil {
		c.setup.Warn(fmt.Sprintf("subscription: %v", err))
		return
	}
	for i, reason := range answer.Reasons {
		if reason >= firstRefusal && i < len(filters) {
			c.setup.Warn(fmt.Sprintf("subscription to %s was refused by the broker: reason %#x", filters[i], reason))
		}
	}
}

func (c *client5) Publish(topic string, payload []byte) error {
	if c.setup.publishQoS == 0 {
		return c.dialer.out.put(topic, payload)
	}
	return c.enqueue(&paho.Publish{Topic: topic, Payload: payload, QoS: c.setup.publishQoS, Retain: c.setup.retain})
}

func (c *client5) enqueue(message *paho.Publish) error {
	return c.manager.PublishViaQueue(context.Background(), &autopaho.QueuePublish{Publish: message})
}

// Close waits for acknowledgements. What was queued but not written yet the caller knows of by Events.Sent.
func (c *client5) Close(ctx context.Context) {
	c.dialer.out.drain(ctx)
	poll(ctx, func() bool {
		ids, err := c.unacknowledged.List()
		return err != nil || len(ids) == 0
	})
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), quiesceMilliseconds*time.Millisecond)
	defer cancel()
	_ = c.manager.Disconnect(ending) // there is nothing left to do if it fails
	c.cancel()
}

// keeper keeps messages of QoS 1 and 2 where a session is gone, be it that the broker was restarted or that there is another one now: the library
// forgets them, as the standard says of a session, but they have not been delivered yet. They are published again.
type keeper struct {
	*memory.Store
	again func(*paho.Publish) error
}

// Reset is called when the broker does not know the session.
func (k *keeper) Reset() error {
	ids, err := k.List()
	if err != nil {
		return err
	}
	var messages []*paho.Publish
	for _, id := range ids {
		if message := k.message(id); message != nil {
			messages = append(messages, message)
		}
	}
	if err := k.Store.Reset(); err != nil {
		return err
	}
	for _, message := range messages {
		if err := k.again(message); err != nil {
			return err
		}
	}
	return nil
}

// message of an id; nil for one whose broker had it already (PUBREL).
func (k *keeper) message(id uint16) *paho.Publish {
	stored, err := k.Get(id)
	if err != nil {
		return nil
	}
	defer stored.Close()
	packet, err := packets.ReadPacket(stored)
	if err != nil {
		return nil
	}
	p, ok := packet.Content.(*packets.Publish)
	if !ok {
		return nil
	}
	return &paho.Publish{Topic: p.Topic, Payload: p.Payload, QoS: p.QoS, Retain: p.Retain}
}
