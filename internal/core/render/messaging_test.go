package render

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/messagingconfig"
	"vignette.dev/vignette/internal/proxyconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps/messaging"
	"vignette.dev/vignette/operators/apps/proxy"
)

// exchanging is an experiment with messaging services and proxies, and its errors.
func exchanging(t *testing.T, edits ...string) (Input, field.ErrorList) {
	t.Helper()
	e := edited(t, "requests.yaml", edits...)
	for i := range e.Spec.Apps { // the API server's defaults
		if m := e.Spec.Apps[i].Messaging; m != nil && m.Timeout == "" {
			m.Timeout = "60s"
		}
	}
	e.Spec.Drain = v1alpha1.Drain{Max: "30s", QuietFor: "20s"}
	expanded, errs := topology.Expand(&e.Spec)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	in := Input{Experiment: e, Topology: expanded, Options: quickstart(t).Options}
	errs = append(expanded.CheckReferences(&e.Spec), CheckMessaging(&e.Spec, expanded)...)
	return in, append(append(errs, CheckScripts(in)...), CheckVia(in)...)
}

func TestConfigurationsOfRequestsMatchTheirGoldenFiles(t *testing.T) {
	in, errs := exchanging(t)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	services, proxies := map[string]messagingconfig.Config{}, map[string]proxyconfig.Config{}
	for _, sites := range MakeSites(in) {
		for _, site := range sites {
			name := site.Instances[0]
			switch {
			case site.App.Messaging != nil:
				services[name] = messaging.Config(site)
				if err := services[name].Validate(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			case site.App.Proxy != nil:
				proxies[name] = proxy.Config(site)
				if err := proxies[name].Validate(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
	checkGolden(t, "requests-services", plain(t, services))
	checkGolden(t, "requests-proxies", plain(t, proxies))
	checkGolden(t, "requests-plan", Plan(in, nil, map[string]types.UID{}).Nodes)
}

// plain is a value as its JSON has it.
func plain(t *testing.T, value any) (made any) {
	t.Helper()
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &made)
	}
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestEncodingsOfJSONCarryControlCharacters(t *testing.T) {
	for _, encoding := range []string{"json", "cbor"} {
		if _, errs := exchanging(t, "encoding: cbor", "encoding: "+encoding, "text: moving", `text: "moving\a"`); len(errs) > 0 {
			t.Errorf("%s: %v", encoding, errs.ToAggregate())
		}
	}
}

func TestAMessageThatIsSmallOnceItIsEncodedFitsADatagram(t *testing.T) {
	edits := []string{"transport: coap\n", "transport: soap-udp\n      port: 5700\n      soap: {envelope: EXI}\n", "      encoding: cbor\n      coap: {ackTimeout: 5s, maxRetransmit: 2}\n", "      compression: none\n",
		"text: moving", "text: moving, bytes: 64000"}
	if _, errs := exchanging(t, edits...); len(errs) > 0 {
		t.Errorf("EXI: %v", errs.ToAggregate())
	}
	edits[1], edits[3], edits[5] = "transport: soap-udp\n      port: 5700\n", "      compression: gzip\n", "text: moving, bytes: 65000"
	if _, errs := exchanging(t, edits...); len(errs) > 0 {
		t.Errorf("gzip: %v", errs.ToAggregate())
	}
}

func TestAScriptToAllAmongManyNodesHasEachAddressOnce(t *testing.T) {
	var messages strings.Builder
	for i := range 128 {
		fmt.Fprintf(&messages, "      - {at: %ds, from: a-2, to: all}\n", i)
	}
	edits := []string{"      - {at: 12s, from: b-2, to: all, text: moving}\n", messages.String(), "{name: b-2, group: b,", "{name: c, count: 200, group: b,", "to: b-2, text", "to: c-7, text"}
	in, errs := exchanging(t, edits...)
	if errs = append(errs, CheckSize(Pods(in), &in.Experiment.Spec)...); len(errs) > 0 {
		t.Errorf("128 messages to 201 nodes: %v", errs.ToAggregate())
	}
}

func TestAScriptTooLargeForItsNodeIsNamed(t *testing.T) {
	long := "text: " + strings.Repeat("x", 4096)
	messages := strings.Repeat("      - {at: 12s, from: b-2, to: all, "+long+"}\n", 40)
	in, errs := exchanging(t, "      - {at: 12s, from: b-2, to: all, text: moving}\n", messages)
	errs = append(errs, CheckSize(Pods(in), &in.Experiment.Spec)...)
	if len(errs) != 1 || errs[0].Field != "spec.apps[0].messaging.messages" || !strings.Contains(errs[0].Error(), "split the script over several apps") {
		t.Errorf("errors %v; want one of spec.apps[0].messaging.messages", errs)
	}
}

func TestOnlyNodesThatSendNeedOneProxy(t *testing.T) {
	const push = "push: {to: hq, period: 1s"
	for name, c := range map[string]struct{ messaging, want string }{
		"the sender has its own":         {push + ", from: [veh]}", ""},
		"a sender without":               {push + ", from: [veh, base]}", `spec.apps[0].messaging.via: Invalid value: "near": node base does not run app "near" itself and 3 others do (veh-1, veh-2, veh-3 …): name one, such as veh-1/near to carry the requests of all nodes, or run near on node base too`},
		"all send":                       {push + "}", `node hq does not run app "near" itself`},
		"a service that only answers":    {"reply: gps", ""},
		"messages of those with one":     {"messages: [{at: 1s, from: veh-2, to: hq}]", ""},
		"a message of another":           {"messages: [{at: 1s, from: veh-2, to: hq}, {at: 2s, from: base, to: hq}]", `node base does not run app "near" itself`},
		"a table of those with one":      {"configMap: {name: tables, key: veh.csv}", ""},
		"a table of another":             {"configMap: {name: tables, key: base.csv}", `node base does not run app "near" itself`},
		"a table that is not known":      {"configMap: {name: other, key: base.csv}", ""},
		"an unknown table via something": {"configMap: {name: other, key: base.csv}, via: rest", `app "rest" is no proxy`},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(c.messaging, "via:") {
				c.messaging += ", via: near"
			}
			in := inputOf(t, "[{name: rest, messaging: {transport: http, "+c.messaging+"}}, {name: near, proxy: {peer: far}}, {name: far, proxy: {}}]",
				"[{name: hq, networks: [lan], apps: [rest, far]}, {name: base, networks: [lan], apps: [rest]}, {name: veh, count: 3, networks: [lan], apps: [rest, near]}]")
			in.Scripts = map[v1alpha1.KeyReference]string{{Name: "tables", Key: "veh.csv"}: "at,from,to\n1s,veh-1,hq\n", {Name: "tables", Key: "base.csv"}: "at,from,to\n1s,base,hq\n"}
			errs := CheckVia(in)
			if text := fmt.Sprint(errs); (len(errs) == 0) != (c.want == "") || !strings.Contains(text, c.want) {
				t.Errorf("errors %v; want %q", text, c.want)
			}
		})
	}
}

func TestFarProxiesShareANodeIfTheirLinksUseDifferentPorts(t *testing.T) {
	const both = "run them on different nodes, or give one pair another protocol"
	for name, c := range map[string]struct{ one, other, want string }{
		"by AMQP":          {"protocol: amqp, broker: rabbit", "protocol: amqp, broker: rabbit", ""},
		"by HTTP and AMQP": {"protocol: http", "protocol: amqp, broker: rabbit", ""},
		"by HTTP and CoAP": {"compression: gzip", "protocol: coap", ""},
		"by CoAP":          {"protocol: coap", "protocol: coap", "spec.apps[1].proxy: Invalid value: 3129: app far-2 on node b listens at port 3129 too: " + both},
		"by HTTP":          {"protocol: http", "deadline: 1h", both},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(t, "[{name: rabbit, rabbitmq: {}}, {name: far-1, proxy: {}}, {name: far-2, proxy: {}}, "+
				"{name: near-1, proxy: {peer: far-1, "+c.one+"}}, {name: near-2, proxy: {peer: far-2, port: 3130, "+c.other+"}}]",
				"[{name: a, networks: [lan], apps: [near-1, near-2]}, {name: b, networks: [lan], apps: [far-1, far-2, rabbit]}]")
			errs := CheckMessaging(&in.Experiment.Spec, in.Topology)
			if text := fmt.Sprint(errs); (len(errs) == 0) != (c.want == "") || !strings.Contains(text, c.want) {
				t.Errorf("errors %v; want %q", text, c.want)
			}
		})
	}
}

