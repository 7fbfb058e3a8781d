package mqtt

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"sync/atomic"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"vignette.dev/vignette/internal/traffic/transport"
)

// protocol311 is the protocol level of MQTT 3.1.1. Being explicit, the library does not fall back to 3.1.
const protocol311 = 4

// quiesceMilliseconds is how long a DISCONNECT may take to be written.
const quiesceMilliseconds = 250

type client311 struct {
	config Config
	events transport.Events
	client paho.Client
	cancel context.CancelFunc
	// outstanding are messages of QoS 1 and 2 that are not acknowledged.
	outstanding atomic.Int64
}

func newClient311(config Config, d *dialer, events transport.Events) *client311 {
	c := &client311{config: config, events: events}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	o := paho.NewClientOptions().
		AddBroker("tcp://" + config.Broker).
		SetClientID(config.ClientID).
		SetProtocolVersion(protocol311).
		SetCleanSession(!config.keepsSession()).
		SetKeepAlive(keepAlive).
		SetPingTimeout(pingTimeout).
		SetConnectTimeout(connectTimeout + lastBackoff). // the dialer's wait counts
		SetConnectRetry(true).
		// The dialer waits; the library's own pauses, which know no short ones, are all but off.
		SetConnectRetryInterval(time.Millisecond).
		SetMaxReconnectInterval(time.Millisecond).
		SetAutoReconnect(true).
		SetOrderMatters(true).
		SetCustomOpenConnectionFn(func(*url.URL, paho.ClientOptions) (net.Conn, error) { return d.dial(ctx) }).
		SetDefaultPublishHandler(func(_ paho.Client, m paho.Message) {
			at := time.Now()
			events.Received(at, m.Topic(), m.Payload())
		}).
		SetOnConnectHandler(func(paho.Client) {
			d.connected()
			events.Connection(true, "")
			go c.subscribe()
		}).
		SetConnectionLostHandler(func(_ paho.Client, err error) { events.Connection(false, err.Error()) })
	o.SetConnectionNotificationHandler(func(_ paho.Client, n paho.ConnectionNotification) {
		if failed, ok := n.(paho.ConnectionNotificationFailed); ok {
			events.Connection(false, failed.Reason.Error())
		}
	})
	c.client = paho.NewClient(o)
	c.client.Connect()
	return c
}

// subscribe asks for the topics; every connection does, as a broker that was restarted knows nothing.
func (c *client311) subscribe() {
	if len(c.config.Filters) == 0 {
		return
	}
	filters := map[string]byte{}
	for _, filter := range c.config.Filters {
		filters[filter] = c.config.SubscribeQoS
	}
	// Without a handler per filter each message is handed over once, however many filters match.
	token := c.client.SubscribeMultiple(filters, nil)
	token.Wait()
	if err := token.Error(); err != nil {
		c.config.Warn(fmt.Sprintf("subscription: %v", err))
		return
	}
	for filter, granted := range token.(*paho.SubscribeToken).Result() {
		if granted > 2 {
			c.config.Warn(fmt.Sprintf("subscription to %s was refused by the broker", filter))
		}
	}
}

func (c *client311) Publish(topic string, payload []byte) error {
	if c.config.PublishQoS == 0 {
		if !c.client.IsConnectionOpen() {
			return transport.ErrNotConnected
		}
		token := c.client.Publish(topic, 0, false, payload)
		select {
		case <-token.Done():
			return token.Error()
		default: // it is with the library's writer
			return nil
		}
	}
	c.outstanding.Add(1)
	token := c.client.Publish(topic, c.config.PublishQoS, false, payload)
	go func() {
		token.Wait()
		c.outstanding.Add(-1)
	}()
	select {
	case <-token.Done():
		return token.Error()
	default:
		return nil
	}
}

func (c *client311) Close(ctx context.Context) {
	poll(ctx, func() bool { return c.outstanding.Load() == 0 })
	c.client.Disconnect(quiesceMilliseconds)
	c.cancel()
}
