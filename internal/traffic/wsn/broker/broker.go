package broker

import (
	"container/list"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/traffic/wsn"
	"vignette.dev/vignette/internal/traffic/wsn/wire"
	"vignette.dev/vignette/internal/wording"
)

// Broker is a broker of notifications. It is an http.Handler.
type Broker struct {
	config             wsn.BrokerConfig
	limits             wsn.Limits
	username, password string
	metrics            *metrics
	// tls is for consumers with https addresses; nil without certificates.
	tls  *tls.Config
	ctx  context.Context
	stop context.CancelFunc
	now  func() time.Time
	// stall is how long each piece of a request or response may take.
	stall time.Duration
	// held counts the bytes of kept messages, reading those of requests being read.
	held, reading atomic.Int64

	mu            sync.RWMutex
	subscriptions map[string]*subscription
	pullPoints    map[string]*pullPoint
	registrations map[string]time.Time // the end of each; zero for never
	// The last message of each topic, and the topics in the order of their latest message.
	last  map[string]*list.Element
	order *list.List
}

type lastMessage struct {
	key string
	*message
}

// New returns a broker.
func New(config wsn.BrokerConfig) (*Broker, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	b := &Broker{config: config, limits: config.Limits.WithDefaults(), now: time.Now, stall: stallTimeout,
		subscriptions: map[string]*subscription{}, pullPoints: map[string]*pullPoint{}, registrations: map[string]time.Time{}, last: map[string]*list.Element{}, order: list.New()}
	b.metrics = newMetrics(config.Instance, func() float64 { return float64(b.held.Load()) }, func() float64 { return float64(b.reading.Load()) })
	var err error
	if b.username, b.password, err = transport.ReadLogin(config.UsernameFile, config.PasswordFile); err != nil {
		return nil, err
	}
	if config.CAFile != "" {
		text, err := wording.ReadFile(config.CAFile)
		if err != nil {
			return nil, fmt.Errorf("caFile: %w", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("caFile: %s has no certificate: want PEM", config.CAFile)
		}
		b.tls = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b, nil
}

// newID returns a name that no other broker has used. References from before a restart are therefore unknown.
func newID() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails, by its documentation
	return hex.EncodeToString(id[:])
}

// publish queues messages for all matching subscriptions, in the order of arrival.
func (b *Broker) publish(notifications []wire.NotificationMessage) error {
	var messages []*message
	var size int64
	for _, n := range notifications {
		m := &message{topic: n.Topic, producer: n.Producer, content: append([]byte(nil), n.Message...), held: &b.held}
		if n.Topic.Dialect != "" {
			var err error
			if m.names, err = n.Topic.Topic(); err != nil {
				return err
			}
		}
		size += m.size()
		messages = append(messages, m)
	}
	if err := b.makeRoom(size); err != nil {
		return err
	}
	b.metrics.received.Add(float64(len(messages)))
	for _, m := range messages {
		b.keep(m)
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, m := range messages {
		for _, s := range b.subscriptions {
			if s.matches(m) && !s.push(m) {
				b.metrics.dropped.WithLabelValues(dropQueue).Inc()
			}
		}
	}
	return nil
}

// keep stores a message as the last one of its topic.
func (b *Broker) keep(m *message) {
	if m.names == nil {
		return
	}
	key := m.names.Key()
	b.mu.Lock()
	defer b.mu.Unlock()
	m.hold()
	if e, known := b.last[key]; known {
		e.Value.(*lastMessage).release()
		e.Value = &lastMessage{key, m}
		b.order.MoveToBack(e)
		return
	}
	for b.order.Len() >= b.limits.Topics {
		b.forget(b.order.Front())
	}
	b.last[key] = b.order.PushBack(&lastMessage{key, m})
	b.metrics.topics.Set(float64(b.order.Len()))
}

// makeRoom makes room for messages of a size. Last messages go first, but for those in queues too, which would free nothing.
func (b *Broker) makeRoom(size int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	most := int64(b.limits.HeldMiB) << 20
	for next := b.order.Front(); b.held.Load()+size > most; {
		if next == nil || size > most {
			return &wire.Fault{Kind: wire.ServerBusy, Reason: fmt.Sprintf("%d MiB of messages are held: want fewer, or consumers that take them", b.limits.HeldMiB)}
		}
		oldest := next
		if next = next.Next(); oldest.Value.(*lastMessage).holders.Load() == 1 {
			b.forget(oldest)
		}
	}
	return nil
}

// forget forgets the last message of a topic. The broker is locked.
func (b *Broker) forget(e *list.Element) {
	last := b.order.Remove(e).(*lastMessage)
	last.release()
	delete(b.last, last.key)
	b.metrics.topics.Set(float64(b.order.Len()))
}

// current returns the content of a topic's last message.
func (b *Broker) current(topic wire.Topic) ([]byte, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	e, ok := b.last[topic.Key()]
	if !ok {
		return nil, false
	}
	return e.Value.(*lastMessage).content, true
}

// expireAt removes everything whose termination time has passed.
func (b *Broker) expireAt(now time.Time) {
	var subscriptions, pullPoints []string
	b.mu.Lock()
	for id, s := range b.subscriptions {
		if s.expired(now) {
			subscriptions = append(subscriptions, id)
		}
	}
	for id, p := range b.pullPoints {
		if now.Sub(p.used()) > pullPointIdle {
			pullPoints = append(pullPoints, id)
		}
	}
	for id, end := range b.registrations {
		if !end.IsZero() && !now.Before(end) {
			delete(b.registrations, id)
		}
	}
	b.metrics.registrations.Set(float64(len(b.registrations)))
	b.mu.Unlock()
	for _, id := range subscriptions {
		b.endSubscription(id, "expired")
	}
	for _, id := range pullPoints {
		b.endPullPoint(id)
	}
}

func (b *Broker) endSubscription(id, reason string) {
	b.mu.Lock()
	s, ok := b.subscriptions[id]
	delete(b.subscriptions, id)
	b.metrics.subscriptions.Set(float64(len(b.subscriptions)))
	b.mu.Unlock()
	if ok {
		b.metrics.ended.WithLabelValues(reason).Inc()
		b.metrics.dropped.WithLabelValues(dropEnded).Add(float64(s.end()))
	}
}

// endPullPoint ends the pull point's subscriptions too.
func (b *Broker) endPullPoint(id string) bool {
	var subscriptions []string
	b.mu.Lock()
	p, ok := b.pullPoints[id]
	delete(b.pullPoints, id)
	b.metrics.pullPoints.Set(float64(len(b.pullPoints)))
	for name, s := range b.subscriptions {
		if ok && s.pullPoint == p {
			subscriptions = append(subscriptions, name)
		}
	}
	b.mu.Unlock()
	for _, name := range subscriptions {
		b.endSubscription(name, "gone")
	}
	if ok {
		b.metrics.dropped.WithLabelValues(dropEnded).Add(float64(p.queue.end()))
	}
	return ok
}
