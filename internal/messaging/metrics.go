package messaging

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"vignette.dev/vignette/internal/traffic/request"
)

// metrics are those of one service for live displays. Results come from the message log. Names that clients of brokers have too mean the same.
type metrics struct {
	registry                                         *prometheus.Registry
	triggered, sent, unsent, retransmitted, receipts prometheus.Counter
	received, unknown, logErrors                     prometheus.Counter
	failed                                           *prometheus.CounterVec
	delay, lateness                                  prometheus.Histogram
}

func newMetrics(instance string) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	register := promauto.With(prometheus.WrapRegistererWith(prometheus.Labels{"instance": instance}, m.registry))
	counter := func(name, help string) prometheus.Counter {
		return register.NewCounter(prometheus.CounterOpts{Namespace: "vignette_traffic", Name: name, Help: help})
	}
	histogram := func(name, help string, bounds ...float64) prometheus.Histogram {
		return register.NewHistogram(prometheus.HistogramOpts{Namespace: "vignette_traffic", Name: name, Help: help, Buckets: bounds})
	}
	m.triggered = counter("messages_triggered_total", "Messages that were due and made.")
	m.sent = counter("messages_sent_total", "Messages handed to the socket, each once.")
	m.unsent = counter("messages_unsent_total", "Messages that never reached the socket.")
	m.received = counter("messages_received_total", "Messages received from other senders, duplicates included.")
	m.unknown = counter("messages_unknown_total", "Received messages without an id, of foreign publishers.")
	m.logErrors = counter("log_errors_total", "Records that could not be written to the message log.")
	m.receipts = counter("requests_receipts_total", "Requests whose response came.")
	m.retransmitted = counter("requests_retransmitted_total", "Retransmissions of requests by the protocol.")
	m.failed = register.NewCounterVec(prometheus.CounterOpts{Namespace: "vignette_traffic", Name: "requests_failed_total", Help: "Requests that failed, by reason."}, []string{"reason"})
	for _, reason := range request.Reasons {
		m.failed.WithLabelValues(string(reason))
	}
	m.delay = histogram("delay_seconds", "From when a message was made, as it says in milliseconds, to when it was received.",
		.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
	m.lateness = histogram("lateness_seconds", "From when a message was due to when it was made.", .0001, .0002, .0005, .001, .002, .005, .01, .1, 1, 10, 100)
	return m
}
