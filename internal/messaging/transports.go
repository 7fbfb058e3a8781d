package messaging

import (
	"vignette.dev/vignette/internal/messagingconfig"
	coap "vignette.dev/vignette/internal/traffic/coap/client"
	httpreq "vignette.dev/vignette/internal/traffic/http/client"
	"vignette.dev/vignette/internal/traffic/request"
	soapreq "vignette.dev/vignette/internal/traffic/soap/client"
)

// Transports of messaging services, each in a package of its own.
var Transports = map[string]request.Open{
	messagingconfig.HTTP:    httpreq.Open,
	messagingconfig.CoAP:    coap.Open,
	messagingconfig.CoAPTCP: coap.OpenTCP,
	messagingconfig.SOAP:    soapreq.Open,
	messagingconfig.SOAPUDP: soapreq.OpenUDP,
}
