// Package coap describes CoAP as protocols of requests to all programs. Client and server are in its folder.
package coap

import "vignette.dev/vignette/internal/traffic/protocol"

const (
	port     = 5683 // IANA's
	maxBytes = 16 << 20
)

// Transport is CoAP over UDP. A multicast request is one datagram.
var Transport = protocol.Transport{Name: "coap", Port: port, UDP: true, MaxBytes: maxBytes, MaxMulticastBytes: 65_000}

// OverTCP is CoAP over TCP.
var OverTCP = protocol.Transport{Name: "coap-tcp", Port: port, MaxBytes: maxBytes}
