// Package stomp describes STOMP 1.2 to all programs. Its client is in its folder.
package stomp

import "vignette.dev/vignette/internal/traffic/protocol"

// Protocol has IANA's ports, and RabbitMQ's limit of a payload.
var Protocol = protocol.Protocol{Name: "stomp", Brokers: []string{"rabbitmq"}, Port: 61613, SecurePort: 61614, MaxQoS: 1, MaxPayloadBytes: 128 << 20}
