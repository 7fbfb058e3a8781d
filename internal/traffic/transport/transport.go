// Package transport is what every protocol of the traffic generator offers to it.
package transport

import (
	"context"
	"errors"
	"time"

	"vignette.dev/vignette/internal/trafficconfig"
)

// ErrNotConnected is the error of a message that was not sent because there was no connection, and that never will be.
var ErrNotConnected = errors.New("not connected: the message is not sent")

// Events are called by a Client, from any goroutine, and must return soon.
type Events struct {
	// Sent: a message is being handed to the socket; at is the moment before that. It is called after it
	// succeeded, and again for every repetition.
	Sent func(at time.Time, topic string, payload []byte)
	// Received: a message came out of the socket or client library at the given time.
	Received func(at time.Time, topic string, payload []byte)
	// Connection came up or went down; reason is for people. When it came up it is the broker's host:port (Dialer.Connected), or nothing for
	// protocols without a broker.
	Connection func(up bool, reason string)
	// Subscription: the broker has the subscription to a filter, or refuses it for a reason (Subscriptions). It may be nil.
	Subscription func(filter, refusal string)
	// Dropped: messages were lost in this host's own socket buffer.
	Dropped func(messages int)
}

// Client sends and receives messages over one connection that it keeps up by itself.
type Client interface {
	// Publish hands a message to the protocol. With an error it is not sent, now or later. Without one,
	// Events.Sent tells when it went to the socket.
	Publish(topic string, payload []byte) error
	// Close waits, as long as ctx lasts, for what the protocol still has to do, and disconnects.
	Close(ctx context.Context)
}

// Setup is what a client is made of.
type Setup struct {
	trafficconfig.Config
	// ClientID is the instance's name, in letters that every protocol's names may have: unique at the broker.
	ClientID string
	// LargestTopic and LargestBytes are of the largest message that will be published; empty for a client that only receives.
	LargestTopic string
	LargestBytes int
	// Warn tells people what is not as it should be.
	Warn func(text string)
}

// Open makes a client of a protocol, which begins to connect in the background and for as long as it takes. Errors are of the setup only.
type Open func(Setup, Events) (Client, error)

// Brokers in the order in which they are tried.
func (s Setup) Brokers() []string {
	return append([]string{s.Broker}, s.Failover...)
}

// Filters of what the client subscribes to; none for one that only publishes.
func (s Setup) Filters() []string {
	if s.Subscribe == nil {
		return nil
	}
	return s.Subscribe.Topics
}

// PublishQoS of what the client publishes.
func (s Setup) PublishQoS() int {
	if s.Publish == nil {
		return 0
	}
	return s.Publish.QoS
}

// SubscribeQoS of what the client subscribes to.
func (s Setup) SubscribeQoS() int {
	if s.Subscribe == nil {
		return 0
	}
	return s.Subscribe.QoS
}
