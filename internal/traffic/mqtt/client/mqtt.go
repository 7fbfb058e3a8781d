// Package client is an MQTT 3.1.1 and 5 client for the traffic generator, on the Eclipse Paho libraries.
//
// Connections. It reconnects for ever, after 50 ms up to 10 s, to one broker after the other, and subscribes again if the broker
// lost its session. By default only sessions with QoS 0 are clean. With QoS 1 or 2 on either side the
// session outlives connections, so that these levels hold over an outage.
//
// Messages without a connection: with QoS 0 they are refused and never sent. With QoS 1 and 2 they wait in memory and are sent
// late, to any broker, as the level promises.
package client

import (
	"context"
	"fmt"
	"time"

	"vignette.dev/vignette/internal/clock"
	mqttwire "vignette.dev/vignette/internal/traffic/mqtt/wire"
	"vignette.dev/vignette/internal/traffic/mqtttopic"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

// Versions of MQTT.
const (
	Version311 = "3.1.1"
	Version5   = "5"
)

const (
	keepAlive = 60 * time.Second
	// handshake is how long an answer to CONNECT or SUBSCRIBE may take on a new connection.
	handshake = 60 * time.Second
)

// setup is that of a client, with defaults for both versions.
type setup struct {
	transport.Setup
	publishQoS, subscribeQoS byte
	retain, keepsSession     bool
	keepAlive                time.Duration
}

func newSetup(s transport.Setup) setup {
	c := setup{Setup: s, publishQoS: byte(s.PublishQoS()), subscribeQoS: byte(s.SubscribeQoS()), retain: s.Publish != nil && s.Publish.Retain}
	switch s.Session {
	case trafficconfig.SessionAuto:
		c.keepsSession = c.publishQoS > 0 || len(s.Filters()) > 0 && c.subscribeQoS > 0
	case trafficconfig.SessionPersistent:
		c.keepsSession = true
	}
	return c
}

func (c setup) validate() error {
	if c.publishQoS > 2 || c.subscribeQoS > 2 {
		return fmt.Errorf("QoS %d to publish, %d to subscribe: want 0, 1 or 2", c.publishQoS, c.subscribeQoS)
	}
	if c.ClientID == "" {
		return fmt.Errorf("client id is empty: want a name unique at the broker")
	}
	if c.Session != trafficconfig.SessionAuto && c.Session != trafficconfig.SessionClean && c.Session != trafficconfig.SessionPersistent {
		return fmt.Errorf("session %q: want %s or %s, or nothing", c.Session, trafficconfig.SessionClean, trafficconfig.SessionPersistent)
	}
	if c.LargestTopic != "" {
		if err := mqttwire.ValidPublish(c.LargestTopic, make([]byte, c.LargestBytes)); err != nil {
			return err
		}
	}
	for _, filter := range c.Filters() {
		if err := mqtttopic.ValidFilter(filter); err != nil {
			return err
		}
	}
	return nil
}

// Open is a transport.Open. It connects in the background.
func Open(s transport.Setup, events transport.Events) (transport.Client, error) {
	return openWith(s, events, keepAlive)
}

func openWith(s transport.Setup, events transport.Events, keepAlive time.Duration) (transport.Client, error) {
	c := newSetup(s)
	if err := c.validate(); err != nil {
		return nil, err
	}
	shared, err := transport.NewDialer(s)
	if err != nil {
		return nil, err
	}
	// With several brokers, a silent one must be noticed sooner.
	c.keepAlive = min(keepAlive, shared.Timeout())
	d := &dialer{Dialer: shared, form: mqttwire.MQTT311, sent: events.Sent}
	if s.Version == Version5 {
		d.form = mqttwire.MQTT5
	}
	d.out = newOutbox(d.form, c.retain, events)
	switch s.Version {
	case "", Version311:
		return newClient311(c, d, events), nil
	case Version5:
		return newClient5(c, d, events)
	}
	return nil, fmt.Errorf("MQTT version %q: want %s or %s", s.Version, Version311, Version5)
}

// poll waits until ok returns true or ctx ends.
func poll(ctx context.Context, ok func() bool) {
	for !ok() && clock.Pause(ctx, 20*time.Millisecond) {
	}
}