const ownServer = "[{name: client, messaging: {transport: http, server: tracks, port: 9000, path: /api, push: {from: [a], to: b, period: 1s}}}, {name: tracks, image: i, command: [/s]}, {name: chat, messaging: {transport: http, port: 9000}}]"

func TestAClientCallsTheNodesThatRunAServerOfTheUsersOwn(t *testing.T) {
	in := inputOf(t, ownServer, "[{name: a, networks: [lan], apps: [client, chat]}, {name: b, networks: [lan], apps: [tracks]}, {name: c, networks: [lan], apps: [tracks, client]}]")
	if errs := append(CheckMessaging(&in.Experiment.Spec, in.Topology), CheckScripts(in)...); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	for _, site := range MakeSites(in)["a"][:1] {
		config, r := messaging.Config(site), KindOf(site.App).Render(site)
		want := messagingconfig.Addressee{Address: "198.18.1.2:9000", Topic: "messaging/client/to/b"}
		if !config.ClientOnly || config.Path != "/api" || len(config.Addressees) != 1 || config.Addressees[0] != want {
			t.Errorf("config %+v; want a client of %v only", config, want)
		}
		if len(r.Subscriptions) > 0 {
			t.Errorf("the client subscribes to %v; want nothing, as it serves nobody", r.Subscriptions)
		}
	}
	for _, row := range Plan(in, nil, map[string]types.UID{}).Streams.Rows {
		if strings.Contains(row.Topic, "client") && len(row.Heard) > 0 {
			t.Errorf("topic %s is expected by %v; want by nobody, as no app subscribes to it", row.Topic, row.Heard)
		}
	}
}

