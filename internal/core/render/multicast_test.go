package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

const multicastSpec = `
networks:
- {name: lan, subnet: 198.18.1.0/24}
- {name: wan, subnet: 198.18.9.0/24, link: {rate: 9.8kbit}}
apps:
- {name: broker, zeromqBroker: {transport: pgm}}
- {name: other, zeromqBroker: {transport: tcp}}
- {name: picture, subscriber: {protocol: zeromq, to: hq/broker, topics: ["/NOR/#", "chat/+"]}}
- {name: bft, instances: 2, publisher: {protocol: zeromq, to: hq/broker, topic: "/{entity}", payload: geojson, period: 2s}}
- {name: chat, publisher: {protocol: zeromq, to: hq/broker, topic: "chat/{entity}", payload: geojson, period: 2s}, subscriber: {protocol: zeromq, to: hq/broker, topics: ["chat/+"]}}
- {name: plain, publisher: {protocol: zeromq, to: rear/other, topic: "/{entity}", payload: geojson, period: 2s}}
nodes:
- {name: hq, networks: [wan], apps: [broker]}
- {name: veh, networks: [lan, wan], apps: [picture, bft, chat]}
- {name: uav, networks: [wan], apps: [bft]}
- {name: rear, networks: [wan, lan], apps: [other, plain]}
`

func multicastSites(t *testing.T, spec string) (Sites, error) {
	t.Helper()
	e := &v1alpha1.Experiment{}
	if err := yaml.UnmarshalStrict([]byte(spec), &e.Spec); err != nil {
		t.Fatal(err)
	}
	expanded, errs := topology.Expand(&e.Spec)
	if errs = append(errs, expanded.CheckReferences(&e.Spec)...); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	return MakeSites(Input{Experiment: e, Topology: expanded}), nil
}

func TestEveryPublisherOfANodeHasAPortOfItsOwnAndTheBrokerKnowsThemAll(t *testing.T) {
	sites, err := multicastSites(t, multicastSpec)
	if err != nil {
		t.Fatal(err)
	}
	type multicast struct {
		Interface string
		PGM       *apps.PGM
	}
	got := map[string]multicast{}
	for _, all := range sites {
		for _, s := range all {
			got[s.Node+"/"+s.App.Name] = multicast{s.Interface, s.PGM}
		}
	}
	const group, subscribers = "239.255.9.1:", "239.254.9.1:5556"
	want := map[string]multicast{
		"hq/broker":   {"wan", &apps.PGM{Publishers: []string{group + "5601", group + "5602", group + "5603"}, Subscribers: subscribers, RateKilobits: 12, Filters: []string{"/NOR/#", "chat/+"}}},
		"veh/picture": {"wan", &apps.PGM{Subscribers: subscribers, RateKilobits: 12}},
		"veh/bft":     {"wan", &apps.PGM{Publishers: []string{group + "5601", group + "5602"}, Subscribers: subscribers, RateKilobits: 12}},
		"veh/chat":    {"wan", &apps.PGM{Publishers: []string{group + "5603"}, Subscribers: subscribers, RateKilobits: 12}},
		"uav/bft":     {"wan", &apps.PGM{Publishers: []string{group + "5601", group + "5602"}, Subscribers: subscribers, RateKilobits: 12}},
		"rear/other":  {},
		"rear/plain":  {},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAPGMSenderKeepsToTheRateOfItsNetworksModel(t *testing.T) {
	rate := func(r v1alpha1.DataRate) *v1alpha1.LinkModel { return &v1alpha1.LinkModel{Rate: &r} }
	for name, c := range map[string]struct {
		waveform v1alpha1.WaveformSpec
		base     []string
		hq, veh  int // kbit/s
	}{
		"of a link":                 {v1alpha1.WaveformSpec{Link: rate("250kbit")}, nil, 250, 250},
		"of a link without a rate":  {v1alpha1.WaveformSpec{Link: &v1alpha1.LinkModel{}}, nil, maxPGMKilobits, maxPGMKilobits},
		"of a downlink at the base": {v1alpha1.WaveformSpec{Link: rate("250kbit"), Downlink: rate("2Mbit")}, []string{"hq"}, 2000, 250},
		"of a radio":                {v1alpha1.WaveformSpec{RFPipe: &v1alpha1.RFPipeModel{Rate: "64kbit"}}, nil, 64, 64},
	} {
		t.Run(name, func(t *testing.T) {
			in := companyOf(t, "spec:"+strings.ReplaceAll(multicastSpec, "\n", "\n  "))
			wan := v1alpha1.Network{Name: "wan", Waveform: "named", Base: c.base}
			in.Experiment.Spec.Networks[1], in.Waveforms = wan, map[string]v1alpha1.WaveformSpec{"wan": c.waveform}
			check := func(how string) {
				t.Helper()
				sites := MakeSites(in)
				if hq, veh := sites["hq"][0].PGM.RateKilobits, sites["veh"][0].PGM.RateKilobits; hq != c.hq || veh != c.veh {
					t.Errorf("waveform %s: hq sends at %d kbit/s and veh at %d; want %d and %d", how, hq, veh, c.hq, c.veh)
				}
			}
			check("named")
			in.Experiment.Spec.Networks[1], in.Waveforms = WithWaveform(wan, c.waveform), nil
			check("in place")
		})
	}
}

func TestClientsThatMulticastDoesNotReachAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"on another network than its broker's first": {"{name: hq, networks: [wan]", "{name: hq, networks: [lan, wan]", `node uav is not on network "lan"`},
		"on the broker's own node":                   {"apps: [broker]", "apps: [broker, picture]", `node hq has broker "broker"`},
		"of a list of brokers":                       {"chat/+\"]}}\n- {name: bft", "chat/+\"], failover: [rear/other]}}\n- {name: bft", `broker "broker" uses transport pgm, and failover is for connections that end`},
		"after a broker by TCP":                      {"{protocol: zeromq, to: rear/other,", "{protocol: zeromq, to: rear/other, failover: [hq/broker],", `spec.apps[5].publisher.failover[0]: Invalid value: "hq/broker"`},
		"that is a mediator":                         {"{name: plain, publisher: {protocol: zeromq, to: rear/other, topic: \"/{entity}\", payload: geojson, period: 2s}}", "{name: plain, mediator: {legs: [{protocol: zeromq, to: hq/broker}, {protocol: zeromq, to: rear/other}]}}", "mediators know only tcp"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := multicastSites(t, strings.Replace(multicastSpec, c.old, c.new, 1)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want an error with %q", err, c.want)
			}
		})
	}
}

