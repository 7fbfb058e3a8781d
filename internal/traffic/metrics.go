package traffic

import (
	"github.com/prometheus/client_golang/prometheus"

	"vignette.dev/vignette/internal/appinstance"
)

// metrics are those of one instance for live displays. Results come from the message log.
type metrics struct {
	appinstance.Metrics
	triggered, sent, unsent, repeated          prometheus.Counter
	received, own, unknown, dropped, logErrors prometheus.Counter
	connected, period                          prometheus.Gauge
	connections                                prometheus.Counter
	delay, lateness                            prometheus.Histogram
	delayBounds, latenessBounds                []float64
}

func newMetrics(instance string) *metrics {
	m := &metrics{Metrics: appinstance.NewMetrics("vignette_traffic", "instance", instance),
		delayBounds:    []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 50, 100, 200, 500},
		latenessBounds: []float64{.0001, .0002, .0005, .001, .002, .005, .01, .1, 1, 10, 100}}
	m.triggered = m.Counter("messages_triggered_total", "Messages that were due and made.")
	m.sent = m.Counter("messages_sent_total", "Messages handed to the socket, each once.")
	m.unsent = m.Counter("messages_unsent_total", "Messages that were refused or dropped, mostly for lack of a connection, and will never be sent.")
	m.repeated = m.Counter("messages_repeated_total", "Repetitions of messages by the protocol (QoS 1 and 2).")
	m.received = m.Counter("messages_received_total", "Messages received from other senders, duplicates included.")
	m.own = m.Counter("messages_own_total", "Messages of this instance itself that came back to it; they are not in the message log.")
	m.unknown = m.Counter("messages_unknown_total", "Received messages without an id, of foreign publishers.")
	m.dropped = m.Counter("messages_dropped_total", "Datagrams dropped in this host's own socket buffer.")
	m.logErrors = m.Counter("log_errors_total", "Records that could not be written to the message log.")
	m.connections = m.Counter("connections_total", "Connections made.")
	m.delay = m.Histogram("delay_seconds", "From when a message was made, as it says in milliseconds, to when it was received.", m.delayBounds...)
	m.lateness = m.Histogram("lateness_seconds", "From when a message was due to when it was made.", m.latenessBounds...)
	m.connected = m.Gauge("connected", "1 with a connection, 0 without.")
	m.period = m.Gauge("period_seconds", "Time between two messages of a publisher that adapts it to the radio, else 0.")
	return m
}
