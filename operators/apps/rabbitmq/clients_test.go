package rabbitmq_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vignette.dev/vignette/internal/traffic"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

// client is a client of the traffic generator, with its messages and state changes.
type client struct {
	transport.Client

	mu       sync.Mutex
	received map[string]int // how often, by "topic payload"
	sent     map[string]int
	states   []string
}

// open starts a client, whose configuration has what it publishes and subscribes to.
func open(t *testing.T, config trafficconfig.Config) *client {
	t.Helper()
	c := &client{received: map[string]int{}, sent: map[string]int{}}
	setup := transport.Setup{Config: config, ClientID: strings.ReplaceAll(config.Instance, "/", ":"), Warn: func(text string) { c.note("warning: " + text) }}
	opened, err := traffic.Protocols[config.Protocol](setup, transport.Events{
		Sent:       func(_ time.Time, topic string, payload []byte) { c.count(c.sent, topic, payload) },
		Received:   func(_ time.Time, topic string, payload []byte) { c.count(c.received, topic, payload) },
		Connection: func(up bool, reason string) { c.note(fmt.Sprintf("up %v: %s", up, reason)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Client = opened
	t.Cleanup(c.close)
	return c
}

// close ends the client as the traffic generator does.
func (c *client) close() {
	c.mu.Lock()
	opened := c.Client
	c.Client = nil
	c.mu.Unlock()
	if opened != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		opened.Close(ctx)
	}
}

func (c *client) count(counts map[string]int, topic string, payload []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts[topic+" "+string(payload)]++
}

func (c *client) note(state string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states = append(c.states, state)
}

func (c *client) stateChanges() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.states)
}

// receivedMessages are the counts of received messages.
func (c *client) receivedMessages() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.received)
}

// sentMessages are the counts of sent messages.
func (c *client) sentMessages() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.sent)
}

// waitConnected waits for the connection.
func (c *client) waitConnected(t *testing.T) *client {
	t.Helper()
	if !reached(func() bool {
		return slices.ContainsFunc(c.stateChanges(), func(s string) bool { return strings.HasPrefix(s, "up true") })
	}) {
		t.Fatalf("never connected: %v", c.stateChanges())
	}
	return c
}

func (b *broker) of(protocol string) string {
	return b.at(map[string]int{
		"amqp": b.ports.amqp, "mqtt": b.ports.mqtt, "stomp": b.ports.stomp,
	}[protocol])
}

// publisher and subscriber are configurations of a client of a broker.
func (b *broker) publisher(protocol, name string, qos int) trafficconfig.Config {
	return trafficconfig.Config{Instance: name, Protocol: protocol, Broker: b.of(protocol), Publish: &trafficconfig.Publish{QoS: qos}, Seed: 1}
}

func (b *broker) subscriber(protocol, name string, qos int, filters ...string) trafficconfig.Config {
	return trafficconfig.Config{Instance: name, Protocol: protocol, Broker: b.of(protocol), Subscribe: &trafficconfig.Subscribe{QoS: qos, Topics: filters}, Seed: 1}
}