func TestErrorsOfClientsOfOwnServersHaveFieldAndReason(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"an unknown server":       {"server: tracks", "server: traks", `messaging.server: Invalid value: "traks": there is no app "traks": did you mean tracks?`},
		"a server that is none":   {"server: tracks", "server: chat", `messaging.server: Invalid value: "chat": is no app of your own: want one with image and command`},
		"a server on no node":     {"apps: [tracks]", "apps: []", `messaging.server: Invalid value: "tracks": no node runs it`},
		"a client of nothing":     {", push: {from: [a], to: b, period: 1s}", "", "messaging: Invalid value: \"client\": calls server tracks and sends nothing"},
		"a reply of a client":     {"path: /api", "reply: gps", "messaging.reply: Forbidden: server tracks answers"},
		"multicast to a server":   {"http, server: tracks", "coap, multicast: true, server: tracks", "messaging.multicast: Forbidden"},
		"a path without a server": {"server: tracks, ", "", "messaging.path: Forbidden: path is for requests to a server of your own"},
		"a path with half a code": {"path: /api", "path: '/a?q=%2'", `messaging.path: Invalid value: "/a?q=%2": must be escaped as in URLs`},
		"a push to the client":    {"to: b", "to: a", `messaging.push.to: Invalid value: "a": does not run app tracks`},
		"a push from the server":  {"from: [a]", "from: [b]", "no node or group of this name runs app client"},
		"a message to the client": {"push: {from: [a], to: b, period: 1s}", "messages: [{at: 1s, from: a, to: a}]", "to a: no other node or group of this name runs app tracks"},
		"a server off the air":    {"{name: b, networks: [lan], ", "{name: b, ", "node b runs it and is on no network"},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := "[{name: a, networks: [lan], apps: [client]}, {name: b, networks: [lan], apps: [tracks]}]"
			if !strings.Contains(ownServer+nodes, c.from) {
				t.Fatalf("%q is not in the experiment", c.from)
			}
			in := inputOf(t, strings.Replace(ownServer, c.from, c.to, 1), strings.Replace(nodes, c.from, c.to, 1))
			if text := fmt.Sprint(append(CheckMessaging(&in.Experiment.Spec, in.Topology), CheckScripts(in)...)); !strings.Contains(text, c.want) {
				t.Errorf("errors %v; want %q", text, c.want)
			}
		})
	}
}

