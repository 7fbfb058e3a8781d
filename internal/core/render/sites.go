package render

import (
	"fmt"
	"strings"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
	"vignette.dev/vignette/operators/apps/image"
	"vignette.dev/vignette/operators/apps/mediator"
	"vignette.dev/vignette/operators/apps/messagescript"
	"vignette.dev/vignette/operators/apps/messaging"
	"vignette.dev/vignette/operators/apps/mgen"
	"vignette.dev/vignette/operators/apps/mosquitto"
	"vignette.dev/vignette/operators/apps/mqttsngateway"
	"vignette.dev/vignette/operators/apps/prosody"
	"vignette.dev/vignette/operators/apps/proxy"
	"vignette.dev/vignette/operators/apps/rabbitmq"
	"vignette.dev/vignette/operators/apps/traffic"
	"vignette.dev/vignette/operators/apps/vernemq"
	"vignette.dev/vignette/operators/apps/wsnbroker"
	"vignette.dev/vignette/operators/apps/zeromqbroker"
)

// appKinds are the kinds of app, by the fields of the API that make an app of them.
var appKinds = map[string]apps.Kind{
	"mosquitto":     mosquitto.Kind{},
	"vernemq":       vernemq.Kind{},
	"rabbitmq":      rabbitmq.Kind{},
	"prosody":       prosody.Kind{},
	"wsnBroker":     wsnbroker.Kind{},
	"mqttsnGateway": mqttsngateway.Kind{},
	"zeromqBroker":  zeromqbroker.Kind{},
	"mediator":      mediator.Kind{},
	"publisher":     traffic.Kind{},
	"subscriber":    traffic.Kind{},
	"mgen":          mgen.Kind{},
	"script":        messagescript.Kind{},
	"messaging":     messaging.Kind{},
	"proxy":         proxy.Kind{},
	"command":       image.Kind{},
}

// KindOf is the kind of an app, nil for none.
func KindOf(app v1alpha1.App) apps.Kind { return appKinds[app.Kind()] }

// Metrics ports that radiod allows on eth0. The first instance of a node's a-th app has firstMetricsPort + a.
const (
	firstMetricsPort = 9464
	lastMetricsPort  = 9499
)

// Sites are all apps of an experiment, by node and in each node's order.
type Sites map[string][]apps.Site

// MakeSites resolves the references of the apps of every node. The topology's references must be valid.
func MakeSites(in Input) Sites {
	m := siteMaker{in: in, entities: map[string]int{}, instances: map[string]int{}, scripts: newScripts(in)}
	sites := Sites{}
	for _, node := range in.Topology.Nodes {
		next := firstMetricsPort + len(node.Apps)
		for i, name := range node.Apps {
			app, _ := in.Topology.App(name)
			site := m.site(node, app)
			site.MetricsPorts = metricsPorts(firstMetricsPort+i, &next, len(site.Instances))
			sites[node.Name] = append(sites[node.Name], site)
		}
	}
	assignPredefinedTopics(sites)
	return sites
}

func metricsPorts(first int, next *int, instances int) []int {
	ports := make([]int, instances)
	ports[0] = first
	for i := 1; i < instances && *next <= lastMetricsPort; i++ {
		ports[i] = *next
		*next++
	}
	return ports
}

type siteMaker struct {
	in Input
	// entities counts entities by country, instances counts instances by app.
	entities, instances map[string]int
	scripts             *scripts
}

func (m *siteMaker) site(node topology.Node, app v1alpha1.App) apps.Site {
	t := m.in.Topology
	site := apps.Site{
		App: app, Node: node.Name, Group: node.Group, Seed: m.in.Experiment.Spec.Seed,
		Instances: topology.Instances(node.Name, app.Name, app.Instances), Images: m.in.Options.Apps,
		FirstIndex: m.instances[app.Name], TotalInstances: len(t.NodesRunning(app.Name)) * max(int(app.Instances), 1),
		MemoryLimit: memoryLimit(m.in, node, app), ScratchLimit: m.in.Options.ScratchLimit.Value(),
	}
	m.instances[app.Name] += len(site.Instances)
	m.client(&site, node, app)
	m.pgm(&site, node, app)
	site.Servers, site.ClusterPeers = m.servers(node, app), m.clusterPeers(node, app)
	if app.Publisher != nil {
		site.Senders = m.senders(app.Publisher.Country, node.Group, len(site.Instances))
		site.Platforms = reportedPlatforms(site)
	}
	m.messaging(&site, node, app)
	m.proxies(&site, node, app)
	site.Flows, site.Scripted, site.Pattern = m.scripts.flows(node, app), m.scripts.messages(node, app), m.scripts.pattern(app)
	return site
}

