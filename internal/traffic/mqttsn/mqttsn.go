// Package mqttsn describes MQTT-SN 1.2 to all programs. Client, gateway and packets are in its folders.
package mqttsn

import "vignette.dev/vignette/internal/traffic/protocol"

// QoSMinusOne is the QoS of messages without a connection.
const QoSMinusOne = -1

// Protocol has no port at IANA; its port is a common one. A message is one datagram.
var Protocol = protocol.Protocol{
	Name: "mqtt-sn", Server: "MQTT-SN gateway", Brokers: []string{"mqttsnGateway"}, Port: 1884, UDP: true,
	MinQoS: QoSMinusOne, MaxQoS: 2, MaxPayloadBytes: 65_000,
}

// ShortName returns the topic id of a two-character topic name; false for other lengths, and for filters.
func ShortName(topic string) (uint16, bool) {
	if len(topic) != 2 || topic[0] == '#' || topic[0] == '+' || topic[1] == '#' || topic[1] == '+' {
		return 0, false
	}
	return uint16(topic[0])<<8 | uint16(topic[1]), true
}

// LongName returns the topic of a short name's id.
func LongName(id uint16) string { return string([]byte{byte(id >> 8), byte(id)}) }
