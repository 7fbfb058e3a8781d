// Package broker forwards ZeroMQ messages from publishers to the subscribers that want them. Over TCP it uses XSUB and XPUB sockets, which pass
// subscriptions to the publishers, so that these send only wanted messages. Over PGM it forwards from multicast groups
// to another one by configured filters, as multicast has no subscriptions.
package broker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"vignette.dev/vignette/internal/appinstance"
	"vignette.dev/vignette/internal/traffic/zeromq"
	"vignette.dev/vignette/internal/traffic/zeromq/zmq"
)

const (
	// pollInterval limits how long the end of the context goes unnoticed.
	pollInterval = 100 * time.Millisecond
	// maxBatch is the most messages of one socket before the other sockets get their turn.
	maxBatch = 256
	// timeout includes the handshake over a slow link.
	timeout = 60 * time.Second
)

// Serve runs the broker of a configuration file until ctx ends.
func Serve(ctx context.Context, path string) error {
	config, err := appinstance.ReadConfig[zeromq.BrokerConfig](path)
	if err != nil {
		return err
	}
	m := newMetrics(config.Instance)
	m.Serve(ctx, config.MetricsPort, func(text string) { fmt.Fprintf(os.Stderr, "traffic zeromq-broker: %s\n", text) })
	return run(ctx, config, m)
}

// run serves until ctx ends.
func run(ctx context.Context, config zeromq.BrokerConfig, m *metrics) error {
	runtime.LockOSThread() // it waits in the library
	defer runtime.UnlockOSThread()
	library, err := zmq.Open()
	if err != nil {
		return err
	}
	if zeromq.Multicast(config.Transport) {
		err = runPGM(ctx, library, config, m)
	} else {
		err = runTCP(ctx, library, config, m)
	}
	return errors.Join(err, library.Close())
}

// tcp is a broker over TCP.
type tcp struct {
	publishers, subscribers           *zmq.Socket
	publisherEvents, subscriberEvents *zmq.Socket
	metrics                           *metrics
}

func runTCP(ctx context.Context, library *zmq.Context, config zeromq.BrokerConfig, m *metrics) error {
	b := tcp{metrics: m}
	var err error
	if b.publishers, b.publisherEvents, err = listen(library, zmq.XSUB, config.Address, config.Port, nil); err != nil {
		return err
	}
	defer b.publishers.Close()
	// Refuse messages that do not fit into a subscriber's queue, to count them before they are dropped.
	if b.subscribers, b.subscriberEvents, err = listen(library, zmq.XPUB, config.Address, config.Port+1, map[zmq.Option]int{zmq.NoDrop: 1}); err != nil {
		return err
	}
	defer b.subscribers.Close()
	poller := zmq.NewPoller(b.publishers, b.subscribers, b.publisherEvents, b.subscriberEvents)
	work := []func() error{b.messages, b.subscriptions,
		func() error { return countConnections(b.publisherEvents, m, publishers) },
		func() error { return countConnections(b.subscriberEvents, m, subscribers) }}
	for ctx.Err() == nil {
		if err := poller.Poll(pollInterval); err != nil {
			return err
		}
		for i, do := range work {
			if !poller.Ready(i) {
				continue
			}
			if err := do(); err != nil && !zmq.Again(err) {
				return err
			}
		}
	}
	return nil
}

// listen returns a socket for peers to connect to, and its monitor.
func listen(library *zmq.Context, kind zmq.Type, address string, port int, options map[zmq.Option]int) (s, events *zmq.Socket, err error) {
	if s, err = library.Socket(kind); err != nil {
		return nil, nil, err
	}
	// Clients send the heartbeats, as they can fail over. The broker would only notice a loss earlier.
	err = errors.Join(s.SetAll(map[zmq.Option]int{zmq.Linger: 0, zmq.HandshakeInterval: int(timeout.Milliseconds())}), s.SetAll(options))
	if err == nil {
		events, err = s.Monitor()
	}
	if err == nil {
		err = s.Bind(fmt.Sprintf("tcp://%s:%d", address, port))
	}
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	return s, events, nil
}

// messages forwards from publishers to subscribers; the library chooses which.
func (b *tcp) messages() error {
	for range maxBatch {
		if err := b.publishers.Next(); err != nil {
			return err
		}
		b.metrics.received.Inc()
		more := b.publishers.More()
		err := b.publishers.Forward(b.subscribers, more)
		full := zmq.Again(err)
		if full {
			// At least one subscriber's queue is full. Only such subscribers miss the message.
			b.metrics.dropped.Inc()
			err = errors.Join(b.subscribers.Set(zmq.NoDrop, 0), b.publishers.Forward(b.subscribers, more))
		}
		for err == nil && more {
			if err = b.publishers.Next(); err == nil {
				more = b.publishers.More()
				err = b.publishers.Forward(b.subscribers, more)
			}
		}
		if full {
			err = errors.Join(err, b.subscribers.Set(zmq.NoDrop, 1))
		}
		if err != nil {
			return fmt.Errorf("a message to subscribers: %s", err)
		}
		b.metrics.forwarded.Inc()
	}
	return nil
}

// subscriptions forwards from subscribers to publishers: a byte, 1 to begin and 0 to end one, and a topic prefix.
func (b *tcp) subscriptions() error {
	for range maxBatch {
		if err := b.subscribers.Next(); err != nil {
			return err
		}
		switch frame := b.subscribers.Frame(); {
		case len(frame) > 0 && frame[0] == 1:
			b.metrics.subscriptions.Inc()
		case len(frame) > 0 && frame[0] == 0:
			b.metrics.subscriptions.Dec()
		}
		if err := b.subscribers.Forward(b.publishers, b.subscribers.More()); err != nil {
			return fmt.Errorf("a subscription to publishers: %w", err)
		}
	}
	return nil
}

func countConnections(events *zmq.Socket, m *metrics, side string) error {
	for {
		event, _, err := events.ReceiveEvent()
		if err != nil {
			return err
		}
		switch event {
		case zmq.Accepted:
			m.connections.WithLabelValues(side).Inc()
		case zmq.Disconnected:
			m.connections.WithLabelValues(side).Dec()
		}
	}
}
