package topology

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

func spec(change ...func(*v1alpha1.ExperimentSpec)) *v1alpha1.ExperimentSpec {
	s := &v1alpha1.ExperimentSpec{
		Networks: []v1alpha1.Network{{Name: "wan", Subnet: "198.18.9.0/24"}, {Name: "lan", Subnet: "198.18.16.0/20"}},
		Apps: []v1alpha1.App{
			{Name: "broker", Mosquitto: &v1alpha1.Mosquitto{}},
			{Name: "own", Image: "i", Command: []string{"c"}},
			{Name: "bft", Publisher: &v1alpha1.Publisher{Protocol: v1alpha1.ProtocolMQTT, To: "broker"}},
		},
		Nodes: []v1alpha1.Node{
			{Name: "hq", Networks: []string{"wan", "lan"}, Apps: []string{"broker"}},
			{Name: "veh", Count: ptr.To(int32(2)), Group: "field", Networks: []string{"lan"}, Apps: []string{"bft"}},
		},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func TestNodesAreExpandedInOrder(t *testing.T) {
	got, errs := Expand(spec())
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	type row struct {
		Name, Group string
		NEM         int32
		MAC, Lan    string
	}
	var rows []row
	for _, n := range got.Nodes {
		last := n.Attachments[len(n.Attachments)-1]
		rows = append(rows, row{n.Name, n.Group, n.NEM, last.MAC, last.Address.String()})
	}
	want := []row{
		{"hq", "hq", 1, "02:02:00:00:00:01", "198.18.16.1/20"},
		{"veh-1", "field", 2, "02:02:00:00:00:02", "198.18.16.2/20"},
		{"veh-2", "field", 3, "02:02:00:00:00:03", "198.18.16.3/20"},
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
}

func TestNEMIDsAreInTheAddressAndTheMAC(t *testing.T) {
	got, errs := Expand(spec(func(s *v1alpha1.ExperimentSpec) { s.Nodes[1].NEM = ptr.To(int32(300)) }))
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	a := got.Nodes[2].Attachments[0]
	if a.MAC != "02:02:00:00:01:2d" || a.Address.String() != "198.18.17.45/20" {
		t.Errorf("NEM 301 has MAC %s and address %s", a.MAC, a.Address)
	}
	if b := got.Broadcast("lan").String(); b != "198.18.31.255" {
		t.Errorf("broadcast of 198.18.16.0/20 is %s", b)
	}
}

func TestErrorsHaveTheFieldAndTheValue(t *testing.T) {
	cases := map[string]struct {
		change func(*v1alpha1.ExperimentSpec)
		want   string
	}{
		"a subnet that is none":        {func(s *v1alpha1.ExperimentSpec) { s.Networks[0].Subnet = "198.18.9.1/24" }, `spec.networks[0].subnet: Invalid value: "198.18.9.1/24"`},
		"subnets that overlap":         {func(s *v1alpha1.ExperimentSpec) { s.Networks[1].Subnet = "198.18.8.0/23" }, "overlaps 198.18.9.0/24 of network wan"},
		"a subnet that is too small":   {func(s *v1alpha1.ExperimentSpec) { s.Networks[1].Subnet = "198.18.16.0/30" }, "room for NEM ids up to 2, and node veh-2 has 3"},
		"the broadcast address":        {func(s *v1alpha1.ExperimentSpec) { s.Nodes[0].NEM = ptr.To(int32(255)) }, "room for NEM ids up to 254, and node hq has 255"},
		"a NEM id twice":               {func(s *v1alpha1.ExperimentSpec) { s.Nodes[0].NEM = ptr.To(int32(3)) }, "node veh-2 has the NEM id of node hq"},
		"a node name twice":            {func(s *v1alpha1.ExperimentSpec) { s.Nodes[0].Name = "veh-2" }, `spec.nodes[1].name: Duplicate value: "veh-2"`},
		"a group with a node's name":   {func(s *v1alpha1.ExperimentSpec) { s.Nodes[0].Group = "veh-2" }, `spec.nodes[0].group: Invalid value: "veh-2": is also the name of a node that count makes of veh: want another name`},
		"a group with its own node's":  {func(s *v1alpha1.ExperimentSpec) { s.Nodes[1].Group = "veh-2" }, `spec.nodes[1].group: Invalid value: "veh-2": is also the name of a node that count makes of veh: want another name`},
		"a network that is not there":  {func(s *v1alpha1.ExperimentSpec) { s.Nodes[0].Networks = []string{"hf"} }, `spec.nodes[0].networks[0]: Invalid value: "hf"`},
		"an app that is not there":     {func(s *v1alpha1.ExperimentSpec) { s.Nodes[0].Apps = []string{"x"} }, `spec.nodes[0].apps[0]: Not found: "x"`},
		"a broker with instances":      {func(s *v1alpha1.ExperimentSpec) { s.Apps[0].Instances = 2 }, "a broker runs once on a node"},
		"two brokers on a node":        {func(s *v1alpha1.ExperimentSpec) { s.Nodes[0].Apps = []string{"broker", "broker"} }, "second broker"},
		"a client of no broker":        {func(s *v1alpha1.ExperimentSpec) { s.Apps[2].Publisher.To = "bft" }, `spec.apps[2].publisher.to: Invalid value: "bft": app "bft" is no broker`},
		"a broker nobody runs":         {func(s *v1alpha1.ExperimentSpec) { s.Nodes[0].Apps = nil }, `no node runs app "broker"`},
		"a node that lacks the broker": {func(s *v1alpha1.ExperimentSpec) { s.Apps[2].Publisher.To = "veh-1/broker" }, `node "veh-1" does not run app "broker"`},
		"a broker out of reach":        {func(s *v1alpha1.ExperimentSpec) { s.Nodes[0].Networks = []string{"wan"} }, "node veh-1 has no network in common with the broker's node hq"},
		"a broadcast without network": {func(s *v1alpha1.ExperimentSpec) {
			s.Apps[2].Publisher = &v1alpha1.Publisher{Protocol: v1alpha1.ProtocolMQTTUDP, Network: "wan"}
		}, `spec.apps[2].publisher.network: Invalid value: "wan": node veh-1 is not on network "wan"`},
		"a pattern that is to adapt": {func(s *v1alpha1.ExperimentSpec) {
			s.Apps[2].Publisher.Pattern, s.Apps[2].Publisher.AdaptRate = &v1alpha1.Pattern{}, &v1alpha1.RateAdaptation{MaxPeriod: "8s"}
		}, "spec.apps[2].publisher.adaptRate: Invalid value: \"adaptRate\": adapts a period, and the publisher has a pattern"},
		"a longest period below its own": {func(s *v1alpha1.ExperimentSpec) {
			s.Apps[2].Publisher.Period, s.Apps[2].Publisher.AdaptRate = "10s", &v1alpha1.RateAdaptation{MaxPeriod: "8s"}
		}, `spec.apps[2].publisher.adaptRate.maxPeriod: Invalid value: "8s": is shorter than the publisher's period, 10s`},
		"a signature of another protocol": {func(s *v1alpha1.ExperimentSpec) { s.Apps[2].Publisher.SignatureKey = "ours" },
			`spec.apps[2].publisher.signatureKey: Invalid value: "ours": signs messages of mqtt-udp, and the protocol is mqtt: leave it out`},
		"a publisher's version of another protocol": {func(s *v1alpha1.ExperimentSpec) {
			s.Apps[2].Publisher = &v1alpha1.Publisher{Protocol: v1alpha1.ProtocolMQTTUDP, Version: "5"}
		}, `spec.apps[2].publisher.version: Invalid value: "5": is a version of mqtt, and the protocol is mqtt-udp: leave it out`},
		"a subscriber's version of another protocol": {func(s *v1alpha1.ExperimentSpec) {
			s.Apps[2].Publisher, s.Apps[2].Subscriber = nil, &v1alpha1.Subscriber{Protocol: v1alpha1.ProtocolMQTTUDP, Version: "5"}
		}, `spec.apps[2].subscriber.version: Invalid value: "5": is a version of mqtt, and the protocol is mqtt-udp: leave it out`},
		"a script's version of another protocol": {func(s *v1alpha1.ExperimentSpec) {
			s.Apps[2].Publisher, s.Apps[2].Script = nil, &v1alpha1.MessageScript{Protocol: "mqtt-udp", Version: "5"}
		}, `spec.apps[2].script.version: Invalid value: "5": is a version of mqtt, and the protocol is mqtt-udp: leave it out`},
		"one client with two keys": {func(s *v1alpha1.ExperimentSpec) {
			s.Apps[2].Publisher = &v1alpha1.Publisher{Protocol: v1alpha1.ProtocolMQTTUDP, SignatureKey: "ours"}
			s.Apps[2].Subscriber = &v1alpha1.Subscriber{Protocol: v1alpha1.ProtocolMQTTUDP}
		}, "protocol, version, to, network and signatureKey must be the same"},
		"repeats of another protocol": {func(s *v1alpha1.ExperimentSpec) {
			s.Apps[2].Publisher.Repeat = &v1alpha1.Repetition{Times: 1, Interval: "1s"}
		}, "spec.apps[2].publisher.repeat: Forbidden: is for mqtt-udp, and the protocol is mqtt: leave it out"},
		"repeats of a pattern": {func(s *v1alpha1.ExperimentSpec) {
			s.Apps[2].Publisher = &v1alpha1.Publisher{Protocol: v1alpha1.ProtocolMQTTUDP, Pattern: &v1alpha1.Pattern{}, Repeat: &v1alpha1.Repetition{Times: 1, Interval: "1s"}}
		}, "spec.apps[2].publisher.repeat: Forbidden: is for a publisher with a period, and this one has a pattern"},
		"repeats after too many messages": {func(s *v1alpha1.ExperimentSpec) {
			s.Apps[2].Publisher = &v1alpha1.Publisher{Protocol: v1alpha1.ProtocolMQTTUDP, Period: "50ms", Repeat: &v1alpha1.Repetition{Times: 2, Interval: "30s"}}
		}, `spec.apps[2].publisher.repeat.interval: Invalid value: "30s": has the last repeat 1m after its message, with over 1024 others in between at a period of 50ms. Receivers know only so many, and would count it again: use 25.6s or less`},
		"repeats an hour later": {func(s *v1alpha1.ExperimentSpec) {
			s.Apps[2].Publisher = &v1alpha1.Publisher{Protocol: v1alpha1.ProtocolMQTTUDP, Repeat: &v1alpha1.Repetition{Times: 1, Interval: "1h"}}
		}, `spec.apps[2].publisher.repeat.interval: Invalid value: "1h": must be from 1ms to 60s`},
		"a bridge to RabbitMQ": {func(s *v1alpha1.ExperimentSpec) {
			s.Apps = append(s.Apps, v1alpha1.App{Name: "rabbit", RabbitMQ: &v1alpha1.RabbitMQ{}})
			s.Nodes[1].Apps, s.Apps[0].Mosquitto.Bridges = append(s.Nodes[1].Apps, "rabbit"), []v1alpha1.Bridge{{To: "rabbit"}}
		}, `spec.apps[0].mosquitto.bridges[0].to: Invalid value: "rabbit": app "rabbit" is RabbitMQ, which sends a bridge its own messages back: join the two by a mediator`},
		"two bridges to the same broker": {func(s *v1alpha1.ExperimentSpec) {
			s.Nodes[1].Count, s.Nodes[1].Apps = nil, append(s.Nodes[1].Apps, "far")
			s.Apps = append(s.Apps, v1alpha1.App{Name: "far", Mosquitto: &v1alpha1.Mosquitto{}})
			s.Apps[0].Mosquitto.Bridges = []v1alpha1.Bridge{{To: "far", Topics: []v1alpha1.BridgeTopic{{Filter: "a", Direction: "out"}}},
				{To: "veh/far", Topics: []v1alpha1.BridgeTopic{{Filter: "b", Direction: "in"}}}}
		}, `spec.apps[0].mosquitto.bridges[1].to: Invalid value: "veh/far": is the broker on node veh, to which the bridge to far goes already: write one bridge with the topics of both`},
		"a bridge's filter of two quotes": {func(s *v1alpha1.ExperimentSpec) {
			s.Nodes[1].Count, s.Nodes[1].Apps = nil, append(s.Nodes[1].Apps, "far")
			s.Apps = append(s.Apps, v1alpha1.App{Name: "far", Mosquitto: &v1alpha1.Mosquitto{}})
			s.Apps[0].Mosquitto.Bridges = []v1alpha1.Bridge{{To: "far", Topics: []v1alpha1.BridgeTopic{{Filter: `""`}}}}
		}, `spec.apps[0].mosquitto.bridges[0].topics[0].filter: Invalid value: "\"\"": means no topic to Mosquitto: want a filter such as #, without the quotes`},
		"a bridge to itself": {func(s *v1alpha1.ExperimentSpec) { s.Apps[0].Mosquitto.Bridges = []v1alpha1.Bridge{{To: "hq/broker"}} }, "bridge of the broker on node hq to itself"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := spec(c.change)
			expanded, errs := Expand(s)
			errs = append(errs, expanded.CheckReferences(s)...)
			if len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), c.want) {
				t.Errorf("got %v, want %q", errs, c.want)
			}
		})
	}
}

