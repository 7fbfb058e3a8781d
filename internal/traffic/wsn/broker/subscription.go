package broker

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/soap"
	"vignette.dev/vignette/internal/traffic/wsn/wire"
)

const (
	// deliveryTimeout is the timeout to connect and for a response. Links of 9.8 kbit/s with full queues need most of it.
	deliveryTimeout = time.Minute
	firstBackoff    = 100 * time.Millisecond
	lastBackoff     = 10 * time.Second
	// keepIdle is how long an idle connection to a consumer is kept.
	keepIdle = 2 * time.Minute
)

// subscription is a subscription of a consumer or of a pull point.
type subscription struct {
	id string
	// reference is the subscription's reference in the answer to the consumer.
	reference soap.EPR
	filters   []wire.Filter
	// pullPoint receives the messages, if set; else they are queued here and posted to the consumer.
	pullPoint *pullPoint
	queue     *queue
	consumer  soap.EPR
	endpoint  wire.Endpoint
	soap      soap.Version
	cancel    context.CancelFunc

	mu          sync.Mutex
	paused      bool
	termination time.Time // zero for never
}

// matches reports whether all filters match; none match everything.
func (s *subscription) matches(m *message) bool {
	return !slices.ContainsFunc(s.filters, func(f wire.Filter) bool { return !f.Match(m.names) })
}

func (s *subscription) push(m *message) bool {
	i := item{m, s.reference}
	if s.pullPoint != nil {
		return s.pullPoint.queue.push(i)
	}
	return s.queue.push(i)
}

func (s *subscription) expired(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.termination.IsZero() && !now.Before(s.termination)
}

func (s *subscription) setTermination(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.termination = at
}

func (s *subscription) setPaused(paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = paused
	if s.queue != nil {
		s.queue.wake.Ring()
	}
}

func (s *subscription) isPaused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paused
}

// end stops deliveries and returns the number of queued messages.
func (s *subscription) end() int {
	if s.pullPoint != nil {
		return 0
	}
	s.cancel()
	return s.queue.end()
}

// deliver posts messages to the consumer in order, until the subscription ends. It repeats a message until it is accepted.
func (b *Broker) deliver(ctx context.Context, s *subscription) {
	d := delivery{broker: b, subscription: s}
	defer d.close()
	failures := 0
	for {
		i, ok := d.next(ctx)
		if !ok {
			return
		}
		response, err := d.post(ctx, i)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && response.Accepted():
			s.queue.take(1, 0)
			b.metrics.delivered.Inc()
			failures = 0
			continue
		case err == nil && response.Status == http.StatusGone:
			b.endSubscription(s.id, "gone")
			return
		case err == nil && refusesMessage(response.Status):
			s.queue.take(1, 0)
			b.metrics.dropped.WithLabelValues(dropRefused).Inc()
			failures = 0
			continue
		}
		b.metrics.failures.Inc()
		if failures++; failures >= b.limits.Failures {
			b.endSubscription(s.id, "failed")
			return
		}
		if !clock.Pause(ctx, min(firstBackoff<<min(failures-1, 10), lastBackoff)) {
			return
		}
	}
}

// refusesMessage reports whether a status means that repeating the message would not help.
func refusesMessage(status int) bool {
	return status >= 400 && status < 500 && status != http.StatusNotFound && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests
}

// delivery has the connection to a consumer.
type delivery struct {
	broker       *Broker
	subscription *subscription
	conn         *wire.Conn
}

func (d *delivery) close() {
	if d.conn != nil {
		d.conn.Close()
		d.conn = nil
	}
}

// next waits for a message. It closes the connection when it is idle for long or the consumer closes it.
func (d *delivery) next(ctx context.Context) (item, bool) {
	s := d.subscription
	idle := time.NewTimer(keepIdle)
	defer idle.Stop()
	for {
		if i, ok := s.queue.first(); ok && !s.isPaused() && ctx.Err() == nil {
			return i, true
		}
		var closed <-chan struct{}
		if d.conn != nil {
			closed = d.conn.Closed()
		}
		select {
		case <-ctx.Done():
			return item{}, false
		case <-s.queue.wake:
		case <-closed:
			d.close()
		case <-idle.C:
			d.close()
		}
	}
}

func (d *delivery) post(ctx context.Context, i item) (wire.Response, error) {
	s := d.subscription
	if d.conn == nil {
		conn, err := d.broker.dial(ctx, s.endpoint)
		if err != nil {
			return wire.Response{}, err
		}
		d.conn = wire.NewConn(conn, deliveryTimeout)
	}
	envelope := wire.Envelope(s.soap, soap.Header{Action: wire.ActionNotify, MessageID: soap.NewMessageID(), To: s.consumer}, wire.NotifyBody(i.notification()))
	response, err := d.conn.Post(ctx, wire.Request{Host: s.endpoint.Host, Path: s.endpoint.Path, SOAP: s.soap, Action: wire.ActionNotify, Message: envelope})
	if err != nil {
		d.close()
	}
	return response, err
}

// dial connects to a consumer, without a proxy from the environment.
func (b *Broker) dial(ctx context.Context, e wire.Endpoint) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: deliveryTimeout, KeepAlive: -1} // it would load the network
	if !e.Secure {
		return dialer.DialContext(ctx, "tcp", e.Host)
	}
	if b.tls == nil {
		return nil, fmt.Errorf("consumer %s: there are no certificates to check its own against", e.Host)
	}
	return (&tls.Dialer{NetDialer: dialer, Config: b.tls}).DialContext(ctx, "tcp", e.Host)
}

// pullPointIdle is how long a pull point lives without a GetMessages.
const pullPointIdle = time.Hour

// pullPoint keeps messages until they are fetched.
type pullPoint struct {
	queue *queue
	mu    sync.Mutex
	last  time.Time
}

func (p *pullPoint) used() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

func (p *pullPoint) use(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = now
}

// Limits of one GetMessagesResponse. Its messages are out of the pull point, so a response that gets lost loses them all.
// In base64 it takes 36 s at 9.8 kbit/s, and clients give up after a minute. The next request follows at once.
const (
	maxPulled      = 1000
	maxPulledBytes = 32 << 10
)

// get waits for messages up to a time, and returns at most so many.
func (p *pullPoint) get(ctx context.Context, most int, wait time.Duration) []item {
	if most == 0 {
		most = maxPulled
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		if taken := p.queue.take(min(most, maxPulled), maxPulledBytes); len(taken) > 0 || wait == 0 {
			return taken
		}
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			return nil
		case <-p.queue.wake:
			if p.queue.isEnded() {
				return nil
			}
		}
	}
}

func (q *queue) isEnded() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ended
}
