package mediator

import (
	"github.com/prometheus/client_golang/prometheus"

	"vignette.dev/vignette/internal/appinstance"
)

// Reasons of messages that a leg does not publish, or receives and does not pass on.
const (
	droppedQueueFull = "queueFull"
	droppedRefused   = "refused"
	droppedOutside   = "outsidePrefix"
	droppedInSocket  = "socketBuffer"
	droppedAtEnd     = "end"
	droppedUnsent    = "unsent"
)

// metrics are a mediator's, by leg.
type metrics struct {
	appinstance.Metrics
	received, own, published, sent, connections *prometheus.CounterVec
	dropped                                     *prometheus.CounterVec
	connected                                   *prometheus.GaugeVec
	transit                                     *prometheus.HistogramVec
}

// legMetrics are one leg's.
type legMetrics struct {
	received, own, published, sent, connections prometheus.Counter
	transit                                     prometheus.Observer
	connected                                   prometheus.Gauge
	drops                                       *prometheus.CounterVec
}

func newMetrics(instance string) *metrics {
	m := &metrics{Metrics: appinstance.NewMetrics("vignette_mediator", "instance", instance)}
	m.received = m.Counters("messages_received_total", "Messages that came in on the leg and were passed to the others.", "leg")
	m.own = m.Counters("messages_own_total", "Messages of the mediator itself that came back on the leg.", "leg")
	m.published = m.Counters("messages_published_total", "Messages handed to the leg's protocol.", "leg")
	m.sent = m.Counters("messages_sent_total", "Messages written to the leg's socket, repetitions included.", "leg")
	m.connections = m.Counters("connections_total", "Connections made.", "leg")
	m.dropped = m.Counters("messages_dropped_total", "Messages that were not passed on: queueFull, refused (by the protocol), end (waiting when the mediator ended), "+
		"unsent (at QoS 0, when the connection was lost) are of messages to the leg; outsidePrefix, socketBuffer of messages from it.", "leg", "reason")
	m.connected = m.Gauges("connected", "1 with a connection, 0 without.", "leg")
	m.transit = m.Histograms("transit_seconds", "From when a message came in on some leg to when it was handed to this leg's protocol.",
		[]float64{.0001, .0002, .0005, .001, .002, .005, .01, .1, 1, 10, 100}, "leg")
	return m
}

// leg makes one leg's metrics, which all exist from the start.
func (m *metrics) leg(name string, q *queue) *legMetrics {
	m.GaugeFunc("queue_messages", "Messages that wait for the leg.", prometheus.Labels{"leg": name}, func() float64 { return float64(q.length()) })
	l := &legMetrics{
		received: m.received.WithLabelValues(name), own: m.own.WithLabelValues(name), published: m.published.WithLabelValues(name),
		sent: m.sent.WithLabelValues(name), connections: m.connections.WithLabelValues(name), connected: m.connected.WithLabelValues(name),
		transit: m.transit.WithLabelValues(name), drops: m.dropped.MustCurryWith(prometheus.Labels{"leg": name}),
	}
	for _, reason := range []string{droppedQueueFull, droppedRefused, droppedOutside, droppedInSocket, droppedAtEnd, droppedUnsent} {
		l.dropped(reason)
	}
	return l
}

func (l *legMetrics) dropped(reason string) prometheus.Counter {
	return l.drops.WithLabelValues(reason)
}

func (l *legMetrics) up(up bool) {
	if up {
		l.connected.Set(1)
		return
	}
	l.connected.Set(0)
}
