package topology

import (
	"testing"

	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestMediatorsWhoseMessagesWouldReturnAreRefused(t *testing.T) {
	const hub = "[{name: hub, networks: [lan], apps: [mqtt, mqtt2, rabbit, gateway, xmpp, m, m2]}]"
	const two = "[{name: hub, networks: [lan], apps: [rabbit, mqtt, m]}, {name: far, networks: [lan], apps: [rabbit, mqtt]}]"
	for name, c := range map[string]struct {
		mediator, further, nodes string
		want                     string
	}{
		"two worlds":                            {"{protocol: amqp, to: rabbit}, {protocol: xmpp, to: xmpp}", "", hub, ""},
		"three worlds":                          {"{protocol: mqtt, to: mqtt}, {protocol: amqp, to: rabbit}, {protocol: xmpp, to: xmpp}", "", hub, ""},
		"a broker that translates itself":       {"{protocol: amqp, to: rabbit}, {protocol: xmpp, to: xmpp}, {protocol: stomp, to: rabbit}", "", hub, "spec.apps[5].mediator.legs[2].to"},
		"a gateway to the same broker":          {"{protocol: mqtt, to: rabbit}, {protocol: mqtt-sn, to: gateway}", "", hub, "spec.apps[5].mediator.legs[1].to"},
		"a gateway to another broker":           {"{protocol: mqtt, to: mqtt}, {protocol: mqtt-sn, to: gateway}", "", hub, ""},
		"brokers that are bridged":              {"{protocol: mqtt, to: mqtt}, {protocol: mqtt, to: mqtt2}", "", "[{name: hub, networks: [lan], apps: [mqtt, m]}, {name: far, networks: [lan], apps: [mqtt2]}]", "spec.apps[5].mediator.legs[1].to"},
		"brokers of a cluster":                  {"{protocol: amqp, to: hub/rabbit}, {protocol: mqtt, to: far/rabbit}", "", two, "spec.apps[5].mediator.legs[1].to"},
		"brokers of one app that nothing joins": {"{protocol: mqtt, to: hub/mqtt}, {protocol: mqtt, to: far/mqtt}", "", two, ""},
		"two mediators in a ring": {"{protocol: amqp, to: rabbit}, {protocol: xmpp, to: xmpp}", "{protocol: mqtt, to: rabbit}, {protocol: xmpp, to: xmpp}", hub,
			"spec.apps[6].mediator.legs[1].to"},
		"two mediators in a row": {"{protocol: amqp, to: rabbit}, {protocol: xmpp, to: xmpp}", "{protocol: mqtt, to: mqtt}, {protocol: xmpp, to: xmpp}", hub, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.further == "" {
				c.further = "{protocol: mqtt, to: none}, {protocol: mqtt, to: none}" // another check reports it
			}
			text := `
networks: [{name: lan, subnet: 198.18.1.0/24}]
apps:
- {name: mqtt, mosquitto: {}}
- {name: mqtt2, mosquitto: {bridges: [{to: hub/mqtt}]}}
- {name: rabbit, rabbitmq: {cluster: true}}
- {name: gateway, mqttsnGateway: {to: rabbit}}
- {name: xmpp, prosody: {}}
- {name: m, mediator: {legs: [` + c.mediator + `]}}
- {name: m2, mediator: {legs: [` + c.further + `]}}
nodes: ` + c.nodes
			s := &v1alpha1.ExperimentSpec{}
			if err := yaml.UnmarshalStrict([]byte(text), s); err != nil {
				t.Fatal(err)
			}
			expanded, errs := Expand(s)
			for _, err := range errs {
				if err.Field != "spec.nodes[0].apps[1]" { // several brokers on one node have the same port, which another check reports
					t.Error(err)
				}
			}
			errs = references{expanded}.checkMediatorRings(s)
			if c.want == "" && len(errs) > 0 || c.want != "" && (len(errs) != 1 || errs[0].Field != c.want) {
				t.Errorf("%v; want an error about %q", errs, c.want)
			}
		})
	}
}

func TestLegsToApacheCXFNameWholeTopics(t *testing.T) {
	for leg, want := range map[string]string{
		"to: cxf": "spec.apps[2].mediator.legs[1].topics[0]",
		`to: cxf, topics: [NOR/location, "NOR/#"]`:      "spec.apps[2].mediator.legs[1].topics[1]",
		"to: cxf, topics: [NOR/location, PRT/location]": "",
	} {
		t.Run(leg, func(t *testing.T) {
			s := &v1alpha1.ExperimentSpec{}
			if err := yaml.UnmarshalStrict([]byte(`
apps:
- {name: mqtt, mosquitto: {}}
- {name: cxf, wsnBroker: {implementation: CXF}}
- {name: m, mediator: {legs: [{protocol: mqtt, to: mqtt}, {protocol: ws-notification, `+leg+`}]}}
nodes: [{name: hub, apps: [mqtt, cxf, m]}]`), s); err != nil {
				t.Fatal(err)
			}
			expanded, errs := Expand(s)
			errs = append(errs, expanded.CheckReferences(s)...)
			if want == "" && len(errs) > 0 || want != "" && (len(errs) != 1 || errs[0].Field != want) {
				t.Errorf("%v; want an error about %q", errs, want)
			}
		})
	}
}
