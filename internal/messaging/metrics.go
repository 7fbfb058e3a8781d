package messaging

import (
	"github.com/prometheus/client_golang/prometheus"

	"vignette.dev/vignette/internal/appinstance"
	"vignette.dev/vignette/internal/traffic/request"
)

// metrics are those of one service for live displays. Results come from the message log. Names that clients of brokers have too mean the same.
type metrics struct {
	appinstance.Metrics
	triggered, sent, unsent, retransmitted, receipts prometheus.Counter
	received, unknown, logErrors                     prometheus.Counter
	failed                                           *prometheus.CounterVec
	delay, lateness                                  prometheus.Histogram
}

func newMetrics(instance string) *metrics {
	m := &metrics{Metrics: appinstance.NewMetrics("vignette_traffic", "instance", instance)}
	m.triggered = m.Counter("messages_triggered_total", "Messages that were due and made.")
	m.sent = m.Counter("messages_sent_total", "Messages handed to the socket, each once.")
	m.unsent = m.Counter("messages_unsent_total", "Messages that never reached the socket.")
	m.received = m.Counter("messages_received_total", "Messages received from other senders, duplicates included.")
	m.unknown = m.Counter("messages_unknown_total", "Received messages without an id, of foreign publishers.")
	m.logErrors = m.Counter("log_errors_total", "Records that could not be written to the message log.")
	m.receipts = m.Counter("requests_receipts_total", "Requests whose response came.")
	m.retransmitted = m.Counter("requests_retransmitted_total", "Retransmissions of requests by the protocol.")
	m.failed = m.Counters("requests_failed_total", "Requests that failed, by reason.", "reason")
	for _, reason := range request.Reasons {
		m.failed.WithLabelValues(string(reason))
	}
	m.delay = m.Histogram("delay_seconds", "From when a message was made, as it says in milliseconds, to when it was received.",
		.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
	m.lateness = m.Histogram("lateness_seconds", "From when a message was due to when it was made.", .0001, .0002, .0005, .001, .002, .005, .01, .1, 1, 10, 100)
	return m
}
