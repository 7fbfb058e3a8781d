package render

import (
	"testing"
)

func TestABridgeThatCarriesLessThanItsClientsAskForHasAWarning(t *testing.T) {
	const nodes = "[{name: hq, networks: [lan], apps: [hub, picture]}, {name: veh, networks: [lan], apps: [spoke, bft]}]"
	const lower = `spec.apps[1].mosquitto.bridges[0].topics: Invalid value: "hub": publishers and subscribers have QoS 1, and the bridge carries their messages at less`
	type clients struct{ publisher, subscriber string }
	acknowledged := clients{"to: spoke, qos: 1, topic: pos/1", "to: hub, qos: 1"}
	for name, c := range map[string]struct {
		bridge string
		clients
		want string
	}{
		"everything by default":              {"{to: hub}", acknowledged, lower},
		"a topic of QoS 0":                   {"{to: hub, topics: [{filter: pos/#}]}", acknowledged, lower},
		"a topic of QoS 1":                   {`{to: hub, topics: [{filter: "#", qos: 1}]}`, acknowledged, ""},
		"QoS 2 over one":                     {`{to: hub, topics: [{filter: "#", qos: 1}]}`, clients{"to: spoke, qos: 2", "to: hub, qos: 2"}, "have QoS 2"},
		"the least of both counts":           {`{to: hub, topics: [{filter: "#", qos: 1}]}`, clients{"to: spoke, qos: 2", "to: hub, qos: 1"}, ""},
		"a subscriber of QoS 0":              {"{to: hub}", clients{"to: spoke, qos: 1", "to: hub"}, ""},
		"a publisher of QoS 0":               {"{to: hub}", clients{"to: spoke", "to: hub, qos: 1"}, ""},
		"other topics of QoS 0":              {"{to: hub, topics: [{filter: chat/#}]}", acknowledged, ""},
		"the other direction":                {"{to: hub, topics: [{filter: pos/#, direction: in}]}", acknowledged, ""},
		"clients of the same broker":         {"{to: hub}", clients{"to: hub, qos: 1", "to: hub, qos: 1"}, ""},
		"clients that may change the broker": {"{to: hub}", clients{"to: hub, failover: [spoke], qos: 1", "to: hub, failover: [spoke], qos: 1"}, lower},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(t, "[{name: hub, mosquitto: {}}, {name: spoke, mosquitto: {bridges: ["+c.bridge+"]}}, {name: bft, publisher: {protocol: mqtt, period: 1s, "+c.publisher+
				"}}, {name: picture, subscriber: {protocol: mqtt, "+c.subscriber+"}}]", nodes)
			wantSaid(t, name, bridgeWarnings(in), c.want)
		})
	}
}
