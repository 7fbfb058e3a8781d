package trafficconfig

import (
	"slices"
	"strings"

	"vignette.dev/vignette/internal/traffic/amqp"
	"vignette.dev/vignette/internal/traffic/mqtt"
	"vignette.dev/vignette/internal/traffic/mqttsn"
	"vignette.dev/vignette/internal/traffic/mqttudp"
	"vignette.dev/vignette/internal/traffic/protocol"
	"vignette.dev/vignette/internal/traffic/stomp"
	"vignette.dev/vignette/internal/traffic/wsn"
	"vignette.dev/vignette/internal/traffic/xmpp"
	"vignette.dev/vignette/internal/traffic/zeromq"
)

// Protocols of publishers and subscribers, each described in its folder. Their clients are in traffic.Protocols. Rules of the API server
// come in this order.
var Protocols = []protocol.Protocol{
	mqtt.Protocol,
	wsn.Protocol,
	xmpp.Protocol,
	mqttsn.Protocol,
	zeromq.Protocol,
	amqp.Protocol,
	stomp.Protocol,
	mqttudp.Protocol,
}

// ProtocolOf returns the protocol with a name, or one without a name.
func ProtocolOf[Name ~string](name Name) protocol.Protocol {
	for _, p := range Protocols {
		if p.Name == string(name) {
			return p
		}
	}
	return protocol.Protocol{}
}

// protocolNames are the names of all protocols, for a message.
func protocolNames() string {
	names := make([]string, len(Protocols))
	for i, p := range Protocols {
		names[i] = p.Name
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
