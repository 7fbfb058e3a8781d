package render

import (
	"fmt"
	"strings"
	"testing"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestRequestsThatCannotArriveHaveWarnings(t *testing.T) {
	const (
		routing = ", routing: {protocol: olsrv2}"
		pairs   = "they have no network in common, and no routing domain or static route joins them"
		oneWay  = ", routing: {protocol: static, routes: [{to: 198.18.2.0/24, via: a-1}]}"
	)
	patient := []string{"duration: 2m", "duration: 20m", "via: near,", "via: near, timeout: 11m,"}
	with := func(edits ...string) []string { return append(patient, edits...) }
	unrouted := func(edits ...string) []string { return with(append([]string{routing, ""}, edits...)...) }
	for name, c := range map[string]struct {
		edits []string
		want  []string
	}{
		"all in one routing domain": {patient, nil},
		"no routing":                {unrouted(), []string{`spec.apps[0].messaging.messages[0]: Invalid value: "at 10s from a-2 to b-2": node a-2 has no route to node b-2: ` + pairs}},
		"routes in one direction": {with("198.18.1.0/24"+routing, "198.18.1.0/24"+oneWay, routing, ""),
			[]string{`node b-2 has no route to node a-2: ` + pairs + ", so that no response comes back"}},
		"messages within a network": {unrouted("- {at: 10s, from: a-2, to: b-2, text: are you there}", "- {at: 10s, from: a-2, to: a-1}", "- {at: 12s, from: b-2, to: all, text: moving}", "- {at: 12s, from: b-2, to: b}"), nil},
		"multicast to another network": {with("apps: [chat, report, far, rabbit]", "apps: [chat, report, far, rabbit, track]", "push: {to: a,", "push: {to: all,"),
			[]string{"spec.apps[1].messaging.push.to", "node a-1 sends it by multicast on network red, which goes one hop, and node b-1 receives on network blue"}},
		"a pair without a way": {unrouted("protocol: amqp, broker: rabbit", "protocol: http", "[blue, lead]", "[blue]"),
			[]string{`spec.apps[3].proxy.peer: Invalid value: "far": node a-1 has no route to node b-1: ` + pairs}},
		"a service behind the pair that it does not reach": {unrouted("networks: [blue], apps: [chat]", "networks: [red], apps: [report]", "from: [a-1], to: b-1", "from: [a-1], to: b-2", "[chat, report, far, rabbit]", "[far, rabbit]", "messages:\n      - {at: 10s, from: a-2, to: b-2, text: are you there}", "messages:",
			"      - {at: 12s, from: b-2, to: all, text: moving}\n", ""),
			[]string{`spec.apps[2].messaging.push.to: Invalid value: "b-2": node b-1 has no route to node b-2`}},
		"a client that gives up first": {nil, []string{`spec.apps[2].messaging.timeout: Invalid value: "60s": proxy near has the deadline 10m: a client that gives up before`}},
		"the pair's default deadline":  {[]string{", deadline: 10m", "", "via: near,", "via: near, timeout: 4m,"}, []string{"proxy near has the deadline 5m"}},
		"a client without a way to its proxy": {unrouted("multicast: true, receipt: false, ", "", "apps: [chat, track]", "apps: [chat, track, report]", "networks: [red, lead], apps", "networks: [lead], apps", "via: near", "via: a-1/near", "from: [a-1]", "from: [a-2]"),
			[]string{`spec.apps[2].messaging.via: Invalid value: "a-1/near": node a-2 has no route to node a-1`}},
	} {
		t.Run(name, func(t *testing.T) {
			in, errs := exchanging(t, c.edits...)
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			said := ""
			for _, warning := range SpecWarnings(in, nil, nil) {
				said += warning.Error() + "\n"
			}
			if (said == "") != (c.want == nil) {
				t.Errorf("it says %q; want %q", said, c.want)
			}
			for _, want := range c.want {
				if !strings.Contains(said, want) {
					t.Errorf("it says %q; want %q", said, want)
				}
			}
		})
	}
}

func TestOnlyClientsNeedAWayToTheirProxy(t *testing.T) {
	for from, want := range map[string]string{"client": "", "hq": `spec.apps[0].messaging.via: Invalid value: "near": node hq has no route to node p`} {
		to := map[string]string{"client": "hq", "hq": "client"}[from]
		in := companyOf(t, `
metadata: {name: apart}
spec:
  networks: [{name: left, subnet: 198.18.1.0/24, link: {}}, {name: middle, subnet: 198.18.2.0/24, link: {}}, {name: right, subnet: 198.18.3.0/24, link: {}}]
  apps: [{name: rest, messaging: {transport: http, via: near, timeout: 5m, push: {from: [`+from+`], to: `+to+`, period: 1s}}}, {name: near, proxy: {peer: far}}, {name: far, proxy: {}}]
  nodes: [{name: client, networks: [left], apps: [rest]}, {name: p, networks: [left, middle], apps: [near]}, {name: q, networks: [middle, right], apps: [far]}, {name: hq, networks: [right], apps: [rest]}]`)
		said := fmt.Sprint(requestWarnings(in))
		if want == "" && said != "[]" || !strings.Contains(said, want) {
			t.Errorf("from %s: it says %v; want %q", from, said, want)
		}
	}
}

func TestAScriptInAConfigMapIsSearchedForMessagesWithoutAWay(t *testing.T) {
	in, errs := exchanging(t, ", routing: {protocol: olsrv2}", "", "messages:\n      - {at: 10s, from: a-2, to: b-2, text: are you there}\n      - {at: 11s, from: a-2, to: a, type: ALERT, text: contact}\n      - {at: 12s, from: b-2, to: all, text: moving}",
		"configMap: {name: scripts, key: chat.csv}")
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	in.Scripts = map[v1alpha1.KeyReference]string{{Name: "scripts", Key: "chat.csv"}: "at,from,to\n5s,b-1,b-2\n7s,a-2,b-1\n"}
	said := ""
	for _, warning := range SpecWarnings(in, nil, nil) {
		said += warning.Error() + "\n"
	}
	if want := `spec.apps[0].messaging.configMap: Invalid value: "at 7s from a-2 to b-1": node a-2 has no route to node b-1`; !strings.Contains(said, want) {
		t.Errorf("it says %q; want %q", said, want)
	}
}

func TestClientsWithoutAStaticRouteToTheirBrokerOrBackHaveWarnings(t *testing.T) {
	const (
		there = "{nodes: [veh], to: 198.18.1.0/24, via: relay}"
		back  = "{nodes: [hq], to: 198.18.2.0/24, via: relay}"
		pairs = "they have no network in common, and no routing domain or static route joins them"
	)
	client, bridge := "{name: own, publisher: {protocol: mqtt, to: broker, period: 1s}}", "{name: own, mosquitto: {bridges: [{to: broker}]}}"
	for name, c := range map[string]struct{ app, left, right, want string }{
		"routes both ways":     {client, back, there, ""},
		"no route back":        {client, "", there, `spec.apps[1].publisher.to: Invalid value: "broker": node hq has no route to node veh: ` + pairs + ", so that no response comes back"},
		"no route there":       {client, back, "", `"broker": node veh has no route to node hq: ` + pairs},
		"a bridge":             {bridge, "", there, "spec.apps[1].mosquitto.bridges[0].to: Invalid value: \"broker\": node hq has no route to node veh"},
		"a gateway":            {"{name: own, mqttsnGateway: {to: broker}}", "", there, "spec.apps[1].mqttsnGateway.to"},
		"a mediator":           {"{name: own, mediator: {legs: [{protocol: mqtt, to: broker}]}}", "", there, "spec.apps[1].mediator.legs[0].to"},
		"a further broker":     {"{name: own, subscriber: {protocol: mqtt, to: near, failover: [broker]}}", "", there, "spec.apps[1].subscriber.failover[0]"},
		"a broadcast by veh":   {"{name: own, publisher: {protocol: mqtt-udp, period: 1s}}", "", "", ""},
		"a broker on the node": {"{name: own, publisher: {protocol: mqtt, to: near, period: 1s}}", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := companyOf(t, `
metadata: {name: far}
spec:
  networks:
  - {name: left, subnet: 198.18.1.0/24, link: {}, routing: {protocol: static, routes: [`+c.left+`]}}
  - {name: right, subnet: 198.18.2.0/24, link: {}, routing: {protocol: static, routes: [`+c.right+`]}}
  apps: [{name: broker, mosquitto: {}}, `+c.app+`, {name: near, vernemq: {}}]
  nodes: [{name: hq, networks: [left], apps: [broker]}, {name: relay, networks: [left, right]}, {name: veh, networks: [right], apps: [own, near]}]`)
			wantSaid(t, name, brokerWarnings(in), c.want)
		})
	}
}

