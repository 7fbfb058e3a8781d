package gateway

import (
	"github.com/prometheus/client_golang/prometheus"

	"vignette.dev/vignette/internal/appinstance"
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
	appinstance.Metrics
	received, sent, dropped                 *prometheus.CounterVec
	fromClients, toClients, retransmissions prometheus.Counter
	refused, lost                           prometheus.Counter
	clients                                 *prometheus.GaugeVec
	topics, queued, queuedBytes             prometheus.Gauge
}

func newMetrics(gateway string) *metrics {
	m := &metrics{Metrics: appinstance.NewMetrics("vignette_mqttsn_gateway", "gateway", gateway)}
	m.received = m.Counters("packets_received_total", "MQTT-SN packets from clients, by type.", "type")
	m.sent = m.Counters("packets_sent_total", "MQTT-SN packets to clients, by type.", "type")
	m.dropped = m.Counters("dropped_total", "Packets and messages that were not passed on, by reason.", "reason")
	m.fromClients = m.Counter("messages_from_clients_total", "Messages passed from clients to the broker.")
	m.toClients = m.Counter("messages_to_clients_total", "Messages passed from the broker to clients, each once.")
	m.retransmissions = m.Counter("retransmissions_total", "Packets to clients that were repeated.")
	m.refused = m.Counter("clients_refused_total", "Connections that were refused as congestion.")
	m.lost = m.Counter("clients_lost_total", "Clients that fell silent.")
	m.topics = m.Gauge("topics", "Topic ids of all clients.")
	m.queued = m.Gauge("messages_queued", "Messages that wait for clients.")
	m.queuedBytes = m.Gauge("messages_queued_bytes", "Content of the messages that wait for clients.")
	m.clients = m.Gauges("clients", "Clients by state.", "state")
	return m
}
