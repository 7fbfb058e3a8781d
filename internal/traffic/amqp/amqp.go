// Package amqp describes AMQP 0-9-1 to all programs. Its client is in its folder.
package amqp

import "vignette.dev/vignette/internal/traffic/protocol"

// Protocol has IANA's ports, the longest routing key (short string, AMQP 0-9-1, 4.2.5.3), and RabbitMQ's limit of a payload.
var Protocol = protocol.Protocol{Name: "amqp", Brokers: []string{"rabbitmq"}, Port: 5672, SecurePort: 5671, MaxQoS: 1, MaxPayloadBytes: 128 << 20,
	MaxTopicBytes: 255}
