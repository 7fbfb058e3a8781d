package broker

import (
	"context"
	"fmt"
	"os"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/traffic/mqtttopic"
	"vignette.dev/vignette/internal/traffic/zeromq"
	zeromqclient "vignette.dev/vignette/internal/traffic/zeromq/client"
	"vignette.dev/vignette/internal/traffic/zeromq/zmq"
)

// Pauses between attempts to use the radio's interface, which may not exist yet.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// pgm is a broker over multicast.
type pgm struct {
	publishers, subscribers *zmq.Socket
	filters                 []string
	metrics                 *metrics
}

func runPGM(ctx context.Context, library *zmq.Context, config zeromq.BrokerConfig, m *metrics) error {
	b, err := openPGM(ctx, library, config, m)
	if err != nil || b == nil {
		return err
	}
	defer b.publishers.Close()
	defer b.subscribers.Close()
	poller := zmq.NewPoller(b.publishers)
	for ctx.Err() == nil {
		if err := poller.Poll(pollInterval); err != nil {
			return err
		}
		for range maxBatch {
			frames, err := b.publishers.Receive()
			if zmq.Again(err) {
				break
			}
			if err != nil {
				return err
			}
			if err := b.forward(frames); err != nil {
				return err
			}
		}
	}
	return nil
}

// openPGM opens the sockets, and retries until it succeeds; nil once ctx has ended.
func openPGM(ctx context.Context, library *zmq.Context, config zeromq.BrokerConfig, m *metrics) (*pgm, error) {
	for retry := firstRetry; ; retry = min(2*retry, lastRetry) {
		endpoints, err := endpoints(config.Transport, *config.PGM)
		if err == nil {
			return joinGroups(library, endpoints, *config.PGM, m)
		}
		fmt.Fprintf(os.Stderr, "traffic zeromq-broker: %v\n", err)
		if !clock.Pause(ctx, retry) {
			return nil, nil
		}
	}
}

// endpoints returns those of the publishers' groups, and as the last one the subscribers'.
func endpoints(transport string, config zeromq.BrokerPGM) (all []string, err error) {
	for _, group := range config.Publishers {
		publish, _, err := zeromqclient.PGMEndpoints(transport, config.Interface, zeromq.PGM{Publish: group})
		if err != nil {
			return nil, err
		}
		all = append(all, publish)
	}
	_, subscribe, err := zeromqclient.PGMEndpoints(transport, config.Interface, zeromq.PGM{Subscribe: config.Subscribers})
	return append(all, subscribe), err
}

func joinGroups(library *zmq.Context, endpoints []string, config zeromq.BrokerPGM, m *metrics) (b *pgm, err error) {
	b = &pgm{filters: config.Filters, metrics: m}
	options := map[zmq.Option]int{zmq.Linger: 0}
	zeromqclient.PGMOptions(options, config.RateKilobits)
	if b.publishers, err = library.Socket(zmq.SUB); err != nil {
		return nil, err
	}
	if b.subscribers, err = library.Socket(zmq.PUB); err != nil {
		b.publishers.Close()
		return nil, err
	}
	defer func() {
		if err != nil {
			b.publishers.Close()
			b.subscribers.Close()
		}
	}()
	if err := b.publishers.SetAll(options); err != nil {
		return nil, err
	}
	options[zmq.NoDrop] = 1
	if err := b.subscribers.SetAll(options); err != nil {
		return nil, err
	}
	for _, filter := range config.Filters {
		if err := b.publishers.Subscribe(zeromqclient.Prefix(filter)); err != nil {
			return nil, err
		}
	}
	last := len(endpoints) - 1
	for _, endpoint := range endpoints[:last] {
		if err := b.publishers.Connect(endpoint); err != nil {
			return nil, err
		}
	}
	return b, b.subscribers.Connect(endpoints[last])
}

// forward forwards a wanted message. Its frames may follow the first frames of an incomplete one.
func (b *pgm) forward(frames [][]byte) error {
	b.metrics.received.Inc()
	if len(frames) < 2 {
		b.metrics.malformed.Inc()
		return nil
	}
	frames = frames[len(frames)-2:]
	if !mqtttopic.MatchAny(b.filters, string(frames[0])) {
		b.metrics.filtered.Inc()
		return nil
	}
	err := b.subscribers.Send(frames...)
	if zmq.Again(err) {
		b.metrics.dropped.Inc()
		return nil
	}
	if err == nil {
		b.metrics.forwarded.Inc()
	}
	return err
}