// client resolves the broker or the broadcast network of a publisher or subscriber.
func (m *siteMaker) client(site *apps.Site, node topology.Node, app v1alpha1.App) {
	var protocol v1alpha1.Protocol
	var to, network string
	var failover []string
	switch p, s := app.Publisher, app.Subscriber; {
	case p != nil:
		protocol, to, network, failover = p.Protocol, p.To, p.Network, p.Failover
	case s != nil:
		protocol, to, network, failover = s.Protocol, s.To, s.Network, s.Failover
	case app.Script != nil:
		protocol, to, network = v1alpha1.Protocol(app.Script.Protocol), app.Script.To, app.Script.Network
	default:
		return
	}
	if !trafficconfig.ProtocolOf(protocol).Broadcast {
		site.Broker = m.server(node, protocol, to)
		for _, further := range failover {
			site.Failover = append(site.Failover, m.server(node, protocol, further))
		}
		return
	}
	site.Interface, _ = m.in.Topology.BroadcastNetwork(node, network)
	site.Broadcast = fmt.Sprintf("%s:%d", m.in.Topology.Broadcast(site.Interface), apps.Port(protocol, v1alpha1.App{}))
}

// server resolves a reference to a broker.
func (m *siteMaker) server(node topology.Node, protocol v1alpha1.Protocol, to string) apps.Server {
	broker, _ := m.in.Topology.Broker(node, protocol, to)
	app, _ := m.in.Topology.BrokerAppOn(broker, protocol, to)
	host := broker.Name
	if host == node.Name {
		host = "127.0.0.1" // a node without a network has no other address
	}
	return apps.Server{Address: fmt.Sprintf("%s:%d", host, apps.Port(protocol, app)), Node: broker.Name, App: app}
}

// servers resolves the brokers of gateways, mediators and bridges.
func (m *siteMaker) servers(node topology.Node, app v1alpha1.App) (servers []apps.Server) {
	if g := app.MQTTSNGateway; g != nil {
		servers = append(servers, m.server(node, v1alpha1.ProtocolMQTT, g.To))
	}
	if app.Mediator != nil {
		for _, leg := range app.Mediator.Legs {
			servers = append(servers, m.server(node, leg.Protocol, leg.To))
		}
	}
	if app.Mosquitto != nil {
		for _, bridge := range app.Mosquitto.Bridges {
			peer, _ := m.in.Topology.BridgePeer(node, bridge)
			far, _ := m.in.Topology.BrokerAppOn(peer, v1alpha1.ProtocolMQTT, bridge.To)
			servers = append(servers, apps.Server{Address: fmt.Sprintf("%s:%d", peer.Name, apps.Port(v1alpha1.ProtocolMQTT, far)), Node: peer.Name, App: far})
		}
	}
	return servers
}

// clusterPeers are the other nodes that run an app whose brokers form a cluster.
func (m *siteMaker) clusterPeers(node topology.Node, app v1alpha1.App) (peers []string) {
	if !(app.VerneMQ != nil && app.VerneMQ.Cluster) && !(app.RabbitMQ != nil && app.RabbitMQ.Cluster) {
		return nil
	}
	for _, host := range m.in.Topology.NodesRunning(app.Name) {
		if host.Name != node.Name {
			peers = append(peers, host.Name)
		}
	}
	return peers
}

// senders numbers the publishing instances of a country throughout the experiment, so that entities and message ids are
// unique.
func (m *siteMaker) senders(country, group string, count int) []apps.Sender {
	if country == "" {
		country = strings.ToUpper(group)
	}
	senders := make([]apps.Sender, count)
	for i := range senders {
		m.entities[country]++
		senders[i] = apps.Sender{
			Country: country, Unit: country + "-UNIT001",
			Entity: fmt.Sprintf("%s-S%03d", country, m.entities[country]),
		}
	}
	return senders
}
