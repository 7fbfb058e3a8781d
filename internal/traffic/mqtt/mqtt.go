// Package mqtt describes MQTT to all programs. Its client, of 3.1.1 and 5, is in its folder.
package mqtt

import "vignette.dev/vignette/internal/traffic/protocol"

// Protocol has IANA's ports. Its largest payload is its largest packet less the header and the longest topic.
var Protocol = protocol.Protocol{
	Name: "mqtt", Server: "MQTT broker", Brokers: []string{"mosquitto", "vernemq", "rabbitmq"}, Port: 1883, SecurePort: 8883,
	MaxQoS: 2, MaxPayloadBytes: 268_435_000, Versions: true,
}
