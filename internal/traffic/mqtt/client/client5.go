package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/packets"
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
	// broker is what the latest broker said of itself; nil before the first.
	broker atomic.Pointer[paho.ConnackProperties]
	// connections counts connections, so that a handler recognises that its own was replaced.
	connections   atomic.Int64
	subscriptions *transport.Subscriptions
}

func newClient5(s setup, d *dialer, events transport.Events) (*client5, error) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &client5{setup: s, dialer: d, cancel: cancel, subscriptions: transport.NewSubscriptions(s.Setup, events)}
	c.waiting = &queue5{dropped: c.tooMuch(events)}
	c.unacknowledged = &keeper{Store: memory.New(), again: c.waiting.putBack}
	lost := make(chan error, 1) // why the connection ended; the library tells it beside OnConnectionDown
	ended := func(why error) {
		select {
		case lost <- why:
		default:
		}
	}
	options := autopaho.ClientConfig{
		ServerUrls:                    []*url.URL{{Scheme: "mqtt", Host: s.Broker}}, // a name only: the dialer knows where to go
		KeepAlive:                     uint16(s.keepAlive / time.Second),
		CleanStartOnInitialConnection: !s.keepsSession,
		ConnectTimeout:                2 * (handshake + d.Timeout()), // the dialer's wait limits it
		ReconnectBackoff:              func(int) time.Duration { return 0 },
		Queue:                         c.waiting,
		ConnectPacketBuilder:          c.connectPacket,
		AttemptConnection: func(ctx context.Context, _ autopaho.ClientConfig, _ *url.URL) (net.Conn, error) {
			select {
			case <-lost: // a second reason of the connection before
			default:
			}
			return d.dial(ctx)
		},
		OnConnectionUp: func(m *autopaho.ConnectionManager, ack *paho.Connack) {
			c.broker.Store(ack.Properties)
			_, broker := d.connected()
			if !ack.SessionPresent { // a broker with the session has the subscriptions
				c.subscriptions.Forget()
			}
			events.Connection(true, broker)
			connection := c.connections.Add(1)
			go c.subscriptions.Ask(ctx, func(missing []string) bool { return c.subscribe(ctx, m, connection, missing) })
		},
		OnConnectionDown: func() bool {
			events.Lost(<-lost)
			return true
		},
		OnConnectError: func(err error) { events.Lost(refusedConnection(err)) },
		ClientConfig: paho.ClientConfig{
			ClientID:           s.ClientID,
			Session:            state.New(c.unacknowledged, memory.New()),
			PacketTimeout:      handshake,
			PingHandler:        pinger{},
			OnClientError:      ended,
			OnServerDisconnect: func(d *paho.Disconnect) { ended(disconnection(d)) },
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

// said is what the broker says by a reason code (MQTT 5.0, 2.4), and in words of its own.
func said(code byte, words string) string {
	name, _, _ := strings.Cut(cmp.Or((&packets.Disconnect{ReasonCode: code}).Reason(), (&packets.Connack{ReasonCode: code}).Reason()), " - ")
	name = cmp.Or(name, fmt.Sprintf("reason %#x", code))
	if words != "" {
		name += ": " + words
	}
	return name
}

// refusedConnection is the error of an attempt to connect, without the library's words.
func refusedConnection(err error) error {
	refusal, answered := errors.AsType[*autopaho.ConnackError](err)
	switch {
	case !answered:
		return err
	case refusal.ReasonCode < firstRefusal: // it ended as messages of the session were repeated
		return refusal.Err
	}
	return errors.New("the broker refuses the connection: " + said(refusal.ReasonCode, refusal.Reason))
}

// disconnection is why the broker ends the connection.
func disconnection(d *paho.Disconnect) error {
	words := ""
	if d.Properties != nil {
		words = d.Properties.ReasonString
	}
	return errors.New("the broker says: " + said(d.ReasonCode, words))
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
	words := ""
	if answer.Properties != nil {
		words = answer.Properties.ReasonString
	}
	return said(answer.Reasons[i], words)
}

func (c *client5) Publish(topic string, payload []byte) error {
	if c.setup.publishQoS == 0 {
		if err := c.beyond(mqttwire.Size(mqttwire.Publish{Topic: topic, Payload: payload}, mqttwire.MQTT5)); err != nil {
			return err
		}
		return c.dialer.out.put(topic, payload)
	}
	message := &paho.Publish{Topic: topic, Payload: payload, QoS: c.setup.publishQoS, Retain: c.setup.retain}
	return c.manager.PublishViaQueue(context.Background(), &autopaho.QueuePublish{Publish: message})
}

// beyond returns why the broker does not take a packet of a message (MQTT 5.0, 3.2.2.3). The library drops some without a word, and sends one
// that is too large again on each connection.
func (c *client5) beyond(packetBytes int) error {
	broker := c.broker.Load()
	switch {
	case broker == nil:
		return nil
	case broker.MaximumQoS != nil && c.setup.publishQoS > *broker.MaximumQoS:
		return fmt.Errorf("QoS %d: the broker takes up to %d", c.setup.publishQoS, *broker.MaximumQoS)
	case c.setup.retain && !broker.RetainAvailable:
		return errors.New("retain: the broker keeps no messages")
	case broker.MaximumPacketSize != nil && packetBytes > int(*broker.MaximumPacketSize):
		return fmt.Errorf("the broker takes packets of up to %d bytes", *broker.MaximumPacketSize) // the same for all, to be told once
	}
	return nil
}

// tooMuch returns a queue5.dropped that drops what the broker does not take.
func (c *client5) tooMuch(events transport.Events) func(packet []byte) bool {
	told := ""
	return func(packet []byte) bool {
		why := c.beyond(len(packet))
		if why == nil {
			return false
		}
		message, _ := mqttwire.ParsePublish(packet, mqttwire.MQTT5) // it was encoded here
		if why.Error() != told {
			told = why.Error()
			c.setup.Warn(fmt.Sprintf("a message of %d bytes on topic %s is refused, and perhaps others, which are only counted: %s", len(message.Payload), message.Topic, told))
		}
		events.DropUnsent(message.Topic, message.Payload)
		return true
	}
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
