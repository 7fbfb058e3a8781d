// Package transport is what every protocol of the traffic generator offers to it.
package transport

import (
	"context"
	"errors"
	"time"
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
	// Connection came up or went down; reason is for people.
	Connection func(up bool, reason string)
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
