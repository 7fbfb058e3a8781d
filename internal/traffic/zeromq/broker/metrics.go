package broker

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Sides of a broker.
const (
	publishers  = "publishers"
	subscribers = "subscribers"
)

type metrics struct {
	registry                                          *prometheus.Registry
	received, forwarded, filtered, dropped, malformed prometheus.Counter
	subscriptions                                     prometheus.Gauge
	connections                                       *prometheus.GaugeVec
}

func newMetrics(instance string) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	const namespace = "vignette_zeromq_broker"
	register := promauto.With(prometheus.WrapRegistererWith(prometheus.Labels{"instance": instance}, m.registry))
	counter := func(name, help string) prometheus.Counter {
		return register.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
	}
	m.received = counter("messages_received_total", "Messages from publishers.")
	m.forwarded = counter("messages_forwarded_total", "Messages handed to the library for the subscribers that want them.")
	m.filtered = counter("messages_filtered_total", "Messages from publishers by PGM that no subscriber wants; over TCP publishers do not send them.")
	m.dropped = counter("messages_dropped_total", "Messages for which the queue of a subscriber (TCP) or of the group (PGM) was full.")
	m.malformed = counter("messages_malformed_total", "Messages by PGM that are not topic and content.")
	m.subscriptions = register.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: "subscriptions",
		Help: "Different beginnings of topics that TCP's subscribers want."})
	m.connections = register.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: "connections",
		Help: "TCP connections of publishers and of subscribers."}, []string{"side"})
	return m
}
