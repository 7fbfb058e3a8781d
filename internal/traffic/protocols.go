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
	"vignette.dev/vignette/internal/trafficconfig"
)

// Protocols of the traffic generator, each in a package of its own. Programs with C libraries add theirs before Run.
var Protocols = map[string]transport.Open{
	trafficconfig.ProtocolAMQP:    amqp.Open,
	trafficconfig.ProtocolMQTT:    mqtt.Open,
	trafficconfig.ProtocolMQTTSN:  mqttsn.Open,
	trafficconfig.ProtocolMQTTUDP: mqttudp.Open,
	trafficconfig.ProtocolWSN:     wsn.Open,
	trafficconfig.ProtocolXMPP:    xmpp.Open,
	trafficconfig.ProtocolSTOMP:   stomp.Open,
}
