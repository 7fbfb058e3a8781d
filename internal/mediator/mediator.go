// Package mediator passes messages between brokers of different protocols. Each leg is a client of one broker: what comes in on a leg
// goes out on all others, byte for byte and in its order, under its topic without this leg's prefix and with theirs.
//
// A broker gives a message to all who subscribe, its publisher among them, so what goes out on a leg comes in on it again if the leg
// subscribes to it. Such echoes are reported from messages of others by their topic and content: see echoes.
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
	"vignette.dev/vignette/internal/traffic/mqttwire"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

const (
	defaultQueueMessages = 10_000
	defaultQueueBytes    = 64 << 20
	// retry is the time between two attempts of a message for which there is no connection, or no room in one.
	retry = 10 * time.Millisecond
	// closeTimeout is what queues and protocols get for what is outstanding; less than the 3 s of grace that mediators have.
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

// Run is a mediator until ctx ends. protocols are those that legs may have.
func Run(ctx context.Context, config trafficconfig.Mediator, protocols map[string]transport.Open, warn func(text string)) error {
	if err := config.Validate(); err != nil {
		return err
	}
	metrics := newMetrics(config.Instance)
	if err := appinstance.ServeMetrics(ctx, metrics.registry, config.MetricsPort); err != nil {
		warn(err.Error() + ": no metrics are served")
	}
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
		m.writers.Add(1)
		go func() {
			defer m.writers.Done()
			l.write()
		}()
	}
	<-ctx.Done()
	return nil
}

type mediator struct {
	legs    []*leg
	writers sync.WaitGroup
}

// events of a leg's client. They may come before all legs are there: what comes in waits in queues.
func (m *mediator) events(from *leg) transport.Events {
	return transport.Events{
		Sent:       func(time.Time, string, []byte) { from.metrics.sent.Inc() },
		Received:   func(at time.Time, topic string, content []byte) { m.received(from, at, topic, content) },
		Connection: from.connection,
		Dropped:    func(messages int) { from.metrics.dropped(droppedInSocket).Add(float64(messages)) },
	}
}

// received passes a message on to all legs but the one that it came from.
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
	content = bytes.Clone(content) // the client may use its buffer again
	for _, to := range m.legs {
		if to != from && !to.queue.put(message{topic: to.config.Prefix + bare, content: content, at: at}) {
			to.metrics.dropped(droppedQueueFull).Inc()
		}
	}
}

// close gives what waits a short time to go out.
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
		if waiting := l.queue.length(); waiting > 0 {
			l.metrics.dropped(droppedAtEnd).Add(float64(waiting))
			l.warn(fmt.Sprintf("%d messages were still waiting at the end", waiting))
		}
		if l.client != nil {
			l.client.Close(ctx)
		}
	}
}

// leg is the connection to one broker.
type leg struct {
	config trafficconfig.Leg
	// filters of what the leg subscribes to, as its broker has it.
	filters []string
	client  transport.Client
	queue   *queue
	echoes  *echoes
	metrics *legMetrics
	warn    func(text string)
	stopped atomic.Bool

	mu   sync.Mutex
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

// setup of the leg's client.
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

// connection tells people of changes, not of every attempt.
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

// write publishes what waits for the leg, one message after the other. A message for which there is no connection waits for one.
func (l *leg) write() {
	for {
		m, ok := l.queue.first()
		if !ok || !l.publish(m) {
			return
		}
		l.queue.drop()
	}
}

// publish a message; false where the mediator ended before it could.
func (l *leg) publish(m message) bool {
	print := fingerprintOf(m.topic, m.content)
	back := slices.ContainsFunc(l.filters, func(f string) bool { return mqttwire.Match(f, m.topic) })
	for !l.stopped.Load() {
		if back { // before it goes out, as it may be back before Publish returns
			l.echoes.add(print)
		}
		err := l.client.Publish(m.topic, m.content)
		if err == nil {
			l.metrics.published.Inc()
			l.metrics.transit.Observe(max(0, time.Since(m.at).Seconds()))
			return true
		}
		if back {
			l.echoes.forget(print)
		}
		if !errors.Is(err, transport.ErrNotConnected) && !errors.Is(err, transport.ErrNoRoom) {
			l.metrics.dropped(droppedRefused).Inc()
			l.warn(fmt.Sprintf("message of %d bytes on topic %q: %v", len(m.content), m.topic, err))
			return true
		}
		time.Sleep(retry)
	}
	return false
}
