package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"
	"github.com/eclipse/paho.golang/paho/session/state"
	"github.com/eclipse/paho.golang/paho/store/memory"

	mqttwire "vignette.dev/vignette/internal/traffic/mqtt/wire"
	"vignette.dev/vignette/internal/traffic/transport"
)

// sessionExpirySeconds is a day, longer than any outage in an experiment.
const sessionExpirySeconds = 86400

// firstRefusal is the least reason code of a failure (MQTT 5.0, 2.4).
const firstRefusal = 0x80

// retainedOfNew requests retained messages only if the subscription is new to the broker (MQTT 5.0, 3.8.3.1).
const retainedOfNew = 1

type client5 struct {
	setup   setup
	dialer  *dialer
	manager *autopaho.ConnectionManager
	cancel  context.CancelFunc
	// unacknowledged has messages of QoS 1 and 2 until the broker acknowledges them.
	unacknowledged *keeper
	// waiting has those that were not sent yet.
	waiting *queue5
	// connections counts connections, so that a handler recognises that its own was replaced.
	connections   atomic.Int64
	subscriptions *transport.Subscriptions
}

func newClient5(s setup, d *dialer, events transport.Events) (*client5, error) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &client5{setup: s, dialer: d, cancel: cancel, waiting: &queue5{}, subscriptions: transport.NewSubscriptions(s.Setup, events)}
	c.unacknowledged = &keeper{Store: memory.New(), again: c.waiting.putBack}
	options := autopaho.ClientConfig{
		ServerUrls:                    []*url.URL{{Scheme: "mqtt", Host: s.Broker}}, // a name only: the dialer knows where to go
		KeepAlive:                     uint16(s.keepAlive / time.Second),
		CleanStartOnInitialConnection: !s.keepsSession,
		ConnectTimeout:                2 * (handshake + d.Timeout()), // the dialer's wait limits it
		ReconnectBackoff:              func(int) time.Duration { return 0 },
		Queue:                         c.waiting,
		ConnectPacketBuilder:          c.connectPacket,
		AttemptConnection: func(ctx context.Context, _ autopaho.ClientConfig, _ *url.URL) (net.Conn, error) {
			return d.dial(ctx)
		},
		OnConnectionUp: func(m *autopaho.ConnectionManager, ack *paho.Connack) {
			_, broker := d.connected()
			if !ack.SessionPresent { // a broker with the session has the subscriptions
				c.subscriptions.Forget()
			}
			events.Connection(true, broker)
			connection := c.connections.Add(1)
			go c.subscriptions.Ask(ctx, func(missing []string) bool { return c.subscribe(ctx, m, connection, missing) })
		},
		OnConnectionDown: func() bool {
			events.Connection(false, "connection lost")
			return true
		},
		OnConnectError: func(err error) { events.Lost(err) },
		ClientConfig: paho.ClientConfig{
			ClientID:      s.ClientID,
			Session:       state.New(c.unacknowledged, memory.New()),
			PacketTimeout: handshake,
			PingHandler:   pinger{},
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

// connectPacket adds the login, and the flag for a clean session on each connection, for which the library has no option.
func (c *client5) connectPacket(p *paho.Connect, _ *url.URL) (*paho.Connect, error) {
	username, password := c.dialer.user()
	p.UsernameFlag, p.Username = username != "", username
	p.PasswordFlag, p.Password = password != "", []byte(password)
	p.CleanStart = !c.setup.keepsSession
	return p, nil
}

// subscribe requests filters, and reports whether the connection still exists.
func (c *client5) subscribe(ctx context.Context, m *autopaho.ConnectionManager, connection int64, filters []string) bool {
	if c.connections.Load() != connection {
		return false
	}
	request := &paho.Subscribe{}
	for _, filter := range filters {
		request.Subscriptions = append(request.Subscriptions, paho.SubscribeOptions{Topic: filter, QoS: c.setup.subscribeQoS, RetainHandling: retainedOfNew})
	}
	answer, err := m.Subscribe(ctx, request)
	if ctx.Err() != nil || c.connections.Load() != connection || errors.Is(err, autopaho.ConnectionDownError) || errors.Is(err, paho.ErrConnectionLost) {
		return false
	}
	c.answered(filters, answer, err)
	return true
}

// answered handles the broker's reason codes (MQTT 5.0, 3.9.3), one for each filter. Without codes the error refuses all: the
// library knows that the broker has no wildcards, or the broker did not answer.
func (c *client5) answered(filters []string, answer *paho.Suback, err error) {
	switch {
	case answer != nil: // the library returns an error for refusals too
	case errors.Is(err, context.DeadlineExceeded):
		c.subscriptions.Refused(fmt.Sprintf("no answer within %v", handshake), filters...)
		return
	default:
		c.subscriptions.Refused(err.Error(), filters...)
		return
	}
	for i, filter := range filters {
		switch {
		case i >= len(answer.Reasons):
			c.subscriptions.Refused("the broker's answer does not have it", filter)
		case answer.Reasons[i] >= firstRefusal:
			c.subscriptions.Refused(refusal(answer, i), filter)
		default:
			c.subscriptions.Granted(filter)
		}
	}
}

// refusal returns the reason of a refusal in words.
func refusal(answer *paho.Suback, i int) string {
	text := fmt.Sprintf("reason %#x", answer.Reasons[i])
	if answer.Properties != nil && answer.Properties.ReasonString != "" {
		text += ": " + answer.Properties.ReasonString
	}
	return text
}

func (c *client5) Publish(topic string, payload []byte) error {
	if c.setup.publishQoS == 0 {
		return c.dialer.out.put(topic, payload)
	}
	message := &paho.Publish{Topic: topic, Payload: payload, QoS: c.setup.publishQoS, Retain: c.setup.retain}
	return c.manager.PublishViaQueue(context.Background(), &autopaho.QueuePublish{Publish: message})
}

// Close waits until all messages are acknowledged. Events.Sent was called for all messages that were written.
func (c *client5) Close(ctx context.Context) {
	c.dialer.out.drain(ctx)
	poll(ctx, func() bool {
		if !c.waiting.empty() { // a message is in both for a moment, so that it is seen in one
			return false
		}
		ids, err := c.unacknowledged.List()
		return err != nil || len(ids) == 0
	})
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), quiesceMilliseconds*time.Millisecond)
	defer cancel()
	_ = c.manager.Disconnect(ending) // a failure changes nothing
	c.cancel()
}

// keeper keeps messages of QoS 1 and 2 after the broker lost the session, by its restart or a change of broker. The library
// forgets them with the session, as the standard says. They were not delivered, so they are published again, before all that wait.
type keeper struct {
	*memory.Store
	again func(messages [][]byte)
}

// Reset runs when the broker does not know the session.
func (k *keeper) Reset() error {
	ids, err := k.List()
	if err != nil {
		return err
	}
	var messages [][]byte
	for _, id := range ids {
		if message := k.message(id); message != nil {
			messages = append(messages, message)
		}
	}
	if err := k.Store.Reset(); err != nil {
		return err
	}
	k.again(messages)
	return nil
}

// message returns the message with an id; nil if the broker has it already (PUBREL).
func (k *keeper) message(id uint16) []byte {
	stored, err := k.Get(id)
	if err != nil {
		return nil
	}
	defer stored.Close()
	packet, err := io.ReadAll(stored)
	if err != nil || len(packet) == 0 || packet[0]>>4 != mqttwire.TypePublish {
		return nil
	}
	return packet
}
