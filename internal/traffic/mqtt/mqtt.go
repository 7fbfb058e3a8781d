// Package mqtt is a client of MQTT 3.1.1 and 5 for the traffic generator, on the Eclipse Paho libraries.
//
// Connections. It reconnects for ever, waiting from 50 ms up to 10 s, and subscribes again every time.
// With QoS 0 only, sessions are clean. With QoS 1 or 2 on either side the session outlives connections,
// which is what makes these levels keep their promise over an outage.
//
// Messages while there is no connection: with QoS 0 they are refused and never sent. With QoS 1 and 2
// the library keeps them and sends them when the connection is back, which is late but is what the level promises.
package mqtt

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"vignette.dev/vignette/internal/traffic/mqttwire"
	"vignette.dev/vignette/internal/traffic/transport"
)

// Versions of MQTT.
const (
	Version311 = "3.1.1"
	Version5   = "5"
)

// Config of a client.
type Config struct {
	// Broker is host:port.
	Broker string
	// Version of MQTT; 3.1.1 by default.
	Version string
	// ClientID is unique at the broker.
	ClientID string
	// PublishQoS of messages sent; SubscribeQoS of those received through Filters.
	PublishQoS, SubscribeQoS byte
	Filters                  []string
	// Seed of the back-off's jitter.
	Seed int64
	// Warn tells people what is not as it should be.
	Warn func(text string)
}

func (c Config) validate() error {
	if _, _, err := net.SplitHostPort(c.Broker); err != nil {
		return fmt.Errorf("broker %q: want host:port", c.Broker)
	}
	if c.PublishQoS > 2 || c.SubscribeQoS > 2 {
		return fmt.Errorf("QoS %d to publish, %d to subscribe: want 0, 1 or 2", c.PublishQoS, c.SubscribeQoS)
	}
	if c.ClientID == "" {
		return fmt.Errorf("client id is empty: want a name unique at the broker")
	}
	for _, filter := range c.Filters {
		if err := mqttwire.ValidFilter(filter); err != nil {
			return err
		}
	}
	return nil
}

// keepsSession tells whether the session outlives connections.
func (c Config) keepsSession() bool {
	return c.PublishQoS > 0 || len(c.Filters) > 0 && c.SubscribeQoS > 0
}

// Open is a transport.Open.
func Open(s transport.Setup, events transport.Events) (transport.Client, error) {
	return New(Config{
		Broker: s.Broker, Version: s.Version, ClientID: s.ClientID, Filters: s.Filters(), Seed: s.Seed, Warn: s.Warn,
		PublishQoS: byte(s.PublishQoS()), SubscribeQoS: byte(s.SubscribeQoS()),
	}, events)
}

// New begins to connect, in the background and for as long as it takes.
func New(config Config, events transport.Events) (transport.Client, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	dialer := &dialer{broker: config.Broker, form: mqttwire.MQTT311, sent: events.Sent, random: rand.New(rand.NewPCG(uint64(config.Seed), 0x6d717474))}
	switch config.Version {
	case "", Version311:
		return newClient311(config, dialer, events), nil
	case Version5:
		dialer.form = mqttwire.MQTT5
		return newClient5(config, dialer, events)
	}
	return nil, fmt.Errorf("MQTT version %q: want %s or %s", config.Version, Version311, Version5)
}

// poll waits until ok or the end of ctx.
func poll(ctx context.Context, ok func() bool) {
	for !ok() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}
