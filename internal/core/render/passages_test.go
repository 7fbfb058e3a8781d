package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// inputOf is the input of an experiment with apps and nodes as YAML, on one network.
func inputOf(t *testing.T, apps, nodes string) Input {
	t.Helper()
	e := &v1alpha1.Experiment{}
	text := "spec:\n  networks: [{name: lan, subnet: 198.18.1.0/24, link: {}}]\n  apps: " + apps + "\n  nodes: " + nodes
	if err := yaml.UnmarshalStrict([]byte(text), e); err != nil {
		t.Fatal(err)
	}
	expanded, errs := topology.Expand(&e.Spec)
	if errs = append(errs, expanded.CheckReferences(&e.Spec)...); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return Input{Experiment: e, Topology: expanded}
}

func TestAPlanHasThePassagesBetweenBrokers(t *testing.T) {
	all := []string{"#"}
	type passages = []runapi.PlannedPassage
	for name, c := range map[string]struct {
		apps, nodes string
		want        passages
	}{
		"brokers that nothing joins": {"[{name: a, mosquitto: {}}]", "[{name: hq, networks: [lan], apps: [a]}, {name: veh, networks: [lan], apps: [a]}]", nil},
		"a bridge of everything": {
			"[{name: a, mosquitto: {}}, {name: b, mosquitto: {bridges: [{to: a}]}}]",
			"[{name: hq, networks: [lan], apps: [a]}, {name: veh, networks: [lan], apps: [b]}]",
			passages{{From: "veh/b", To: "hq/a", Filters: all}, {From: "hq/a", To: "veh/b", Filters: all}},
		},
		"a bridge with topics each way": {
			"[{name: a, mosquitto: {}}, {name: b, mosquitto: {bridges: [{to: a, topics: [{filter: i/#, direction: in}, {filter: o/#, direction: out}, {filter: b/#}]}]}}]",
			"[{name: hq, networks: [lan], apps: [a]}, {name: veh, networks: [lan], apps: [b]}]",
			passages{{From: "veh/b", To: "hq/a", Filters: []string{"o/#", "b/#"}}, {From: "hq/a", To: "veh/b", Filters: []string{"i/#", "b/#"}}},
		},
		"a bridge that only takes": {
			"[{name: a, mosquitto: {}}, {name: b, mosquitto: {bridges: [{to: a, topics: [{filter: i/#, direction: in}]}]}}]",
			"[{name: hq, networks: [lan], apps: [a]}, {name: veh, networks: [lan], apps: [b]}]",
			passages{{From: "hq/a", To: "veh/b", Filters: []string{"i/#"}}},
		},
		"a bridge with prefixes": {
			`[{name: a, mosquitto: {}}, {name: b, mosquitto: {bridges: [{to: a, topics: [{filter: o/#, direction: out, localPrefix: l/, remotePrefix: r/},
			  {filter: b/#, localPrefix: l/, remotePrefix: r/}, {filter: i/#, direction: in, remotePrefix: x/}]}]}}]`,
			"[{name: hq, networks: [lan], apps: [a]}, {name: veh, networks: [lan], apps: [b]}]",
			passages{{From: "veh/b", To: "hq/a", Filters: []string{"o/#", "b/#"}, StripPrefix: "l/", AddPrefix: "r/"},
				{From: "hq/a", To: "veh/b", Filters: []string{"b/#"}, StripPrefix: "r/", AddPrefix: "l/"},
				{From: "hq/a", To: "veh/b", Filters: []string{"i/#"}, StripPrefix: "x/"}},
		},
		"a cluster": {
			"[{name: r, rabbitmq: {cluster: true}}]", "[{name: hq, networks: [lan], apps: [r]}, {name: veh, networks: [lan], apps: [r]}]",
			passages{{From: "hq/r", To: "veh/r", Filters: all}, {From: "veh/r", To: "hq/r", Filters: all}},
		},
		"the same brokers without a cluster": {
			"[{name: r, rabbitmq: {}}]", "[{name: hq, networks: [lan], apps: [r]}, {name: veh, networks: [lan], apps: [r]}]", nil,
		},
		"a gateway": {
			"[{name: a, mosquitto: {}}, {name: g, mqttsnGateway: {to: a}}]", "[{name: hq, networks: [lan], apps: [a, g]}]",
			passages{{From: "hq/g", To: "hq/a", Filters: all}, {From: "hq/a", To: "hq/g", Filters: all}},
		},
		"a mediator": {
			"[{name: a, mosquitto: {}}, {name: p, prosody: {}}, {name: m, mediator: {legs: [{protocol: mqtt, to: a, topics: [t/#], prefix: e7/}, {protocol: xmpp, to: p}]}}]",
			"[{name: hq, networks: [lan], apps: [a, p]}, {name: veh, networks: [lan], apps: [m]}]",
			passages{{From: "hq/a", To: "hq/p", Filters: []string{"t/#"}, StripPrefix: "e7/"}, {From: "hq/p", To: "hq/a", Filters: all, AddPrefix: "e7/"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(t, c.apps, c.nodes)
			if diff := cmp.Diff(c.want, passages(Plan(in, nil, nil).Passages)); diff != "" {
				t.Errorf("passages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPlanHasTheBrokersOfClients(t *testing.T) {
	in := inputOf(t, `
  - {name: a, mosquitto: {}}
  - {name: own, image: broker, command: [b]}
  - {name: sub, subscriber: {protocol: mqtt, to: a}}
  - {name: far, subscriber: {protocol: mqtt, to: veh/a, failover: [hq/a]}}
  - {name: tap, subscriber: {protocol: mqtt, to: own}}
  - {name: half, subscriber: {protocol: mqtt, to: hq/a, failover: [own]}}
  - {name: udp, subscriber: {protocol: mqtt-udp}}
  - {name: chat, script: {protocol: mqtt, to: hq/a, messages: [{at: 1s, from: hq, to: all}]}}`,
		"[{name: hq, networks: [lan], apps: [a, own, sub, far, tap, half, udp, chat]}, {name: veh, networks: [lan], apps: [a, sub, own]}]")
	got, hosts := map[string][]string{}, map[string]string{}
	for _, node := range Plan(in, nil, nil).Nodes {
		for _, app := range node.Apps {
			got[node.Name+"/"+app.Name] = app.Brokers
			if app.BrokerNode != "" {
				hosts[node.Name+"/"+app.Name] = app.BrokerNode
			}
		}
	}
	want := map[string][]string{
		"hq/a": nil, "hq/own": nil, "hq/sub": {"hq/a"}, "hq/far": {"veh/a", "hq/a"}, "hq/tap": nil, "hq/half": nil, "hq/udp": {"lan"}, "hq/chat": {"hq/a"},
		"veh/a": nil, "veh/sub": {"veh/a"}, "veh/own": nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("brokers of apps (-want +got):\n%s", diff)
	}
	wantHosts := map[string]string{"hq/sub": "hq", "hq/far": "veh", "hq/tap": "hq", "hq/half": "hq", "hq/chat": "hq", "veh/sub": "veh"}
	if diff := cmp.Diff(wantHosts, hosts); diff != "" {
		t.Errorf("nodes of brokers (-want +got):\n%s", diff)
	}
}
