// Package http describes HTTP/1.1 as a protocol of requests to all programs. Client and server are in its folder.
package http

import "vignette.dev/vignette/internal/traffic/protocol"

// MaxBytes of the body of a request or a response.
const MaxBytes = 32 << 20

// Transport has IANA's alternate port.
var Transport = protocol.Transport{Name: "http", Port: 8080, MaxBytes: MaxBytes, HTTP: true}
