// Package client is an AMQP 0-9-1 client for the traffic generator, on RabbitMQ's own library. It publishes and subscribes to the topic
// exchange amq.topic, which every broker has (AMQP 0-9-1, 3.1.3.3). RabbitMQ's plugins for MQTT and STOMP use it, too.
package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	description "vignette.dev/vignette/internal/traffic/amqp"
	"vignette.dev/vignette/internal/traffic/transport"
)

const (
	exchange = "amq.topic"
	// prefetch is the most unacknowledged messages of QoS 1 to the client. It is large enough for long delays, and small enough to
	// limit repetitions after an outage.
	prefetch = 256
	// closing is how long to wait for the answer to a CLOSE.
	closing = 250 * time.Millisecond
)

// client maintains one connection.
type client struct{ *transport.Brokered }

// Open is a transport.Open.
func Open(setup transport.Setup, events transport.Events) (transport.Client, error) {
	return transport.OpenBrokered(description.Protocol, setup, events, func(ctx context.Context, b *transport.Brokered) error { return plain(client{b}.connection(ctx)) })
}

// plain returns an error without the library's form of a reason, Exception (501) Reason: "…".
func plain(err error) error {
	failure, ok := errors.AsType[*amqp.Error](err)
	if !ok {
		return err
	}
	words, within := failure.Reason, ""
	if failure.Server {
		words = "the broker says: " + words
	} else if n, _ := fmt.Sscanf(words, "Exception (%d) Reason: %q", new(int), &within); n == 2 {
		words = within // the text of another such error
	}
	return errors.New(strings.Replace(err.Error(), failure.Error(), words, 1))
}

// connection runs one connection and returns why it ended.
func (c client) connection(ctx context.Context) error {
	socket, err := Dial(ctx, c.Dialer)
	if err != nil {
		return err
	}
	defer socket.Close()
	// Until the subscription exists, only closing the socket stops the session.
	begun := context.AfterFunc(ctx, func() { socket.Close() })
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName(c.Setup.ClientID)
	connection, err := Login(socket, c.Dialer, c.Dialer.Timeout(), properties)
	if err != nil {
		return err
	}
	ended := connection.NotifyClose(make(chan *amqp.Error, 1))
	held := connection.NotifyBlocked(make(chan amqp.Blocking, 1))
	s := &session{client: c, connection: connection}
	if err := s.begin(); err != nil {
		return errors.Join(err, closeSoon(connection))
	}
	begun()
	c.Outbox.Connected()
	defer c.Outbox.Disconnected()
	c.Events.Connection(true, c.Dialer.Connected())
	defer s.wait()
	using, stop := context.WithCancel(ctx)
	defer stop()
	s.use(using)
	for {
		select {
		case <-ctx.Done():
			return closeSoon(connection)
		case err := <-s.failed:
			return errors.Join(err, closeSoon(connection))
		case reason := <-ended:
			if reason != nil {
				return reason
			}
			return errors.New("connection lost")
		case b, open := <-held:
			if !open {
				held = nil
			} else if b.Active {
				c.Setup.Warn("the broker holds publishers back: " + b.Reason)
			}
		}
	}
}

// Dial connects to the dialer's next broker, for Login. The connection lasts as long as something comes.
func Dial(ctx context.Context, dialer *transport.Dialer) (net.Conn, error) {
	plain, broker, err := dialer.DialPlain(ctx)
	if err != nil {
		return nil, err
	}
	// Below TLS, which gives nothing before the end of its records of up to 16 KiB.
	return dialer.Secure(ctx, &patient{Conn: plain}, broker)
}

// Login runs AMQP's handshake on a new socket, with the dialer's user name and password, or a guest's.
func Login(socket net.Conn, dialer *transport.Dialer, heartbeat time.Duration, properties amqp.Table) (*amqp.Connection, error) {
	username, password, err := dialer.LoginOrGuest()
	if err != nil {
		return nil, err
	}
	if err := socket.SetDeadline(time.Now().Add(dialer.Timeout())); err != nil {
		return nil, err
	}
	return amqp.Open(plainSocket{socket}, amqp.Config{
		SASL: []amqp.Authentication{&amqp.PlainAuth{Username: username, Password: password}}, Vhost: "/",
		Heartbeat: heartbeat, Locale: "en_US", Properties: properties,
	})
}

// plainSocket tells its errors in plain words: the library keeps nothing else of them.
type plainSocket struct{ net.Conn }

// Read implements net.Conn.
func (s plainSocket) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	return n, inPlainWords(err)
}

// Write implements net.Conn.
func (s plainSocket) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	return n, inPlainWords(err)
}

func inPlainWords(err error) error {
	if err == nil {
		return nil
	}
	return plainError{err}
}

type plainError struct{ error }

func (e plainError) Error() string { return transport.Words(e.error) }

func (e plainError) Unwrap() error { return e.error }

// patient is a socket that counts the time for reading from each read. The library counts it from each whole frame, and one of 128 KiB
// takes minutes on a slow link.
type patient struct {
	net.Conn
	// silence is the time for reading in nanoseconds; 0 for any.
	silence atomic.Int64
}

// SetReadDeadline is what the library calls after a frame.
func (p *patient) SetReadDeadline(at time.Time) error {
	p.silence.Store(max(int64(time.Until(at)), 1))
	return p.Conn.SetReadDeadline(at)
}

// SetDeadline is for the handshake, and for closing: they end in time, whatever comes.
func (p *patient) SetDeadline(at time.Time) error {
	p.silence.Store(0)
	return p.Conn.SetDeadline(at)
}

// Read implements net.Conn.
func (p *patient) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if silence := p.silence.Load(); n > 0 && silence > 0 {
		_ = p.Conn.SetReadDeadline(time.Now().Add(time.Duration(silence))) // the next read fails if this does
	}
	return n, err
}

// closeSoon closes a connection without waiting long for the broker's answer.
func closeSoon(connection *amqp.Connection) error {
	err := connection.CloseDeadline(time.Now().Add(closing))
	if errors.Is(err, amqp.ErrClosed) {
		return nil
	}
	return err
}