func TestAPairWithoutAStaticRouteToItsBrokerHasAWarning(t *testing.T) {
	const there, back = "{nodes: [veh], to: 198.18.1.0/24, via: relay}", "{nodes: [hq], to: 198.18.2.0/24, via: relay}"
	for name, c := range map[string]struct{ left, right, near, want string }{
		"routes both ways":       {back, there, "veh", ""},
		"no way of the near one": {back, "", "veh", `spec.apps[1].proxy.broker: Invalid value: "rabbit": node veh has no route to node hq: `},
		"no way of the far one":  {back, "", "base", `spec.apps[1].proxy.broker: Invalid value: "rabbit": node veh has no route to node hq: `},
		"no way back from it":    {"", there, "veh", "node hq has no route to node veh: "},
	} {
		t.Run(name, func(t *testing.T) {
			far := map[string]string{"veh": "base", "base": "veh"}[c.near]
			runs := func(node string) string { return map[string]string{c.near: "near", far: "far"}[node] }
			in := companyOf(t, `
metadata: {name: far}
spec:
  networks:
  - {name: left, subnet: 198.18.1.0/24, link: {}, routing: {protocol: static, routes: [`+c.left+`]}}
  - {name: right, subnet: 198.18.2.0/24, link: {}, routing: {protocol: static, routes: [`+c.right+`]}}
  apps: [{name: rabbit, rabbitmq: {}}, {name: near, proxy: {peer: far, protocol: amqp, broker: rabbit}}, {name: far, proxy: {}}]
  nodes: [{name: hq, networks: [left], apps: [rabbit]}, {name: relay, networks: [left, right]}, {name: veh, networks: [right], apps: [`+runs("veh")+`]}, {name: base, networks: [left], apps: [`+runs("base")+`]}]`)
			wantSaid(t, name, requestWarnings(in), c.want)
		})
	}
}