func TestABrokerIsReachedThroughTheGatewaysOfARoutingDomain(t *testing.T) {
	for name, c := range map[string]struct {
		one, middle, other v1alpha1.RoutingProtocol
		want               bool
	}{
		"one domain":       {"olsrv2", "olsrv2", "olsrv2", true},
		"no routing":       {"none", "none", "none", false},
		"other protocols":  {"olsrv2", "olsrv2", "babel", false},
		"a gap in between": {"olsrv2", "none", "olsrv2", false},
	} {
		s := spec(func(s *v1alpha1.ExperimentSpec) {
			s.Networks = []v1alpha1.Network{
				{Name: "a", Subnet: "198.18.1.0/24", Routing: &v1alpha1.Routing{Protocol: c.one}},
				{Name: "b", Subnet: "198.18.2.0/24", Routing: &v1alpha1.Routing{Protocol: c.middle}},
				{Name: "c", Subnet: "198.18.3.0/24", Routing: &v1alpha1.Routing{Protocol: c.other}}}
			s.Nodes = []v1alpha1.Node{{Name: "hq", Networks: []string{"a"}, Apps: []string{"broker"}}, {Name: "gateway", Networks: []string{"a", "b"}},
				{Name: "further", Networks: []string{"b", "c"}}, {Name: "veh", Networks: []string{"c"}}}
		})
		expanded, errs := Expand(s)
		if len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		veh, _ := expanded.Node("veh")
		if _, err := expanded.Broker(veh, v1alpha1.ProtocolMQTT, "broker"); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestABrokerWhoseFirstNetworkIsOutsideTheRoutingDomainIsReachedAtItsAddressInside(t *testing.T) {
	s := spec(func(s *v1alpha1.ExperimentSpec) {
		olsr := &v1alpha1.Routing{Protocol: v1alpha1.RoutingOLSRv2}
		s.Networks = []v1alpha1.Network{{Name: "lan", Subnet: "198.18.1.0/24"},
			{Name: "wan", Subnet: "198.18.2.0/24", Routing: olsr}, {Name: "hf", Subnet: "198.18.3.0/24", Routing: olsr}}
		s.Nodes = []v1alpha1.Node{{Name: "hq", Networks: []string{"lan", "wan"}, Apps: []string{"broker"}}, {Name: "gateway", Networks: []string{"wan", "hf"}},
			{Name: "veh", Networks: []string{"hf"}}, {Name: "desk", Networks: []string{"lan"}}, {Name: "alone"}}
	})
	expanded, errs := Expand(s)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	hq, _ := expanded.Node("hq")
	for peer, want := range map[string]string{"veh": "198.18.2.1", "gateway": "198.18.2.1", "desk": "198.18.1.1", "alone": "198.18.1.1"} {
		from, _ := expanded.Node(peer)
		if got, _ := expanded.ReachedAt(hq, from); got.String() != want {
			t.Errorf("node %s reaches hq at %s, want %s", peer, got, want)
		}
	}
}

func TestAReferenceIsToTheBrokerOnTheNodeElseTheOnlyOne(t *testing.T) {
	cases := map[string]struct {
		from, reference, want, problem string
	}{
		"on the same node":                   {"a", "broker", "a", ""},
		"named with its node":                {"a", "b/broker", "b", ""},
		"the only one in the experiment":     {"c", "own", "b", ""},
		"any, on the same node":              {"b", "", "b", ""},
		"several, and none on the same node": {"c", "broker", "", "name one, such as a/broker"},
	}
	s := spec(func(s *v1alpha1.ExperimentSpec) {
		s.Nodes = []v1alpha1.Node{
			{Name: "a", Networks: []string{"lan"}, Apps: []string{"broker"}},
			{Name: "b", Networks: []string{"lan"}, Apps: []string{"broker", "own"}},
			{Name: "c", Networks: []string{"lan"}},
		}
	})
	expanded, _ := Expand(s)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			from, _ := expanded.Node(c.from)
			got, err := expanded.Broker(from, v1alpha1.ProtocolMQTT, c.reference)
			if got.Name != c.want || (err != nil) != (c.problem != "") || err != nil && !strings.Contains(err.Error(), c.problem) {
				t.Errorf("got %q, %v; want %q, %q", got.Name, err, c.want, c.problem)
			}
		})
	}
}

