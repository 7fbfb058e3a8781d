package render

import (
	"maps"
	"math"
	"net/netip"
	"slices"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/traffic/zeromq"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
	"vignette.dev/vignette/operators/apps/traffic"
)

// Multicast groups of a PGM broker, in the local scope of RFC 2365. They end with the last two bytes of the broker's address,
// so that brokers of one network have different groups.
const (
	publisherGroups  = 255 // 239.255.0.0/16
	subscriberGroups = 254 // 239.254.0.0/16, to which RFC 2365 lets the local scope grow
	// firstPublisherPort is that of a node's first publisher by PGM. Each has its own, for the requests to repeat lost data.
	firstPublisherPort = 5601
	// maxPGMKilobits is the rate in kbit/s for networks with a higher rate or none.
	maxPGMKilobits = 100_000
)

// pgm is the multicast of ZeroMQ's brokers by PGM and their clients.
func (m *siteMaker) pgm(site *apps.Site, node topology.Node, app v1alpha1.App) {
	brokerApp, broker := app, node
	if app.ZeroMQBroker == nil {
		brokerApp = site.Broker.App
		broker, _ = m.in.Topology.Node(site.Broker.Node)
	}
	if !brokerApp.ZeroMQBroker.Multicast() || len(broker.Attachments) == 0 {
		return
	}
	on := broker.Attachments[0]
	site.Interface = on.Network
	group := func(block byte, port int) string {
		low := on.Address.Addr().As4()
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{239, block, low[2], low[3]}), uint16(port)).String()
	}
	site.PGM = &apps.PGM{
		Subscribers:  group(subscriberGroups, apps.Port(v1alpha1.ProtocolZeroMQ, brokerApp)+1),
		RateKilobits: m.rateKilobits(node, on.Network),
	}
	var ports []int
	if app.ZeroMQBroker != nil {
		ports, site.PGM.Filters = m.pgmClients(broker, app)
	} else if app.Publisher != nil {
		ports = m.publisherPorts(node, app.Name)
	}
	for _, port := range ports {
		site.PGM.Publishers = append(site.PGM.Publishers, group(publisherGroups, port))
	}
}

// publisherPorts are those of an app's instances on a node.
func (m *siteMaker) publisherPorts(node topology.Node, name string) (ports []int) {
	next := firstPublisherPort
	for _, other := range node.Apps {
		app, _ := m.in.Topology.App(other)
		if app.Publisher == nil || app.Publisher.Protocol != v1alpha1.ProtocolZeroMQ {
			continue
		}
		for range max(int(app.Instances), 1) {
			if other == name {
				ports = append(ports, next)
			}
			next++
		}
	}
	return ports
}

// pgmClients are the ports of a broker's publishers and the filters of its subscribers, each once.
func (m *siteMaker) pgmClients(broker topology.Node, brokerApp v1alpha1.App) ([]int, []string) {
	ports, filters := map[int]bool{}, map[string]bool{}
	for _, node := range m.in.Topology.Nodes {
		for _, name := range node.Apps {
			app, _ := m.in.Topology.App(name)
			if p := app.Publisher; p != nil && m.isClient(node, p.Protocol, p.To, broker, brokerApp) {
				for _, port := range m.publisherPorts(node, name) {
					ports[port] = true
				}
			}
			if s := app.Subscriber; s != nil && m.isClient(node, s.Protocol, s.To, broker, brokerApp) {
				for i := range max(int(app.Instances), 1) {
					for _, filter := range traffic.Subscriptions(app, node.Name, i) {
						filters[filter] = true
					}
				}
			}
		}
	}
	if len(ports) == 0 { // publishers of the user's own
		ports[firstPublisherPort] = true
	}
	return slices.Sorted(maps.Keys(ports)), slices.Sorted(maps.Keys(filters))
}

func (m *siteMaker) isClient(node topology.Node, protocol v1alpha1.Protocol, to string, broker topology.Node, brokerApp v1alpha1.App) bool {
	if protocol != v1alpha1.ProtocolZeroMQ {
		return false
	}
	server := m.server(node, protocol, to)
	return server.Node == broker.Name && server.App.Name == brokerApp.Name
}

// rateKilobits is the maximum rate of a node that sends by PGM. It is that of its frames to all on the network, so that one sender
// never fills the network's queue.
func (m *siteMaker) rateKilobits(node topology.Node, on string) int {
	spec := &m.in.Experiment.Spec
	i := slices.IndexFunc(spec.Networks, func(n v1alpha1.Network) bool { return n.Name == on })
	network, waveform := spec.Networks[i], m.in.Waveforms[on]
	if inPlace, ok := InPlace(network); ok {
		waveform = inPlace
	}
	rate := waveform.RateBitsPerSecond()
	for _, from := range []string{everyNode, node.Group, node.Name} { // the most specific link holds
		for _, l := range links(network, waveform) {
			if l.From == from && l.To == everyNode && l.Rate != nil {
				rate = l.Rate.BitsPerSecond()
			}
		}
	}
	if rate == 0 {
		return maxPGMKilobits
	}
	return min(max(int(math.Round(rate/1000)), zeromq.MinPGMKilobits), maxPGMKilobits)
}