// rawSpec is multicastSpec by raw sockets, with the broker and its clients on virtual machines.
func rawSpec() string {
	spec := strings.Replace(multicastSpec, "transport: pgm}", "transport: pgm-raw}", 1)
	for _, node := range []string{"hq", "veh", "uav"} {
		spec = strings.Replace(spec, "{name: "+node+",", "{name: "+node+", runtime: vm,", 1)
	}
	return spec
}

func TestRawSocketsAreForBrokersAndClientsOnVirtualMachines(t *testing.T) {
	if _, err := multicastSites(t, rawSpec()); err != nil {
		t.Errorf("all on machines: %v", err)
	}
	for node, want := range map[string]string{
		"hq":  `spec.apps[0].zeromqBroker.transport: Invalid value: "pgm-raw": node hq is a pod, which may not open raw sockets (NET_RAW): make it a virtual machine (runtime: vm), or use transport pgm, which is PGM in UDP`,
		"uav": `spec.apps[3].publisher.to: Invalid value: "hq/broker": broker "broker" uses transport pgm-raw, and node uav is a pod, which may not open raw sockets`,
	} {
		if _, err := multicastSites(t, strings.Replace(rawSpec(), "{name: "+node+", runtime: vm,", "{name: "+node+",", 1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("node %s is a pod: %v; want %s", node, err, want)
		}
	}
}

func TestOnlyAppsByRawSocketsMayOpenThemInAGuest(t *testing.T) {
	in := companyOf(t, "metadata: {name: raw}\nspec:"+strings.ReplaceAll(strings.Replace(rawSpec(), "apps: [other, plain]", "apps: [other, plain], runtime: vm", 1), "\n", "\n  "))
	got := map[string]bool{}
	sites := MakeSites(in)
	for _, node := range in.Topology.Nodes {
		for _, app := range Guest(in, node, sites[node.Name], nil).Apps {
			got[node.Name+"/"+app.Agent.App] = app.RawSockets
			if app.RawSockets && !strings.Contains(app.Agent.Files[0].Content, `"transport":"pgm-raw"`) {
				t.Errorf("%s has the configuration %s; want transport pgm-raw", app.Agent.App, app.Agent.Files[0].Content)
			}
		}
	}
	want := map[string]bool{"hq/broker": true, "veh/picture": true, "veh/bft": true, "veh/chat": true, "uav/bft": true, "rear/other": false, "rear/plain": false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
