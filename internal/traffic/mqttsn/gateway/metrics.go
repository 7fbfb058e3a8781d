package gateway

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Reasons for dropping a packet.
const (
	dropMalformed   = "malformed"
	dropUnexpected  = "unexpected"
	dropSendQueue   = "sendQueue"
	dropClientQueue = "clientQueue"
	dropBroker      = "broker"
	dropTopic       = "topic"
	dropTooLarge    = "tooLarge"
	dropClientLost  = "clientLost"
)

type metrics struct {
	registry                                *prometheus.Registry
	received, sent, dropped                 *prometheus.CounterVec
	fromClients, toClients, retransmissions prometheus.Counter
	refused, lost                           prometheus.Counter
	clients                                 *prometheus.GaugeVec
	topics, queued, queuedBytes             prometheus.Gauge
}

func newMetrics(gateway string) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	register := promauto.With(prometheus.WrapRegistererWith(prometheus.Labels{"gateway": gateway}, m.registry))
	counter := func(name, help string) prometheus.Counter {
		return register.NewCounter(prometheus.CounterOpts{Namespace: "vignette_mqttsn_gateway", Name: name, Help: help})
	}
	vector := func(name, help, by string) *prometheus.CounterVec {
		return register.NewCounterVec(prometheus.CounterOpts{Namespace: "vignette_mqttsn_gateway", Name: name, Help: help}, []string{by})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return register.NewGauge(prometheus.GaugeOpts{Namespace: "vignette_mqttsn_gateway", Name: name, Help: help})
	}
	m.received = vector("packets_received_total", "MQTT-SN packets from clients, by type.", "type")
	m.sent = vector("packets_sent_total", "MQTT-SN packets to clients, by type.", "type")
	m.dropped = vector("dropped_total", "Packets and messages that were not passed on, by reason.", "reason")
	m.fromClients = counter("messages_from_clients_total", "Messages passed from clients to the broker.")
	m.toClients = counter("messages_to_clients_total", "Messages passed from the broker to clients, each once.")
	m.retransmissions = counter("retransmissions_total", "Packets to clients that were repeated.")
	m.refused = counter("clients_refused_total", "Connections that were refused as congestion.")
	m.lost = counter("clients_lost_total", "Clients that fell silent.")
	m.topics = gauge("topics", "Topic ids of all clients.")
	m.queued = gauge("messages_queued", "Messages that wait for clients.")
	m.queuedBytes = gauge("messages_queued_bytes", "Content of the messages that wait for clients.")
	m.clients = register.NewGaugeVec(prometheus.GaugeOpts{Namespace: "vignette_mqttsn_gateway", Name: "clients", Help: "Clients by state."}, []string{"state"})
	return m
}
