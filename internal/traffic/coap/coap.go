// Package coap describes CoAP as protocols of requests to all programs. Client and server are in its folder.
package coap

import "vignette.dev/vignette/internal/traffic/protocol"

const (
	port = 5683 // IANA's
	// MaxBytes of the body of a request or response, over all of its blocks.
	MaxBytes = 16 << 20
	// MaxMulticastBytes of a body, as a multicast request is one datagram.
	MaxMulticastBytes = 65_000
)

// Transport is CoAP over UDP.
var Transport = protocol.Transport{Name: "coap", Port: port, UDP: true, MaxBytes: MaxBytes, MaxMulticastBytes: MaxMulticastBytes}

// OverTCP is CoAP over TCP.
var OverTCP = protocol.Transport{Name: "coap-tcp", Port: port, MaxBytes: MaxBytes}
