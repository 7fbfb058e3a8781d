package render

import (
	"slices"
	"strings"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/apps"
	"vignette.dev/vignette/operators/apps/proxy"
)

// allTopics is the filter of all topics.
const allTopics = "#"

// brokerName names a broker in the plan.
func brokerName(node, app string) string { return node + "/" + app }

// brokersOf are the brokers of a site's instances, or the network on which they broadcast. It returns none if one of them is
// an image of the user, because such a broker may be joined to others in unknown passages.
func brokersOf(site apps.Site) (brokers []string) {
	if site.Broadcast != "" {
		return []string{site.Interface}
	}
	if site.App.Messaging != nil { // an app's requests reach its own servers only
		return []string{"messaging/" + site.App.Name}
	}
	if site.App.Proxy != nil { // what the link carries reaches the far proxy only
		return []string{proxy.Topic(site.Proxies.Far)}
	}
	if site.Broker.Node == "" {
		return nil
	}
	for _, server := range append([]apps.Server{site.Broker}, site.Failover...) {
		if server.App.Own() {
			return nil
		}
		brokers = append(brokers, brokerName(server.Node, server.App.Name))
	}
	return brokers
}

// plannedPassages are the passages between an experiment's brokers, in the order of its nodes and their apps.
func plannedPassages(in Input, sites Sites) (all []runapi.PlannedPassage) {
	for _, node := range in.Topology.Nodes {
		for _, site := range sites[node.Name] {
			all = append(all, bridgePassages(in.Topology, node, site)...)
			all = append(all, clusterPassages(site)...)
			all = append(all, gatewayPassages(site)...)
			all = append(all, mediatorPassages(site)...)
		}
	}
	return all
}

// bridgePassages are the passages over a broker's bridges.
func bridgePassages(t *topology.Topology, node topology.Node, site apps.Site) (all []runapi.PlannedPassage) {
	if site.App.Mosquitto == nil {
		return nil
	}
	for _, bridge := range site.App.Mosquitto.Bridges {
		peer, _ := t.BridgePeer(node, bridge)
		here, there := brokerName(node.Name, site.App.Name), brokerName(peer.Name, bridge.To[strings.LastIndexByte(bridge.To, '/')+1:])
		var in, out []runapi.PlannedPassage
		for _, topic := range bridge.AllTopics() {
			if topic.Direction != "in" {
				out = addFilter(out, runapi.PlannedPassage{From: here, To: there, StripPrefix: topic.LocalPrefix, AddPrefix: topic.RemotePrefix}, topic.Filter)
			}
			if topic.Direction != "out" {
				in = addFilter(in, runapi.PlannedPassage{From: there, To: here, StripPrefix: topic.RemotePrefix, AddPrefix: topic.LocalPrefix}, topic.Filter)
			}
		}
		all = append(append(all, out...), in...)
	}
	return all
}

// addFilter adds a filter to a bridge's passages in one direction, either to one with the same prefixes or as a new one.
func addFilter(passages []runapi.PlannedPassage, passage runapi.PlannedPassage, filter string) []runapi.PlannedPassage {
	i := slices.IndexFunc(passages, func(w runapi.PlannedPassage) bool {
		return w.StripPrefix == passage.StripPrefix && w.AddPrefix == passage.AddPrefix
	})
	if i < 0 {
		i = len(passages)
		passages = append(passages, passage)
	}
	passages[i].Filters = append(passages[i].Filters, filter)
	return passages
}

// onePassage is the passage of topics that match some filters, none without a filter.
func onePassage(from, to string, filters []string) []runapi.PlannedPassage {
	if len(filters) == 0 {
		return nil
	}
	return []runapi.PlannedPassage{{From: from, To: to, Filters: filters}}
}

// clusterPassages are the passages to the other brokers of a cluster.
func clusterPassages(site apps.Site) (all []runapi.PlannedPassage) {
	for _, peer := range site.ClusterPeers {
		all = append(all, onePassage(brokerName(site.Node, site.App.Name), brokerName(peer, site.App.Name), []string{allTopics})...)
	}
	return all
}

// gatewayPassages are the passages between a gateway and its broker.
func gatewayPassages(site apps.Site) []runapi.PlannedPassage {
	if site.App.MQTTSNGateway == nil || len(site.Servers) == 0 {
		return nil
	}
	here, there := brokerName(site.Node, site.App.Name), brokerName(site.Servers[0].Node, site.Servers[0].App.Name)
	return append(onePassage(here, there, []string{allTopics}), onePassage(there, here, []string{allTopics})...)
}

// mediatorPassages are the passages from each leg of a mediator to all others.
func mediatorPassages(site apps.Site) (all []runapi.PlannedPassage) {
	if site.App.Mediator == nil {
		return nil
	}
	legs := site.App.Mediator.Legs
	for i, from := range legs {
		filters := from.Topics
		if len(filters) == 0 {
			filters = []string{allTopics}
		}
		for j, to := range legs {
			if i == j {
				continue
			}
			all = append(all, runapi.PlannedPassage{
				From: brokerName(site.Servers[i].Node, site.Servers[i].App.Name), To: brokerName(site.Servers[j].Node, site.Servers[j].App.Name),
				Filters: filters, StripPrefix: from.Prefix, AddPrefix: to.Prefix,
			})
		}
	}
	return all
}
