package render

import (
	"fmt"
	"strings"
	"testing"
)

func TestWhatClientsRefuseByTheNamesOfTheirNodesIsRefusedBefore(t *testing.T) {
	accents := strings.Repeat("é", 115) // 230 bytes
	publisher := func(protocol, topic string) string {
		return fmt.Sprintf("publisher: {protocol: %s, to: server, period: 1s, topic: %q}", protocol, topic)
	}
	sized := func(payload string) string {
		return fmt.Sprintf("publisher: {protocol: mqtt, to: server, period: 1s, country: MECHANISEDBATTALIONONE, payload: %q}", payload)
	}
	for name, c := range map[string]struct{ app, field, want string }{
		"a topic that fits":              {publisher("amqp", accents+"/{node}"), "", ""},
		"a topic too long for AMQP":      {publisher("amqp", accents+"/{node}/{node}"), "publisher.topic", "on node headquarters it has 256 bytes: amqp carries at most 255"},
		"a topic too long for STOMP":     {publisher("stomp", accents+"/{node}/{node}"), "publisher.topic", "stomp carries at most 255"},
		"the same by MQTT":               {publisher("mqtt", accents+"/{node}/{node}"), "", ""},
		"an escaped slash by STOMP":      {publisher("stomp", "a%2Fb"), "publisher.topic", "has %2F inside"},
		"a filter too long for STOMP":    {fmt.Sprintf("subscriber: {protocol: stomp, to: server, topics: [ok, %q]}", accents+"/{node}/{node}"), "subscriber.topics[1]", "has 256 bytes"},
		"a mediator's filter too long":   {fmt.Sprintf("mediator: {legs: [{protocol: amqp, to: server, prefix: %q, topics: [a/headquarters/b/#]}]}", accents+"/1234567/"), "mediator.legs[0].topics[0]", "has 257 bytes"},
		"a mediator's QoS 2 by STOMP":    {"mediator: {legs: [{protocol: stomp, to: server, qos: 2}]}", "mediator.legs[0].qos", "is above what stomp has: want 1 at most"},
		"a mediator's QoS 1 by ZeroMQ":   {"mediator: {legs: [{protocol: zeromq, to: server, qos: 1}]}", "mediator.legs[0].qos", "is above what zeromq has: want 0 at most"},
		"a mediator's QoS 2 by MQTT-SN":  {"mediator: {legs: [{protocol: mqtt-sn, to: server, qos: 2}]}", "", ""},
		"a size with room for the ids":   {sized("bytes:35"), "", ""},
		"a size too small for the ids":   {sized("bytes:34"), "publisher.payload", "of entity MECHANISEDBATTALIONONE-S001: want from 35"},
		"a period of eleven days":        {"publisher: {protocol: mqtt, to: server, period: 277h, lead: 277h}", "", ""},
		"a longer one":                   {"publisher: {protocol: mqtt, to: server, period: 278h}", "publisher.period", "must be 277h46m40s at most"},
		"a longer lead":                  {"publisher: {protocol: mqtt, to: server, period: 1s, lead: 278h}", "publisher.lead", "must be 277h46m40s at most"},
		"a longer adapted period":        {"publisher: {protocol: mqtt, to: server, period: 1s, adaptRate: {highFrames: 2, maxPeriod: 278h}}", "publisher.adaptRate.maxPeriod", "must be 277h46m40s at most"},
		"a subscription that is shared":  {"subscriber: {protocol: mqtt, to: server, topics: [$share/hq/a/#]}", "subscriber.topics[0]", "is a shared subscription"},
		"one of a mediator":              {"mediator: {legs: [{protocol: mqtt, to: server, topics: [$share/hq/a/#]}]}", "mediator.legs[0].topics[0]", "is a shared subscription"},
		"one of an own app":              {"image: i, command: [b], subscribes: [$share/hq/a/#]", "subscribes[0]", "is a shared subscription"},
		"an own app's filter":            {`image: i, command: [b], subscribes: ["a/#", "a/#/b"]`, "subscribes[1]", "want # alone in the last level"},
		"what only one instance refuses": {publisher("amqp", strings.Repeat("x", 254)+"{instance}") + ", instances: 10", "publisher.topic", "has 256 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := CheckClients(inputOf(t, "[{name: server, image: own, command: [b]}, {name: bft, "+c.app+"}]", "[{name: headquarters, networks: [lan], apps: [server, bft]}]"))
			if c.want == "" {
				if len(errs) > 0 {
					t.Error(errs.ToAggregate())
				}
				return
			}
			if len(errs) != 1 || errs[0].Field != "spec.apps[1]."+c.field || !strings.Contains(fmt.Sprint(errs[0].Detail), c.want) {
				t.Errorf("%v; want one error about %s with %q", errs.ToAggregate(), c.field, c.want)
			}
		})
	}
}
