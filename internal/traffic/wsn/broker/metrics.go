package broker

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Reasons for dropped messages.
const (
	dropQueue   = "queue"
	dropEnded   = "ended"
	dropRefused = "refused"
)

// metrics are a broker's metrics.
type metrics struct {
	registry                                 *prometheus.Registry
	received, delivered, pulled, failures    prometheus.Counter
	dropped, rejected, ended                 *prometheus.CounterVec
	subscriptions, pullPoints, registrations prometheus.Gauge
	topics                                   prometheus.Gauge
}

func newMetrics(instance string, held, reading func() float64) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	register := promauto.With(prometheus.WrapRegistererWith(prometheus.Labels{"instance": instance}, m.registry))
	const namespace = "vignette_wsnbroker"
	counter := func(name, help string) prometheus.Counter {
		return register.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
	}
	counters := func(name, help string) *prometheus.CounterVec {
		return register.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, []string{"reason"})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return register.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
	}
	m.received = counter("messages_received_total", "NotificationMessages that publishers sent.")
	m.delivered = counter("messages_delivered_total", "NotificationMessages that consumers accepted, each time.")
	m.pulled = counter("messages_pulled_total", "NotificationMessages that were fetched from pull points.")
	m.failures = counter("delivery_failures_total", "Failed attempts to deliver; most are repeated.")
	m.dropped = counters("messages_dropped_total", "NotificationMessages that a subscriber did not get: queue full, subscription ended, refused by the consumer.")
	m.rejected = counters("requests_rejected_total", "Requests that were refused: malformed, fault, login, memory.")
	m.ended = counters("subscriptions_ended_total", "Subscriptions that ended: unsubscribed, expired, failed, gone.")
	m.subscriptions = gauge("subscriptions", "Subscriptions now.")
	m.pullPoints = gauge("pull_points", "Pull points now.")
	m.registrations = gauge("publisher_registrations", "Registered publishers now.")
	m.topics = gauge("topics", "Topics whose last message is kept.")
	register.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: "held_bytes", Help: "Bytes of messages that wait or are the last of their topic."}, held)
	register.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: "reading_bytes", Help: "Bytes of requests being read."}, reading)
	return m
}
