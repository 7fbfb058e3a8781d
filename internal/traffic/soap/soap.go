// Package soap describes SOAP as protocols of requests to all programs. Client and server are in its folder.
package soap

import "vignette.dev/vignette/internal/traffic/protocol"

// MaxBytes of an envelope as text.
const MaxBytes = 32 << 20

// Transport is SOAP over HTTP, at HTTP's alternate port.
var Transport = protocol.Transport{Name: "soap", Port: 8080, MaxBytes: MaxBytes, HTTP: true, SOAP: true}

// maxDatagram is the largest content of an IPv4 datagram.
const maxDatagram = 65_507

// OverUDP is SOAP-over-UDP 1.1, whose port is IANA's. An envelope is one datagram.
var OverUDP = protocol.Transport{Name: "soap-udp", Port: 3702, UDP: true, MaxBytes: maxDatagram, MaxMulticastBytes: maxDatagram, SOAP: true}
