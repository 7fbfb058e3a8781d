package broker

import (
	"github.com/prometheus/client_golang/prometheus"

	"vignette.dev/vignette/internal/appinstance"
)

// Reasons for dropped messages.
const (
	dropQueue   = "queue"
	dropEnded   = "ended"
	dropRefused = "refused"
)

// metrics are a broker's metrics.
type metrics struct {
	appinstance.Metrics
	received, delivered, pulled, failures    prometheus.Counter
	dropped, rejected, ended                 *prometheus.CounterVec
	subscriptions, pullPoints, registrations prometheus.Gauge
	topics                                   prometheus.Gauge
}

func newMetrics(instance string, held, reading func() float64) *metrics {
	m := &metrics{Metrics: appinstance.NewMetrics("vignette_wsnbroker", "instance", instance)}
	m.received = m.Counter("messages_received_total", "NotificationMessages that publishers sent.")
	m.delivered = m.Counter("messages_delivered_total", "NotificationMessages that consumers accepted, each time.")
	m.pulled = m.Counter("messages_pulled_total", "NotificationMessages that were fetched from pull points.")
	m.failures = m.Counter("delivery_failures_total", "Failed attempts to deliver; most are repeated.")
	m.dropped = m.Counters("messages_dropped_total", "NotificationMessages that a subscriber did not get: queue full, subscription ended, refused by the consumer.", "reason")
	m.rejected = m.Counters("requests_rejected_total", "Requests that were refused: malformed, fault, login, memory, size, cut (off before its end).", "reason")
	m.ended = m.Counters("subscriptions_ended_total", "Subscriptions that ended: unsubscribed, expired, failed, gone.", "reason")
	m.subscriptions = m.Gauge("subscriptions", "Subscriptions now.")
	m.pullPoints = m.Gauge("pull_points", "Pull points now.")
	m.registrations = m.Gauge("publisher_registrations", "Registered publishers now.")
	m.topics = m.Gauge("topics", "Topics whose last message is kept.")
	m.GaugeFunc("held_bytes", "Bytes of messages that wait or are the last of their topic.", nil, held)
	m.GaugeFunc("reading_bytes", "Bytes of requests being read.", nil, reading)
	return m
}
