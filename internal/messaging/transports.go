package messaging

import (
	coap "vignette.dev/vignette/internal/traffic/coap/client"
	http "vignette.dev/vignette/internal/traffic/http/client"
	"vignette.dev/vignette/internal/traffic/request"
	soap "vignette.dev/vignette/internal/traffic/soap/client"
)

// Transports of messaging services, by the names of their descriptions (messagingconfig.Transports).
var Transports = map[string]request.Open{
	"http":     http.Open,
	"coap":     coap.Open,
	"coap-tcp": coap.OpenTCP,
	"soap":     soap.Open,
	"soap-udp": soap.OpenUDP,
}
