package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"vignette.dev/vignette/internal/traffic/zeromq"
	"vignette.dev/vignette/internal/traffic/zeromq/zmq"
)

const (
	// heartbeat is the interval of heartbeats and the timeout of their answers. A link's default queue of 1000 packets of 230 bytes
	// takes 190 s at 9.8 kbit/s, and answers wait behind it.
	// A heartbeat with its answer takes 280 bytes. One a minute from 54 clients would exceed such a link.
	heartbeat = 300 * time.Second
	// queueBytes limits the library's queue for a connection.
	queueBytes = 16 << 20
	minWaiting = 16
	maxWaiting = 1000 // libzmq's default
)

// highWater returns the most queued messages of a size for a connection.
func highWater(bytes int) int {
	return min(max(queueBytes/max(bytes, 1), minWaiting), maxWaiting)
}

// link is a socket with one connection.
type link struct {
	kind     zmq.Type
	socket   *zmq.Socket
	endpoint string
	// monitor reports the connection's events; nil for PGM, which has none.
	monitor *zmq.Socket
}

// open opens a socket and starts to connect it.
func (c *Client) open(kind zmq.Type, endpoint string) (*link, error) {
	s, err := c.library.Socket(kind)
	if err != nil {
		return nil, err
	}
	l := &link{kind: kind, socket: s, endpoint: endpoint}
	if err := l.begin(c); err != nil {
		l.close(0)
		return nil, err
	}
	return l, nil
}

func (l *link) begin(c *Client) (err error) {
	if err := l.socket.SetAll(c.options(l.kind)); err != nil {
		return err
	}
	if l.kind == zmq.SUB {
		for _, filter := range c.setup.Filters() {
			if err := l.socket.Subscribe(Prefix(filter)); err != nil {
				return err
			}
		}
	}
	if !zeromq.Multicast(c.setup.Transport) {
		if l.monitor, err = l.socket.Monitor(); err != nil {
			return err
		}
	}
	return l.socket.Connect(l.endpoint)
}

// options returns the options of a client's socket.
func (c *Client) options(kind zmq.Type) map[zmq.Option]int {
	options := map[zmq.Option]int{zmq.Linger: 0}
	if kind == zmq.PUB {
		options[zmq.SendHighWater], options[zmq.NoDrop] = highWater(c.setup.LargestBytes), 1
	}
	if zeromq.Multicast(c.setup.Transport) {
		PGMOptions(options, c.setup.PGM.RateKilobits)
		return options
	}
	timeout, beat := c.dialer.Timeout(), heartbeat
	if len(c.setup.Failover) > 0 {
		beat = timeout // there are other brokers to fail over to
	}
	options[zmq.ReconnectInterval] = -1 // the client reconnects by itself, to the next broker
	options[zmq.ConnectTimeout] = int(timeout.Milliseconds())
	options[zmq.HandshakeInterval] = int(timeout.Milliseconds())
	Heartbeats(options, beat)
	return options
}

// Heartbeats returns the options for heartbeats: one each interval, and a peer that does not answer within it is lost.
// They set no time to live, which would give the peer a timeout.
// libzmq 4.3.4 keeps it in 16 bits of milliseconds, so a longer one than 65 s ends healthy connections.
func Heartbeats(options map[zmq.Option]int, interval time.Duration) {
	options[zmq.HeartbeatInterval] = int(interval.Milliseconds())
	options[zmq.HeartbeatTimeout] = int(interval.Milliseconds())
}

// waitConnected waits for the handshake of broker and client. PGM has none.
func (l *link) waitConnected(ctx context.Context) error {
	if l.monitor == nil {
		return nil
	}
	return l.events(ctx, func(event zmq.Event) (bool, error) {
		switch event {
		case zmq.HandshakeDone:
			return true, nil
		case zmq.Connected:
			return false, nil
		}
		return true, fmt.Errorf("%s", event)
	})
}

// waitLost waits until the connection is lost, which is an error, or until ctx ends.
func (l *link) waitLost(ctx context.Context) error {
	if l.monitor == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	return l.events(ctx, func(event zmq.Event) (bool, error) {
		return true, fmt.Errorf("%s", event)
	})
}

// events passes events to take until it returns true.
func (l *link) events(ctx context.Context, take func(zmq.Event) (bool, error)) error {
	for {
		event, _, err := l.monitor.ReceiveEvent()
		if zmq.Again(err) {
			if err = l.monitor.Wait(ctx); err == nil {
				continue
			}
			if errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("no answer from %s", l.endpoint)
			}
		}
		if err != nil {
			return err
		}
		if done, err := take(event); done {
			return err
		}
	}
}

// close closes the socket, which continues to send for its linger period.
func (l *link) close(linger time.Duration) {
	_ = l.socket.Set(zmq.Linger, int(linger.Milliseconds())) // the linger period is 0 from the start
	l.socket.Close()
}

// Prefix returns the prefix of all topics that a filter matches: its part before the first wildcard.
func Prefix(filter string) string {
	if i := strings.IndexAny(filter, "+#"); i >= 0 {
		if filter[i] == '#' { // a/# matches a too
			return strings.TrimSuffix(filter[:i], "/")
		}
		return filter[:i]
	}
	return filter
}
