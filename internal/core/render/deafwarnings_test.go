package render

import "testing"

func TestASubscriberThatHearsNobodyHasAWarning(t *testing.T) {
	const (
		publisher = "{name: bft, publisher: {protocol: mqtt, to: hub, topic: pos/1, period: 1s}}"
		one       = "[{name: hq, networks: [lan], apps: [hub, picture]}, {name: veh, networks: [lan], apps: [bft]}]"
		two       = "[{name: hq, networks: [lan], apps: [hub, picture]}, {name: veh, networks: [lan], apps: [hub, bft]}]"
		deaf      = `spec.apps[0].subscriber.topics: Invalid value: ["pos/#"]: no publisher sends to such a topic`
	)
	subscriber := func(topics string) string {
		return "{name: picture, subscriber: {protocol: mqtt, to: hub, topics: [" + topics + "]}}"
	}
	for name, c := range map[string]struct{ subscriber, sender, hub, nodes, want string }{
		"its topic":                     {subscriber("pos/#"), publisher, "{name: hub, mosquitto: {}}", one, ""},
		"another topic":                 {subscriber("position/#"), publisher, "{name: hub, mosquitto: {}}", one, `topics: Invalid value: ["position/#"]: no publisher`},
		"each its own broker":           {subscriber("pos/#"), publisher, "{name: hub, mosquitto: {}}", two, deaf},
		"brokers in a cluster":          {subscriber("pos/#"), publisher, "{name: hub, vernemq: {cluster: true}}", two, ""},
		"no node runs the publisher":    {subscriber("pos/#"), publisher, "{name: hub, mosquitto: {}}", "[{name: hq, networks: [lan], apps: [hub, picture]}]", deaf},
		"no node runs it":               {subscriber("pos/#"), publisher, "{name: hub, mosquitto: {}}", "[{name: hq, networks: [lan], apps: [hub, bft]}]", ""},
		"a program may send to it":      {subscriber("pos/#"), "{name: bft, image: example/bft, command: [/bft]}", "{name: hub, mosquitto: {}}", one, ""},
		"a program of another protocol": {subscriber("pos/#"), "{name: bft, image: example/bft, command: [/bft], protocol: amqp}", "{name: hub, mosquitto: {}}", one, deaf},
	} {
		t.Run(name, func(t *testing.T) {
			wantSaid(t, name, deafWarnings(inputOf(t, "["+c.subscriber+", "+c.sender+", "+c.hub+"]", c.nodes)), c.want)
		})
	}
}
