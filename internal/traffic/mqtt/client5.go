package mqtt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"
	"github.com/eclipse/paho.golang/paho/session/state"
	"github.com/eclipse/paho.golang/paho/store/memory"

	"vignette.dev/vignette/internal/traffic/transport"
)

// sessionExpirySeconds is a day: longer than any outage that an experiment waits for.
const sessionExpirySeconds = 86400

// firstRefusal is the first reason code that means failure (MQTT 5.0, 2.4).
const firstRefusal = 0x80

type client5 struct {
	config  Config
	manager *autopaho.ConnectionManager
	cancel  context.CancelFunc
	// unacknowledged holds messages of QoS 1 and 2 until the broker has them.
	unacknowledged *memory.Store
}

func newClient5(config Config, d *dialer, events transport.Events) (*client5, error) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &client5{config: config, cancel: cancel, unacknowledged: memory.New()}
	options := autopaho.ClientConfig{
		ServerUrls:                    []*url.URL{{Scheme: "mqtt", Host: config.Broker}},
		KeepAlive:                     uint16(keepAlive / time.Second),
		CleanStartOnInitialConnection: !config.keepsSession(),
		ConnectTimeout:                connectTimeout + lastBackoff, // the dialer's wait counts
		ReconnectBackoff:              func(int) time.Duration { return 0 },
		AttemptConnection: func(ctx context.Context, _ autopaho.ClientConfig, _ *url.URL) (net.Conn, error) {
			return d.dial(ctx)
		},
		OnConnectionUp: func(m *autopaho.ConnectionManager, _ *paho.Connack) {
			d.connected()
			events.Connection(true, "")
			go c.subscribe(ctx, m)
		},
		OnConnectionDown: func() bool {
			events.Connection(false, "connection lost")
			return true
		},
		OnConnectError: func(err error) { events.Connection(false, err.Error()) },
		ClientConfig: paho.ClientConfig{
			ClientID:      config.ClientID,
			Session:       state.New(c.unacknowledged, memory.New()),
			PacketTimeout: connectTimeout,
			OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(r paho.PublishReceived) (bool, error) {
				at := time.Now()
				events.Received(at, r.Packet.Topic, r.Packet.Payload)
				return true, nil
			}},
		},
	}
	if config.keepsSession() {
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

func (c *client5) subscribe(ctx context.Context, m *autopaho.ConnectionManager) {
	if len(c.config.Filters) == 0 {
		return
	}
	request := &paho.Subscribe{}
	for _, filter := range c.config.Filters {
		request.Subscriptions = append(request.Subscriptions, paho.SubscribeOptions{Topic: filter, QoS: c.config.SubscribeQoS})
	}
	answer, err := m.Subscribe(ctx, request)
	if err != nil {
		c.config.Warn(fmt.Sprintf("subscription: %v", err))
		return
	}
	for i, reason := range answer.Reasons {
		if reason >= firstRefusal && i < len(c.config.Filters) {
			c.config.Warn(fmt.Sprintf("subscription to %s was refused by the broker: reason %#x", c.config.Filters[i], reason))
		}
	}
}

func (c *client5) Publish(topic string, payload []byte) error {
	message := &paho.Publish{Topic: topic, Payload: payload, QoS: c.config.PublishQoS}
	if c.config.PublishQoS > 0 {
		return c.manager.PublishViaQueue(context.Background(), &autopaho.QueuePublish{Publish: message})
	}
	_, err := c.manager.Publish(context.Background(), message)
	if errors.Is(err, autopaho.ConnectionDownError) {
		return transport.ErrNotConnected
	}
	return err
}

// Close waits for acknowledgements. What was queued but not written yet the caller knows of by Events.Sent.
func (c *client5) Close(ctx context.Context) {
	poll(ctx, func() bool {
		ids, err := c.unacknowledged.List()
		return err != nil || len(ids) == 0
	})
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), quiesceMilliseconds*time.Millisecond)
	defer cancel()
	_ = c.manager.Disconnect(ending) // there is nothing left to do if it fails
	c.cancel()
}
