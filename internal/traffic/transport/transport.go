// Package transport is the interface of the traffic generator's protocols, and their common parts.
package transport

import (
	"context"
	"errors"
	"time"

	"vignette.dev/vignette/internal/trafficconfig"
)

// ErrNotConnected is the error of a message that is never sent, as there was no connection.
var ErrNotConnected = errors.New("not connected: the message is not sent")

// Events are called by a Client, from any goroutine, and must return soon.
type Events struct {
	// Sent: a message was passed to the socket; at is the time before that. It is called after a write
	// succeeded, and again for every repetition.
	Sent func(at time.Time, topic string, payload []byte)
	// Unsent: a message that Publish has taken will never be sent. It may be nil: clients call DropUnsent.
	Unsent func(topic string, payload []byte)
	// Received: a message left the socket or client library at the given time.
	Received func(at time.Time, topic string, payload []byte)
	// Connection began or ended; reason is for people. At the beginning it is the broker's host:port (Dialer.Connected), or empty for
	// protocols without a broker.
	Connection func(up bool, reason string)
	// Subscription: the broker granted a filter, or refused it for a reason (Subscriptions). It may be nil.
	Subscription func(filter, refusal string)
	// Dropped: the host's own socket buffer lost messages.
	Dropped func(messages int)
}

// DropUnsent calls Unsent, if there is one.
func (e Events) DropUnsent(topic string, payload []byte) {
	if e.Unsent != nil {
		e.Unsent(topic, payload)
	}
}

// Client sends and receives messages over one connection that it maintains itself.
type Client interface {
	// Publish passes a message to the protocol. With an error it is never sent. Without one,
	// Events.Sent reports when it went to the socket.
	Publish(topic string, payload []byte) error
	// Close waits for outstanding work of the protocol until ctx ends, and disconnects.
	Close(ctx context.Context)
}

// Setup has the parameters of a client.
type Setup struct {
	trafficconfig.Config
	// ClientID is the instance's name in characters that every protocol allows. It is unique at the broker.
	ClientID string
	// LargestTopic and LargestBytes are those of the largest message to publish; empty for a client that only receives.
	LargestTopic string
	LargestBytes int
	// Warn logs a problem for people.
	Warn func(text string)
}

// Open returns a client of a protocol, which connects in the background. Errors concern the setup only.
type Open func(Setup, Events) (Client, error)

// Brokers returns the brokers in the order of attempts.
func (s Setup) Brokers() []string {
	return append([]string{s.Broker}, s.Failover...)
}

// Filters returns the client's topic filters; none for one that only publishes.
func (s Setup) Filters() []string {
	if s.Subscribe == nil {
		return nil
	}
	return s.Subscribe.Topics
}

// PublishQoS returns the QoS of published messages.
func (s Setup) PublishQoS() int {
	if s.Publish == nil {
		return 0
	}
	return s.Publish.QoS
}

// SubscribeQoS returns the QoS of subscriptions.
func (s Setup) SubscribeQoS() int {
	if s.Subscribe == nil {
		return 0
	}
	return s.Subscribe.QoS
}
