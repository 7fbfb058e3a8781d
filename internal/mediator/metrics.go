package mediator

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
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
	registry                                    *prometheus.Registry
	received, own, published, sent, connections *prometheus.CounterVec
	dropped                                     *prometheus.CounterVec
	connected                                   *prometheus.GaugeVec
	transit                                     *prometheus.HistogramVec
	register                                    promauto.Factory
}

// legMetrics are one leg's.
type legMetrics struct {
	received, own, published, sent, connections prometheus.Counter
	transit                                     prometheus.Observer
	connected                                   prometheus.Gauge
	drops                                       *prometheus.CounterVec
}

const namespace = "vignette_mediator"

func newMetrics(instance string) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	m.register = promauto.With(prometheus.WrapRegistererWith(prometheus.Labels{"instance": instance}, m.registry))
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return m.register.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, append([]string{"leg"}, labels...))
	}
	m.received = counter("messages_received_total", "Messages that came in on the leg and were passed to the others.")
	m.own = counter("messages_own_total", "Messages of the mediator itself that came back on the leg.")
	m.published = counter("messages_published_total", "Messages handed to the leg's protocol.")
	m.sent = counter("messages_sent_total", "Messages written to the leg's socket, repetitions included.")
	m.connections = counter("connections_total", "Connections made.")
	m.dropped = counter("messages_dropped_total", "Messages that were not passed on: queueFull, refused (by the protocol), end (waiting when the mediator ended), "+
		"unsent (at QoS 0, when the connection was lost) are of messages to the leg; outsidePrefix, socketBuffer of messages from it.", "reason")
	m.connected = m.register.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: "connected", Help: "1 with a connection, 0 without."}, []string{"leg"})
	m.transit = m.register.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: "transit_seconds",
		Help:    "From when a message came in on some leg to when it was handed to this leg's protocol.",
		Buckets: []float64{.0001, .0002, .0005, .001, .002, .005, .01, .1, 1, 10, 100}}, []string{"leg"})
	return m
}

// leg makes one leg's metrics, which all exist from the start.
func (m *metrics) leg(name string, q *queue) *legMetrics {
	m.register.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: "queue_messages", Help: "Messages that wait for the leg.",
		ConstLabels: prometheus.Labels{"leg": name}}, func() float64 { return float64(q.length()) })
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