func TestAProtocolThatOnlyImagesServeIsRefusedToOtherApps(t *testing.T) {
	expanded, _ := Expand(spec())
	_, err := expanded.Broker(expanded.Nodes[0], v1alpha1.ProtocolMQTTUDP, "broker")
	if err == nil || !strings.HasSuffix(err.Error(), "use an image of your own") {
		t.Errorf("%v; want advice to use an image of one's own", err)
	}
}

// For whatever the API server accepts, the operator must return errors and never panic.
func FuzzExpand(f *testing.F) {
	f.Add("198.18.0.0/24", int32(1), int32(2), "wan", "broker")
	f.Add("0.0.0.0/0", int32(65534), int32(1000), "lan", "x/y")
	f.Add("198.18.0.0/32", int32(-1), int32(0), "", "/")
	f.Fuzz(func(_ *testing.T, subnet string, nem, count int32, network, to string) {
		if count > 1000 {
			count = 1000
		}
		s := spec(func(s *v1alpha1.ExperimentSpec) {
			s.Networks[0].Subnet, s.Nodes[1].NEM, s.Nodes[1].Count = subnet, &nem, &count
			s.Nodes[0].Networks, s.Apps[2].Publisher.To = []string{network}, to
		})
		expanded, errs := Expand(s)
		if len(errs) == 0 {
			expanded.CheckReferences(s)
		}
	})
}

