// Package client is a STOMP 1.2 client for the traffic generator. The library go-stomp reads and writes frames. The connection is
// our own: the library's does not report when a frame is written, and takes none while another waits for its receipt.
package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"vignette.dev/vignette/internal/traffic/stomp"
	"vignette.dev/vignette/internal/traffic/transport"
)

// destinations is the prefix of topics' destinations in RabbitMQ and others.
const destinations = "/topic/"

// client maintains one connection.
type client struct{ *transport.Brokered }

// Open is a transport.Open.
func Open(setup transport.Setup, events transport.Events) (transport.Client, error) {
	return transport.OpenBrokered(stomp.Protocol, setup, events, func(ctx context.Context, b *transport.Brokered) error { return client{b}.connection(ctx) })
}

// destination returns that of a topic or filter: its routing key, with escaped slashes.
func destination(topic string) string {
	return destinations + strings.ReplaceAll(transport.RoutingKey(topic), "/", stomp.EscapedSlash)
}

// topic returns that of a message's destination, in which RabbitMQ escapes more than it reads.
func topic(destination string) string {
	name := strings.TrimPrefix(destination, destinations)
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	return transport.Topic(name)
}

// connection runs one connection and returns why it ended.
func (c client) connection(ctx context.Context) error {
	socket, err := c.Dialer.Dial(ctx)
	if err != nil {
		return err
	}
	defer socket.Close()
	// Until the subscription exists, only closing the socket stops the session.
	begun := context.AfterFunc(ctx, func() { socket.Close() })
	s, err := c.begin(socket)
	if err != nil {
		return err
	}
	begun()
	c.Outbox.Connected()
	defer c.Outbox.Disconnected()
	c.Events.Connection(true, c.Dialer.Connected())
	return s.use(ctx)
}

// begin runs the handshake and subscribes on a new socket.
func (c client) begin(socket net.Conn) (*session, error) {
	username, password, err := c.Dialer.LoginOrGuest()
	if err != nil {
		return nil, err
	}
	s := newSession(c, socket)
	if err := s.connect(username, password); err != nil {
		return nil, fmt.Errorf("handshake: %w", err)
	}
	if err := s.subscribe(); err != nil {
		if refusal, ok := errors.AsType[brokerError](err); ok {
			c.Subscriptions.Refused(string(refusal), c.Setup.Filters()...)
		}
		return nil, fmt.Errorf("subscription: %w", err)
	}
	c.Subscriptions.Granted(c.Setup.Filters()...)
	return s, nil
}

var errLost = errors.New("connection lost")
