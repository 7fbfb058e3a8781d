// Package stomp describes STOMP 1.2 to all programs. Its client is in its folder.
package stomp

import "vignette.dev/vignette/internal/traffic/protocol"

// EscapedSlash is RabbitMQ's escape of a slash in a destination's name.
const EscapedSlash = "%2F"

// Protocol has IANA's ports, and RabbitMQ's limits, which stores messages as AMQP's.
var Protocol = protocol.Protocol{Name: "stomp", Brokers: []string{"rabbitmq"}, Port: 61613, SecurePort: 61614, MaxQoS: 1, MaxPayloadBytes: 128 << 20,
	MaxTopicBytes: 255, NotInTopics: EscapedSlash}