func TestMoreNodesThanAllowedAreNotExpanded(t *testing.T) {
	many := func(count int32) func(*v1alpha1.ExperimentSpec) {
		return func(s *v1alpha1.ExperimentSpec) { s.Nodes[1].Count = ptr.To(count) }
	}
	got, errs := Expand(spec(many(v1alpha1.MaxNodes)))
	if len(got.Nodes) != 0 || len(errs) != 1 || errs[0].Field != "spec.nodes" || !strings.Contains(errs[0].Error(), "must have at most 1000 items") {
		t.Errorf("expanded to %d nodes with %v", len(got.Nodes), errs)
	}
	if got, errs := Expand(spec(many(v1alpha1.MaxNodes - 1))); len(errs) > 0 || len(got.Nodes) != v1alpha1.MaxNodes {
		// All of them are on a network that has room for 4094.
		t.Errorf("expanded to %d nodes with %v, want %d", len(got.Nodes), errs, v1alpha1.MaxNodes)
	}
}

func TestWhatRabbitMQHasNoMQTTForIsRefused(t *testing.T) {
	const qos = "broker rabbit is RabbitMQ, which has no QoS 2 and sends with 1: want 1, or a broker mosquitto or vernemq"
	for name, c := range map[string]struct{ client, want string }{
		"QoS 1":                       {"publisher: {protocol: mqtt, to: rabbit, qos: 1, version: 3.1.1}", ""},
		"AMQP, which has QoS 1":       {"publisher: {protocol: amqp, to: rabbit, qos: 1, version: 3.1.1}", ""},
		"another broker":              {`publisher: {protocol: mqtt, to: broker, qos: 2, version: "5"}`, ""},
		"a publisher of QoS 2":        {"publisher: {protocol: mqtt, to: rabbit, qos: 2}", "spec.apps[0].publisher.qos: Invalid value: 2: " + qos},
		"a subscriber of QoS 2":       {"subscriber: {protocol: mqtt, to: rabbit, qos: 2}", "spec.apps[0].subscriber.qos: Invalid value: 2: " + qos},
		"a script of QoS 2":           {"script: {protocol: mqtt, to: rabbit, qos: 2}", "spec.apps[0].script.qos: Invalid value: 2: " + qos},
		"a further broker":            {"publisher: {protocol: mqtt, to: broker, failover: [rabbit], qos: 2}", "spec.apps[0].publisher.qos: Invalid value: 2: " + qos},
		"a broker behind a gateway":   {"publisher: {protocol: mqtt-sn, to: gateway, qos: 2}", "spec.apps[0].publisher.qos: Invalid value: 2: " + qos},
		"a mediator's leg of QoS 2":   {"mediator: {legs: [{protocol: mqtt, to: broker, qos: 2}, {protocol: mqtt, to: rabbit, qos: 2}]}", "spec.apps[0].mediator.legs[1].qos: Invalid value: 2: " + qos},
		"MQTT 5":                      {`publisher: {protocol: mqtt, to: rabbit, version: "5"}`, `spec.apps[0].publisher.version: Invalid value: "5": broker rabbit is RabbitMQ, which refuses MQTT 5: want 3.1.1, or a broker mosquitto or vernemq`},
		"one message for two brokers": {"publisher: {protocol: mqtt, to: rabbit, failover: [rabbit], qos: 2}", "spec.apps[0].publisher.qos: Invalid value: 2: " + qos},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.ExperimentSpec{}
			if err := yaml.UnmarshalStrict([]byte(`
networks: [{name: lan, subnet: 198.18.1.0/24}]
apps: [{name: own, `+c.client+`}, {name: broker, mosquitto: {}}, {name: rabbit, rabbitmq: {}}, {name: gateway, mqttsnGateway: {to: rabbit}}]
nodes: [{name: hq, networks: [lan], apps: [own, broker]}, {name: far, networks: [lan], apps: [rabbit, gateway]}]`), s); err != nil {
				t.Fatal(err)
			}
			expanded, _ := Expand(s)
			errs := expanded.CheckReferences(s)
			if (len(errs) == 0) != (c.want == "") || len(errs) > 1 || len(errs) > 0 && errs[0].Error() != c.want {
				t.Errorf("%v; want %q", errs, c.want)
			}
		})
	}
}
