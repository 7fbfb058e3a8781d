package traffic

import (
	"cmp"
	"strings"
	"sync"
	"time"
	"unsafe"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/traffic/payload"
)

// recorder turns what happens into the message log and metrics.
type recorder struct {
	instance, entity string
	log              *messagelog.Writer
	metrics          *metrics
	warn             func(text string)

	mu sync.Mutex
	// pending are messages that were triggered and may still be sent, each with where its content begins in memory; ids finds them by
	// that where a protocol hands the content itself to Events.Sent, as reading the id out of it costs more than all else here.
	pending map[string]*byte
	ids     map[*byte]string
	up      bool
	told    string
	// broker that there was a connection to; ended: none matters any more.
	broker string
	ended  bool
}

func newRecorder(instance, entity string, log *messagelog.Writer, m *metrics, warn func(string)) *recorder {
	return &recorder{instance: instance, entity: entity, log: log, metrics: m, warn: warn, pending: map[string]*byte{}, ids: map[*byte]string{}}
}

func (r *recorder) record(at time.Time, status messagelog.Status, id, topic string, bytes int) messagelog.Record {
	return messagelog.Record{TimeNanoseconds: at.UnixNano(), Instance: r.instance, Status: status, ID: id, Topic: topic, Bytes: bytes}
}

func (r *recorder) write(records ...messagelog.Record) {
	if err := r.log.Write(records...); err != nil {
		r.metrics.logErrors.Inc()
		r.warn("message log: " + err.Error())
	}
}

// triggered: a message is due; it is logged before anything is done with it.
func (r *recorder) triggered(at time.Time, id, topic string, content []byte) {
	begin := unsafe.SliceData(content)
	r.mu.Lock()
	r.pending[id], r.ids[begin] = begin, id
	r.mu.Unlock()
	r.write(r.record(at, messagelog.Triggered, id, topic, len(content)))
	r.metrics.triggered.Inc()
}

// refused: the protocol will never send a message.
func (r *recorder) refused(id string) {
	r.mu.Lock()
	r.forget(id)
	r.mu.Unlock()
	r.metrics.unsent.Inc()
}

// forget a pending message, and tell whether it was one. The caller has the lock.
func (r *recorder) forget(id string) bool {
	begin, pending := r.pending[id]
	if pending {
		delete(r.pending, id)
		delete(r.ids, begin)
	}
	return pending
}

// sent is a transport.Events.Sent. Only the first time counts: the rest are repetitions.
func (r *recorder) sent(at time.Time, topic string, content []byte) {
	r.mu.Lock()
	id, known := r.ids[unsafe.SliceData(content)]
	if !known {
		id, _ = payload.Parse(content)
	}
	first := r.forget(id)
	r.mu.Unlock()
	if !first {
		r.metrics.repeated.Inc()
		return
	}
	r.write(r.record(at, messagelog.Sent, id, topic, len(content)))
	r.metrics.sent.Inc()
}

// unsent tells how many messages are still to be sent.
func (r *recorder) unsent() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pending)
}

// received is a transport.Events.Received. The message is processed once its id has been read; both events are one
// write, as a subscriber is to take little of its node's processor time.
func (r *recorder) received(at time.Time, topic string, content []byte) {
	id, made := payload.Parse(content)
	processed := time.Now()
	if r.isOwn(id) {
		r.metrics.own.Inc()
		return
	}
	r.write(r.record(at, messagelog.Received, id, topic, len(content)), r.record(processed, messagelog.Processed, id, topic, len(content)))
	r.metrics.received.Inc()
	if strings.HasPrefix(id, payload.Unknown) {
		r.metrics.unknown.Inc()
	}
	if !made.IsZero() {
		r.metrics.delay.Observe(max(0, at.Sub(made).Seconds()))
	}
}

// isOwn tells whether an id is one that this instance gives its messages.
func (r *recorder) isOwn(id string) bool {
	if r.entity == "" {
		return false
	}
	_, ok := messageNumber(r.entity, id)
	return ok
}

// connection is a transport.Events.Connection. It tells people of changes, not of every attempt, and logs when there came to be a connection and
// when there was none any more.
func (r *recorder) connection(up bool, reason string) {
	at := time.Now()
	r.mu.Lock()
	changed, turned := up != r.up || reason != r.told, up != r.up
	r.up, r.told = up, reason
	broker, ended := r.broker, r.ended
	if up {
		broker = cmp.Or(reason, noBroker)
		r.broker = broker
	}
	r.mu.Unlock()
	switch {
	case ended:
	case up:
		r.metrics.connected.Set(1)
		r.metrics.connections.Inc()
		r.write(messagelog.Record{TimeNanoseconds: at.UnixNano(), Instance: r.instance, Status: messagelog.Connected, ID: broker})
	case turned:
		r.metrics.connected.Set(0)
		r.write(messagelog.Record{TimeNanoseconds: at.UnixNano(), Instance: r.instance, Status: messagelog.Disconnected, ID: broker, Text: reason})
	}
	switch {
	case !changed || ended:
	case up && reason != "":
		r.warn("connected to " + reason)
	case up:
		r.warn("connected")
	default:
		r.warn("not connected: " + reason)
	}
}

// subscription is a transport.Events.Subscription.
func (r *recorder) subscription(filter, refusal string) {
	r.mu.Lock()
	ended := r.ended
	r.mu.Unlock()
	if ended {
		return
	}
	status := messagelog.Subscribed
	if refusal != "" {
		status = messagelog.Refused
	}
	r.write(messagelog.Record{TimeNanoseconds: time.Now().UnixNano(), Instance: r.instance, Status: status, ID: filter, Text: refusal})
}

// noBroker is what the log has in the place of a broker for protocols without one.
const noBroker = "none"

// end tells that what becomes of the connection is of no interest any more: the instance is being ended.
func (r *recorder) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
}

// period: the time between two messages is another one from now on.
func (r *recorder) period(period time.Duration, why string) {
	r.metrics.period.Set(period.Seconds())
	r.write(messagelog.Record{TimeNanoseconds: time.Now().UnixNano(), Instance: r.instance, Status: messagelog.Period, ID: period.String(), Text: why})
}

func (r *recorder) dropped(messages int) {
	r.metrics.dropped.Add(float64(messages))
	r.warn("datagrams were dropped in this host's socket buffer: they count as lost, but not by the radio")
}
