package traffic

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unsafe"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/traffic/payload"
	"vignette.dev/vignette/internal/traffic/transport"
)

// recorder writes events to the message log and metrics.
type recorder struct {
	instance, entity string
	log              *messagelog.Writer
	metrics          *metrics
	warn             func(text string)

	mu sync.Mutex
	// pending has messages that were triggered and may still be sent, and pendingBytes their size. ids maps their content's address to them:
	// most protocols pass the same content to Events.Sent, and reading the id from it would cost more than all else here.
	pending      map[string][]byte
	pendingBytes int
	ids          map[*byte]string
	up           bool
	reported     string
	// refusal is why a message was last refused.
	refusal string
	// broker of the last connection; ended: connections no longer matter.
	broker string
	ended  bool
	// connectedOnce is closed when a connection has begun for the first time.
	connectedOnce chan struct{}
}

func newRecorder(instance, entity string, log *messagelog.Writer, m *metrics, warn func(string)) *recorder {
	return &recorder{instance: instance, entity: entity, log: log, metrics: m, warn: warn, pending: map[string][]byte{}, ids: map[*byte]string{},
		connectedOnce: make(chan struct{})}
}

func (r *recorder) record(at time.Time, status messagelog.Status, id, topic string, bytes int) messagelog.Record {
	return messagelog.Record{TimeNanoseconds: at.UnixNano(), Instance: r.instance, Status: status, ID: id, Topic: topic, Bytes: bytes}
}

func (r *recorder) write(records ...messagelog.Record) {
	if err := r.log.Write(records...); err != nil {
		r.notLogged(err)
	}
}

func (r *recorder) notLogged(err error) {
	r.metrics.logErrors.Inc()
	r.warn("message log: " + err.Error())
}

// triggered logs a message that is due, before anything else happens to it.
func (r *recorder) triggered(at time.Time, id, topic string, content []byte, reported *[3]float64) {
	r.mu.Lock()
	r.pending[id], r.ids[unsafe.SliceData(content)] = content, id
	r.pendingBytes += len(content) + overhead
	r.mu.Unlock()
	record := r.record(at, messagelog.Triggered, id, topic, len(content))
	record.Position = reported
	r.write(record)
	r.metrics.triggered.Inc()
}

// refused records that the protocol will never send a message. It warns when the reason differs from that of the message before.
// A missing connection has a warning of its own, by the method connection.
func (r *recorder) refused(id string, err error) {
	why := transport.Words(err)
	r.mu.Lock()
	r.forget(id)
	told := errors.Is(err, transport.ErrNotConnected) || why == r.refusal
	if !told {
		r.refusal = why
	}
	r.mu.Unlock()
	r.metrics.unsent.Inc()
	if !told {
		r.warn(fmt.Sprintf("message %s is refused, and perhaps others, which are only counted: %s", id, why))
	}
}

// neverSent is a transport.Events.Unsent.
func (r *recorder) neverSent(_ string, content []byte) {
	r.mu.Lock()
	r.forget(r.idOf(content))
	r.mu.Unlock()
	r.metrics.unsent.Inc()
}

// idOf returns the id of a published message's content. The caller has the lock.
func (r *recorder) idOf(content []byte) string {
	if id, known := r.ids[unsafe.SliceData(content)]; known {
		return id
	}
	id, _ := payload.Parse(content)
	return id
}

// forget removes a pending message, and reports whether there was one. The caller has the lock.
func (r *recorder) forget(id string) bool {
	content, pending := r.pending[id]
	if pending {
		delete(r.pending, id)
		delete(r.ids, unsafe.SliceData(content))
		r.pendingBytes -= len(content) + overhead
	}
	return pending
}

// sent is a transport.Events.Sent. Only the first call for a message counts: others are repetitions.
func (r *recorder) sent(at time.Time, topic string, content []byte) {
	r.mu.Lock()
	id := r.idOf(content)
	first := r.forget(id)
	r.mu.Unlock()
	if !first {
		r.metrics.repeated.Inc()
		return
	}
	r.write(r.record(at, messagelog.Sent, id, topic, len(content)))
	r.metrics.sent.Inc()
}

const (
	// maxPending is the most bytes that wait. Protocols may take less, as most do at QoS 0.
	maxPending = 256 << 20
	// overhead is about a message's memory beside its content.
	overhead = 512
)

var errTooMuchWaits = fmt.Errorf("%d MiB of messages wait for the broker: the message is not sent", maxPending>>20)

// hasRoom reports whether the last triggered message may wait. One alone always may.
func (r *recorder) hasRoom() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pending) == 1 || r.pendingBytes <= maxPending
}

// unsent returns how many messages are still to be sent.
func (r *recorder) unsent() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pending)
}

// received is a transport.Events.Received. The message is processed once its id has been read. Both events are one
// write, to save the node's processor time.
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

// isOwn reports whether an id is of this instance's own messages.
func (r *recorder) isOwn(id string) bool {
	if r.entity == "" {
		return false
	}
	_, ok := messagelog.MessageNumber(r.entity, id)
	return ok
}

// connection is a transport.Events.Connection. It reports changes, not every attempt, and logs when a connection begins and
// when it is lost.
func (r *recorder) connection(up bool, reason string) {
	at := time.Now()
	r.mu.Lock()
	changed, turned := up != r.up || reason != r.reported, up != r.up
	r.up, r.reported = up, reason
	broker, ended := r.broker, r.ended
	if up {
		if r.broker == "" {
			close(r.connectedOnce)
		}
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

// noBroker stands for the broker in logs of protocols without one.
const noBroker = "none"

// end stops the logging of connections, as the instance is being stopped.
func (r *recorder) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
}

// period logs that the time between two messages changes now.
func (r *recorder) period(period time.Duration, why string) {
	r.metrics.period.Set(period.Seconds())
	r.write(messagelog.Record{TimeNanoseconds: time.Now().UnixNano(), Instance: r.instance, Status: messagelog.Period, ID: period.String(), Text: why})
}

func (r *recorder) dropped(messages int) {
	r.metrics.dropped.Add(float64(messages))
	r.warn("datagrams were dropped in this host's socket buffer: they count as lost, but not by the radio")
}
