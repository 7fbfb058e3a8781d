package messaging

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/traffic/payload"
	"vignette.dev/vignette/internal/traffic/request"
)

// recorder writes events to the message log and metrics.
type recorder struct {
	instance string
	log      *messagelog.Writer
	metrics  *metrics
	warn     func(string)

	mu sync.Mutex
	// told is why messages were never sent.
	told map[string]bool
}

func newRecorder(instance string, log *messagelog.Writer, warn func(string)) *recorder {
	return &recorder{instance: instance, log: log, metrics: newMetrics(instance), warn: warn, told: map[string]bool{}}
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

func (r *recorder) triggered(at time.Time, id, topic string, bytes int, reported *[3]float64) {
	record := r.record(at, messagelog.Triggered, id, topic, bytes)
	record.Position = reported
	r.write(record)
	r.metrics.triggered.Inc()
}

func (r *recorder) sent(at time.Time, id, topic string, bytes int) {
	r.write(r.record(at, messagelog.Sent, id, topic, bytes))
	r.metrics.sent.Inc()
}

func (r *recorder) retransmitted(at time.Time, id, topic string) {
	r.write(r.record(at, messagelog.Retransmitted, id, topic, 0))
	r.metrics.retransmitted.Inc()
}

func (r *recorder) receipt(at time.Time, id, topic string, bytes int) {
	r.write(r.record(at, messagelog.Receipt, id, topic, bytes))
	r.metrics.receipts.Inc()
}

// failed logs the failure of a request, with its reason first.
func (r *recorder) failed(at time.Time, id, topic string, err error) {
	record := r.record(at, messagelog.Failed, id, topic, 0)
	record.Text = err.Error()
	r.write(record)
	r.metrics.failed.WithLabelValues(string(request.ReasonOf(err))).Inc()
}

// neverSent logs and counts the failure of a request that never reached the socket. It warns of each reason once.
func (r *recorder) neverSent(at time.Time, id, topic string, err error) {
	r.metrics.unsent.Inc()
	r.failed(at, id, topic, err)
	why := err.Error()
	r.mu.Lock()
	told := r.told[why]
	r.told[why] = true
	r.mu.Unlock()
	if !told {
		r.warn(fmt.Sprintf("message %s is not sent, and perhaps others, which are only logged: %s", id, why))
	}
}

// received logs a message of another node, which has been processed too.
func (r *recorder) received(at, processed time.Time, id, topic string, bytes int, made time.Time) {
	r.write(r.record(at, messagelog.Received, id, topic, bytes), r.record(processed, messagelog.Processed, id, topic, bytes))
	r.metrics.received.Inc()
	if strings.HasPrefix(id, payload.Unknown) {
		r.metrics.unknown.Inc()
	}
	if !made.IsZero() {
		r.metrics.delay.Observe(max(0, at.Sub(made).Seconds()))
	}
}
