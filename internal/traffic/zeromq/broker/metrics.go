package broker

import "github.com/prometheus/client_golang/prometheus"

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
	label := prometheus.Labels{"instance": instance}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help, ConstLabels: label})
		m.registry.MustRegister(c)
		return c
	}
	m.received = counter("messages_received_total", "Messages from publishers.")
	m.forwarded = counter("messages_forwarded_total", "Messages handed to the library for the subscribers that want them.")
	m.filtered = counter("messages_filtered_total", "Messages from publishers by PGM that no subscriber wants; over TCP publishers do not send them.")
	m.dropped = counter("messages_dropped_total", "Messages for which the queue of a subscriber (TCP) or of the group (PGM) was full.")
	m.malformed = counter("messages_malformed_total", "Messages by PGM that are not topic and content.")
	m.subscriptions = prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: "subscriptions", ConstLabels: label,
		Help: "Different beginnings of topics that TCP's subscribers want."})
	m.connections = prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: "connections", ConstLabels: label,
		Help: "TCP connections of publishers and of subscribers."}, []string{"side"})
	m.registry.MustRegister(m.subscriptions, m.connections)
	return m
}