func TestAStopEndsAServiceThatOnlyAnswers(t *testing.T) {
	in := inputOf(t, "[{name: answers, messaging: {transport: coap, reply: gps}}, {name: sends, messaging: {transport: http, push: {from: [a], to: b, period: 1s}}}]",
		"[{name: a, networks: [lan], apps: [answers, sends]}, {name: b, networks: [lan], apps: [answers, sends]}]")
	for node, sites := range MakeSites(in) {
		for _, site := range sites {
			if r := KindOf(site.App).Render(site); r.DrainOnStop != (site.App.Name == "sends") {
				t.Errorf("app %s on node %s goes on after a stop: %v", site.App.Name, node, r.DrainOnStop)
			}
		}
	}
}

func TestAProxyFillsLessThanItsFolderMayHave(t *testing.T) {
	in := inputOf(t, "[{name: far, proxy: {}}, {name: near, proxy: {peer: far}}]", "[{name: a, networks: [lan], apps: [near]}, {name: b, networks: [lan], apps: [far]}]")
	for limit, want := range map[string]int{"0": 400, "1Gi": 400, "20Gi": 400, "500Mi": 200, "3Mi": 1} {
		in.Options.ScratchLimit = resource.MustParse(limit)
		for node, sites := range MakeSites(in) {
			if config := proxy.Config(sites[0]).WithDefaults(); config.Validate() != nil || config.Limits.DiskMiB != want {
				t.Errorf("with %s the proxy on node %s keeps up to %d MiB (%v); want %d", limit, node, config.Limits.DiskMiB, config.Validate(), want)
			}
		}
	}
}

func TestANearProxyAtTheLinksPortOfAFarOneIsRefused(t *testing.T) {
	in := inputOf(t, "[{name: far, proxy: {}}, {name: near, proxy: {peer: far}}, {name: back, proxy: {}}, {name: own, proxy: {peer: back, port: 3129}}]",
		"[{name: a, networks: [lan], apps: [near, back]}, {name: b, networks: [lan], apps: [far, own]}]")
	const want = "spec.apps[3].proxy.port: Invalid value: 3129: app far on node b listens at port 3129 too: give one of them another port, or run them on different nodes"
	if text := fmt.Sprint(CheckMessaging(&in.Experiment.Spec, in.Topology)); !strings.Contains(text, want) {
		t.Errorf("errors %v; want %q", text, want)
	}
}

func TestAServiceOverUDPMayHaveThePortThatGPSHasOverTCP(t *testing.T) {
	if _, errs := exchanging(t, "transport: coap\n", "transport: coap\n      port: 2947\n"); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
}

