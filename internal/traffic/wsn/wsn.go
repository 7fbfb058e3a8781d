// Package wsn describes WS-Notification 1.3 to all programs. Client, broker and messages are in its folders.
package wsn

import "vignette.dev/vignette/internal/traffic/protocol"

// Protocol has no port at IANA; its ports are common ones. Its payload is the client's limit, which encodes bytes as text.
var Protocol = protocol.Protocol{
	Name: "ws-notification", Server: "WS-Notification broker", Brokers: []string{"wsnBroker"}, Port: 8080, SecurePort: 8443,
	MaxQoS: 1, MaxPayloadBytes: 4 << 20,
}

// DialectSimple is WS-Notification's Simple dialect of topic expressions.
const DialectSimple = "Simple"

// Options of a client.
type Options struct {
	// Dialect Simple is for brokers without any other, such as Apache CXF's: a topic is one name, its levels separated by dots. By default
	// topics use the Concrete dialect and filters the Full one.
	Dialect string `json:"dialect,omitempty"`
	// PullPoint: the subscriber fetches messages from the broker. By default the broker sends them, for which it has no TLS.
	PullPoint bool `json:"pullPoint,omitempty"`
}
