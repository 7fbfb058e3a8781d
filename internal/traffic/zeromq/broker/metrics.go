package broker

import (
	"github.com/prometheus/client_golang/prometheus"

	"vignette.dev/vignette/internal/appinstance"
)

// Sides of a broker.
const (
	publishers  = "publishers"
	subscribers = "subscribers"
)

type metrics struct {
	appinstance.Metrics
	received, forwarded, filtered, dropped, malformed prometheus.Counter
	subscriptions                                     prometheus.Gauge
	connections                                       *prometheus.GaugeVec
}

func newMetrics(instance string) *metrics {
	m := &metrics{Metrics: appinstance.NewMetrics("vignette_zeromq_broker", "instance", instance)}
	m.received = m.Counter("messages_received_total", "Messages from publishers.")
	m.forwarded = m.Counter("messages_forwarded_total", "Messages handed to the library for the subscribers that want them.")
	m.filtered = m.Counter("messages_filtered_total", "Messages from publishers by PGM that no subscriber wants; over TCP publishers do not send them.")
	m.dropped = m.Counter("messages_dropped_total", "Messages for which the queue of a subscriber (TCP) or of the group (PGM) was full.")
	m.malformed = m.Counter("messages_malformed_total", "Messages by PGM that are not topic and content.")
	m.subscriptions = m.Gauge("subscriptions", "Different beginnings of topics that TCP's subscribers want.")
	m.connections = m.Gauges("connections", "TCP connections of publishers and of subscribers.", "side")
	return m
}
