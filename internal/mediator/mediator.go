// Package mediator passes messages between brokers of different protocols. Each leg is a client of one broker. A message that arrives on a leg
// goes to all others, byte for byte and in order, under its topic without this leg's prefix and with theirs.
//
// A broker delivers a message to all subscribers, the publisher among them. So a leg receives its own messages if it
// subscribes to their topic. Such echoes are recognised by topic and content: see echoes.
package mediator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"vignette.dev/vignette/internal/appinstance"
	"vignette.dev/vignette/internal/traffic"
	"vignette.dev/vignette/internal/traffic/mqtttopic"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

const (
	defaultQueueMessages = 10_000
	defaultQueueBytes    = 64 << 20
	// retry is the time between attempts of a message without a connection, or without room in one.
	retry = 10 * time.Millisecond
	// closeTimeout is how long queues and protocols may finish: less than the mediators' 3 s of grace.
	closeTimeout = 2 * time.Second
)

// Serve is a program.Server: a mediator with the configuration file at path.
func Serve(ctx context.Context, path string) error {
	config, err := appinstance.ReadConfig[trafficconfig.Mediator](path)
	if err != nil {
		return err
	}
	return Run(ctx, config, traffic.Protocols, func(text string) {
		fmt.Fprintf(os.Stderr, "mediator %s: %s\n", config.Instance, text)
	})
}

// Run runs a mediator until ctx ends. protocols has the legs' protocols.
func Run(ctx context.Context, config trafficconfig.Mediator, protocols map[string]transport.Open, warn func(text string)) error {
	if err := config.Validate(); err != nil {
		return err
	}
	metrics := newMetrics(config.Instance)
	metrics.Serve(ctx, config.MetricsPort, warn)
	m := &mediator{}
	for i := range config.Legs {
		m.legs = append(m.legs, newLeg(config, i, metrics, warn))
	}
	defer m.close()
	for i, l := range m.legs {
		open, known := protocols[l.config.Protocol]
		if !known {
			return fmt.Errorf("legs[%d]: protocol %q: this program speaks %s", i, l.config.Protocol, strings.Join(slices.Sorted(maps.Keys(protocols)), ", "))
		}
		client, err := open(l.setup(config, i), m.events(l))
		if err != nil {
			return fmt.Errorf("legs[%d]: %w", i, err)
		}
		l.client = client
	}
	for _, l := range m.legs {
		m.writers.Go(l.write)
	}
	<-ctx.Done()
	return nil
}

type mediator struct {
	legs    []*leg
	writers sync.WaitGroup
}

// events returns the events of a leg's client. Messages that arrive before all legs exist wait in queues.
func (m *mediator) events(from *leg) transport.Events {
	return transport.Events{
		Sent:       func(_ time.Time, topic string, content []byte) { from.sent(topic, content) },
		Received:   func(at time.Time, topic string, content []byte) { m.received(from, at, topic, content) },
		Unsent:     from.unsent,
		Connection: from.connection,
		Dropped:    func(messages int) { from.metrics.dropped(droppedInSocket).Add(float64(messages)) },
	}
}

// received passes a message to all legs except the one that received it.
func (m *mediator) received(from *leg, at time.Time, topic string, content []byte) {
	if from.echoes.take(fingerprintOf(topic, content)) {
		from.metrics.own.Inc()
		return
	}
	bare, inside := strings.CutPrefix(topic, from.config.Prefix)
	if !inside || bare == "" {
		from.metrics.dropped(droppedOutside).Inc()
		return
	}
	from.metrics.received.Inc()
	content = bytes.Clone(content) // the client may reuse its buffer
	for _, to := range m.legs {
		if to == from {
			continue
		}
		topic := to.config.Prefix + bare
		if !to.queue.put(message{topic: topic, content: content, print: fingerprintOf(topic, content), at: at}) {
			to.metrics.dropped(droppedQueueFull).Inc()
		}
	}
}

// close waits a short time for queued messages.
func (m *mediator) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	for _, l := range m.legs {
		l.queue.close()
	}
	stop := context.AfterFunc(ctx, func() {
		for _, l := range m.legs {
			l.stopped.Store(true)
		}
	})
	m.writers.Wait()
	stop()
	for _, l := range m.legs {
		if l.client != nil {
			l.client.Close(ctx)
		}
		if waiting := l.queue.length(); waiting > 0 {
			l.metrics.dropped(droppedAtEnd).Add(float64(waiting))
			l.warn(fmt.Sprintf("%d messages were still waiting at the end", waiting))
		}
	}
}