func TestErrorsOfRequestsHaveFieldAndReason(t *testing.T) {
	for name, c := range map[string]struct {
		edits       []string
		field, want string
	}{
		"a receipt that HTTP always has":     {[]string{"transport: soap, via: near", "transport: soap, via: near, receipt: false"}, "spec.apps[2].messaging.receipt", "HTTP always has a response"},
		"CoAP's settings with SOAP":          {[]string{"transport: coap", "transport: soap-udp"}, "spec.apps[0].messaging.coap", "coap is for coap, which is CoAP over UDP"},
		"multicast over TCP":                 {[]string{"transport: soap-udp", "transport: coap-tcp"}, "spec.apps[1].messaging.multicast", "multicast is for coap and soap-udp"},
		"EXI within EXI":                     {[]string{"encoding: exi, ", "encoding: exi, soap: {envelope: EXI}, "}, "spec.apps[1].messaging.encoding", "want xml, or soap.envelope XML"},
		"SOAP's settings with CoAP":          {[]string{"encoding: cbor", "encoding: cbor\n      soap: {unicastRepeat: 0}"}, "spec.apps[0].messaging.soap", "soap is for soap and soap-udp"},
		"a reply too large for the pair":     {[]string{"reply: bytes:2000", "reply: bytes:7000000"}, "spec.apps[2].messaging.reply", "want 6290688 at most with transport soap via a proxy"},
		"a payload too large for a datagram": {[]string{"encoding: exi, ", "", "payload: nffi, phase", "payload: \"bytes:60000\", phase"}, "spec.apps[1].messaging.push.payload", "want 48360 at most"},
		"tracks too many for a datagram":     {[]string{"encoding: exi, ", "", "payload: nffi, phase", "payload: \"nffi:100\", phase"}, "spec.apps[1].messaging.push.payload", "has 90900 bytes"},
		"an encoding of arbitrary bytes":     {[]string{"payload: nffi, phase", "payload: \"bytes:600\", phase"}, "spec.apps[1].messaging.encoding", "other payloads have one form"},
		"a payload from a file":              {[]string{"payload: nffi, phase", "payload: \"file:a/b\", phase"}, "spec.apps[1].messaging.push.payload", "no payload from files"},
		"a proxy at the metrics' port":       {[]string{"deadline: 10m}", "deadline: 10m, port: 9464}"}, "spec.apps[3].proxy.port", "are for metrics"},
		"a proxy at a broker's port":         {[]string{"deadline: 10m}", "deadline: 10m, port: 1883}", "apps: [chat, track, report, near]", "apps: [chat, track, report, near, rabbit]"}, "spec.apps[3].proxy.port", "app rabbit on node a-1 listens at port 1883 too"},
		"a proxy at Erlang's port":           {[]string{"deadline: 10m}", "deadline: 10m, port: 4369}", "apps: [chat, track, report, near]", "apps: [chat, track, report, near, rabbit]"}, "spec.apps[3].proxy.port", "app rabbit on node a-1 listens at port 4369 too"},
		"a service between brokers":          {[]string{"transport: soap, via", "transport: soap, port: 25672, via", "apps: [chat, track, report, near]", "apps: [chat, track, report, near, rabbit]"}, "spec.apps[2].messaging.port", "app rabbit on node a-1 listens at port 25672 too"},
		"a service among VerneMQ's ports":    {[]string{"transport: soap, via", "transport: soap, port: 9105, via", "rabbitmq: {}", "vernemq: {}", "apps: [chat, track, report, near]", "apps: [chat, track, report, near, rabbit]"}, "spec.apps[2].messaging.port", "app rabbit on node a-1 listens at port 9105 too"},
		"a proxy at the GPS's port":          {[]string{"deadline: 10m}", "deadline: 10m, port: 2947}"}, "spec.apps[3].proxy.port", "TCP port 2947 of a node is for its GPS: take another one"},
		"a client of the far proxy":          {[]string{"via: near", "via: b-1/far"}, "spec.apps[2].messaging.via", "is the far proxy of its pair"},
		"settings of UDP over TCP":           {[]string{"transport: coap\n", "transport: coap-tcp\n"}, "spec.apps[0].messaging.coap", "coap is for coap, which is CoAP over UDP"},
		"a timeout of two weeks":             {[]string{"transport: soap, via", "transport: soap, timeout: 400h, via"}, "spec.apps[2].messaging.timeout", "240h at most"},
		"an acknowledgement at once":         {[]string{"ackTimeout: 5s", "ackTimeout: 0s"}, "spec.apps[0].messaging.coap.ackTimeout", "must be from 1ms to 1h"},
		"a push to its only sender":          {[]string{"from: [a-1], to: b-1", "from: [a-1], to: a-1"}, "spec.apps[2].messaging.push.to", "reaches nobody but its sender"},
		"multicast over two networks":        {[]string{"{name: a-1, group: a, networks: [red, lead]", "{name: a-1, group: a, networks: [lead, red]"}, "spec.apps[1].messaging.network", "nodes a-1 and a-2 of group a have different first networks"},
		"compression of arbitrary bytes":     {[]string{"transport: soap-udp, encoding: exi, ", "transport: coap, port: 5700, compression: gzip, ", "payload: nffi, phase", "payload: gps, phase"}, "spec.apps[1].messaging.compression", "other payloads have one form"},
		"positions in JSON by SOAP":          {[]string{"payload: nffi}, reply", "payload: geojson}, reply"}, "spec.apps[2].messaging.push.payload", "SOAP carries XML, and geojson has none"},
		"a network without multicast":        {[]string{"encoding: cbor", "encoding: cbor\n      network: red"}, "spec.apps[0].messaging.network", "network is for multicast"},
		"CBOR of an XML model":               {[]string{"payload: nffi}, reply", "payload: nffi}, encoding: cbor, reply"}, "spec.apps[2].messaging.encoding", "model nffi"},
		"JSON in SOAP":                       {[]string{"transport: coap\n", "transport: soap\n", "encoding: cbor", "encoding: json", "      coap: {ackTimeout: 5s, maxRetransmit: 2}\n", ""}, "spec.apps[0].messaging.encoding", "SOAP carries XML"},
		"a reply too small for its id":       {[]string{"reply: bytes:2000", "reply: bytes:8"}, "spec.apps[2].messaging.reply", "its message id has to fit"},
		"a payload that is none":             {[]string{"payload: nffi, phase", "payload: video, phase"}, "spec.apps[1].messaging.push.payload", `"video": want geojson, geojson-ids, nffi, nffi-long, nffi:N, gps, image:N or bytes:N`},
		"messages and a push":                {[]string{"encoding: cbor", "encoding: cbor\n      push: {to: all, period: 1s}"}, "spec.apps[0].messaging", "several of messages, configMap and push"},
		"a push to nobody":                   {[]string{"push: {to: a,", "push: {to: c,"}, "spec.apps[1].messaging.push.to", "no node or group of this name runs app track"},
		"a push to a node without the app":   {[]string{"push: {to: a,", "push: {to: b-2,"}, "spec.apps[1].messaging.push.to", `"b-2": does not run app track, and its requests are for nodes that do: run it there too, or name another node, a group or all. For a server of your own, name its app in server`},
		"a push to a misspelt group":         {[]string{"push: {to: a,", "push: {to: al,"}, "spec.apps[1].messaging.push.to", "no node or group of this name runs app track: did you mean all?"},
		"a push from nobody":                 {[]string{"from: [a-1]", "from: [a-2]"}, "spec.apps[2].messaging.push.from[0]", "no node or group of this name runs app report"},
		"a period of nothing":                {[]string{"period: 20s", "period: 0s"}, "spec.apps[2].messaging.push.period", "must be 1ms or more"},
		"a message from nobody":              {[]string{"from: b-2, to: all", "from: b-9, to: all"}, "spec.apps[0].messaging.messages[2]", "no node of this name runs app chat"},
		"a bell in XML":                      {[]string{"encoding: cbor", "encoding: xml", "text: are you there", "text: \"are you there\\a\""}, "spec.apps[0].messaging.messages[0]", "text has character U+0007 at 13, which XML 1.0 has not: want text without control characters, or encoding json or cbor"},
		"a bell in SOAP":                     {[]string{"transport: coap\n", "transport: soap\n", "      encoding: cbor\n      coap: {ackTimeout: 5s, maxRetransmit: 2}\n", "", "text: moving", "text: \"\\amoving\""}, "spec.apps[0].messaging.messages[2]", "text has character U+0007 at 0, which XML 1.0 has not: want text without control characters"},
		"a message too large for a datagram": {[]string{"transport: coap\n", "transport: soap-udp\n      port: 5700\n      model: operational\n", "      encoding: cbor\n      coap: {ackTimeout: 5s, maxRetransmit: 2}\n", "", "text: moving", "text: moving, bytes: 65000"}, "spec.apps[0].messaging.messages[2]", "bytes 65000: the message has 65640 bytes with model operational and encoding xml, and transport soap-udp carries 65507: use less"},
		"a text too large in XML":            {[]string{"transport: coap\n", "transport: coap\n      multicast: true\n      receipt: false\n      network: red\n", "encoding: cbor", "encoding: xml", "- {at: 12s, from: b-2, to: all, text: moving}", "- {at: 12s, from: a-1, to: all, text: moving, bytes: 65000}"}, "spec.apps[0].messaging.messages[2]", "with model military and encoding xml, and transport coap and multicast carries 65000: use less"},
		"an envelope too large for EXI":      {[]string{"reply: bytes:2000", "reply: bytes:5000000, soap: {envelope: EXI}", "via: near, ", ""}, "spec.apps[2].messaging.reply", "has 5000000 bytes: want 3144960 at most with transport soap and soap.envelope EXI"},
		"two services at one port":           {[]string{"transport: soap-udp,", "transport: coap, ", "encoding: exi, ", "encoding: xml, "}, "spec.apps[0].messaging.port", "app track on node a-1 listens at port 5683 too"},
		"a node that nobody reaches":         {[]string{"{name: b-2, group: b, networks: [blue], apps", "{name: b-2, group: b, apps"}, "spec.apps[0].messaging", "node b-2 runs it and is on no network"},
		"a proxy that nobody runs":           {[]string{"via: near", "via: neat"}, "spec.apps[2].messaging.via", `there is no app "neat"`},
		"a via that is no proxy":             {[]string{"via: near", "via: chat"}, "spec.apps[2].messaging.via", `app "chat" is no proxy`},
		"a proxy without its pair":           {[]string{"peer: far, ", "peer: chat, "}, "spec.apps[3].proxy.peer", `app "chat" is no proxy`},
		"a far proxy that nobody names":      {[]string{"proxy: {peer: far, protocol: amqp, broker: rabbit, compression: zstd, deadline: 10m}", "proxy: {}"}, "spec.apps[4].proxy", "no near proxy has it on node b-1 as its peer"},
		"a far proxy with settings":          {[]string{"proxy: {}", "proxy: {compression: gzip}"}, "spec.apps[4].proxy", "takes its settings from the near one"},
		"AMQP without a broker":              {[]string{"broker: rabbit, ", ""}, "spec.apps[3].proxy.broker", "protocol amqp needs a broker"},
		"a broker at each proxy":             {[]string{"apps: [chat, track, report, near]", "apps: [chat, track, report, near, rabbit]"}, "spec.apps[4].proxy", "broker rabbit of the near proxy is the one on a-1, and here the one on b-1: name one, such as b-1/rabbit"},
		"a broker without AMQP":              {[]string{"protocol: amqp", "protocol: coap"}, "spec.apps[3].proxy.broker", "broker is for protocol amqp"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := exchanging(t, c.edits...)
			for _, err := range errs {
				if err.Field == c.field && strings.Contains(err.Error(), c.want) {
					return
				}
			}
			t.Errorf("errors %v; want one of %s with %q", errs, c.field, c.want)
		})
	}
}

func TestAPairWithAMisspeltBrokerIsSaidOnce(t *testing.T) {
	if _, errs := exchanging(t, "broker: rabbit, ", "broker: rabit, "); len(errs) != 1 {
		t.Errorf("errors %v; want that of the near proxy alone", errs)
	}
}
