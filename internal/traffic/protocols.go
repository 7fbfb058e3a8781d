package traffic

import (
	"vignette.dev/vignette/internal/traffic/amqp"
	"vignette.dev/vignette/internal/traffic/mqtt"
	"vignette.dev/vignette/internal/traffic/mqttsn"
	"vignette.dev/vignette/internal/traffic/mqttudp"
	"vignette.dev/vignette/internal/traffic/stomp"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/traffic/wsn"
	"vignette.dev/vignette/internal/traffic/xmpp"
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
