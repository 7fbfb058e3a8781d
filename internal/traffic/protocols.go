package traffic

import (
	amqp "vignette.dev/vignette/internal/traffic/amqp/client"
	mqtt "vignette.dev/vignette/internal/traffic/mqtt/client"
	mqttsn "vignette.dev/vignette/internal/traffic/mqttsn/client"
	mqttudp "vignette.dev/vignette/internal/traffic/mqttudp/client"
	stomp "vignette.dev/vignette/internal/traffic/stomp/client"
	"vignette.dev/vignette/internal/traffic/transport"
	wsn "vignette.dev/vignette/internal/traffic/wsn/client"
	xmpp "vignette.dev/vignette/internal/traffic/xmpp/client"
)

// Protocols opens a client of each protocol, by the names of their descriptions (trafficconfig.Protocols). Programs with C libraries add
// theirs before Run.
var Protocols = map[string]transport.Open{
	"mqtt":            mqtt.Open,
	"mqtt-sn":         mqttsn.Open,
	"mqtt-udp":        mqttudp.Open,
	"amqp":            amqp.Open,
	"stomp":           stomp.Open,
	"xmpp":            xmpp.Open,
	"ws-notification": wsn.Open,
}