// leg is a connection to one broker.
type leg struct {
	config trafficconfig.Leg
	// filters returns the leg's filters in the form of its broker.
	filters []string
	client  transport.Client
	queue   *queue
	echoes  *echoes
	metrics *legMetrics
	warn    func(text string)
	stopped atomic.Bool
	// refusal is why a message was last refused. Only write uses it.
	refusal string

	mu       sync.Mutex
	reported string
}

func newLeg(config trafficconfig.Mediator, i int, m *metrics, warn func(string)) *leg {
	messages, size := config.QueueMessages, config.QueueBytes
	if messages == 0 {
		messages = defaultQueueMessages
	}
	if size == 0 {
		size = defaultQueueBytes
	}
	name := config.Legs[i].Name
	l := &leg{config: config.Legs[i], queue: newQueue(messages, size), echoes: newEchoes(), warn: func(text string) { warn(name + ": " + text) }}
	for _, topic := range l.config.Topics {
		l.filters = append(l.filters, l.config.Prefix+topic)
	}
	l.metrics = m.leg(name, l.queue)
	return l
}

// setup returns that of the leg's client.
func (l *leg) setup(config trafficconfig.Mediator, i int) transport.Setup {
	return transport.Setup{
		Config: trafficconfig.Config{
			Instance: config.Instance, Protocol: l.config.Protocol, Version: l.config.Version, Broker: l.config.Broker, Security: l.config.Security,
			Transport: l.config.Transport, WSN: l.config.WSN, Seed: config.Seed + int64(i),
			Publish:   &trafficconfig.Publish{QoS: l.config.QoS},
			Subscribe: &trafficconfig.Subscribe{Topics: l.filters, QoS: l.config.QoS},
		},
		ClientID: fmt.Sprintf("%s:%d", strings.ReplaceAll(config.Instance, "/", ":"), i+1), Warn: l.warn,
	}
}

// connection logs changes, not every attempt.
func (l *leg) connection(up bool, reason string) {
	text := "not connected: " + reason
	if up {
		text = "connected"
		l.metrics.connections.Inc()
	}
	l.metrics.up(up)
	l.mu.Lock()
	changed := text != l.reported
	l.reported = text
	l.mu.Unlock()
	if changed {
		l.warn(text)
	}
}

// sent and unsent say what became of a message that the client took.
func (l *leg) sent(topic string, content []byte) {
	print := fingerprintOf(topic, content)
	l.metrics.sent.Inc()
	l.queue.release(print, len(content))
	l.echoes.sent(print)
}

func (l *leg) unsent(topic string, content []byte) {
	print := fingerprintOf(topic, content)
	l.metrics.dropped(droppedUnsent).Inc()
	l.queue.release(print, len(content))
	l.echoes.forget(print)
}

// write publishes the leg's queued messages, one after the other. A message waits for a connection.
func (l *leg) write() {
	for {
		m, ok := l.queue.take()
		if !ok || !l.publish(m) {
			return
		}
	}
}

// publish publishes a message; false if the mediator ended first.
func (l *leg) publish(m message) bool {
	back := mqtttopic.MatchAny(l.filters, m.topic)
	for !l.stopped.Load() {
		if back { // before publishing, as the echo may arrive before Publish returns
			l.echoes.add(m.print)
		}
		err := l.client.Publish(m.topic, m.content)
		if err == nil {
			l.metrics.published.Inc()
			l.metrics.transit.Observe(max(0, time.Since(m.at).Seconds()))
			return true
		}
		if back {
			l.echoes.forget(m.print)
		}
		if !errors.Is(err, transport.ErrNotConnected) && !errors.Is(err, transport.ErrNoRoom) {
			l.metrics.dropped(droppedRefused).Inc()
			l.queue.release(m.print, len(m.content))
			if why := err.Error(); why != l.refusal {
				l.refusal = why
				l.warn(fmt.Sprintf("a message of %d bytes on topic %q is refused, and perhaps others, which are only counted: %s", len(m.content), m.topic, why))
			}
			return true
		}
		time.Sleep(retry)
	}
	return false
}
