package render

import (
	"net/netip"
	"net/url"

	corev1 "k8s.io/api/core/v1"

	"vignette.dev/vignette/internal/core/topology"
)

// Isolated nodes have no nameserver. That of the cluster has one cache for all, by which nodes and teams could exchange
// signals without the radio.

// unreachableNameserver is a nameserver that refuses at once, unless an app of the node is one.
const unreachableNameserver = "127.0.0.1"

// UsesClusterDNS reports whether a node may ask the cluster's DNS.
func UsesClusterDNS(o Options, node topology.Node) bool { return o.ClusterDNS || node.OpenManagement }

func dnsOf(in Input, node topology.Node) (corev1.DNSPolicy, *corev1.PodDNSConfig) {
	if UsesClusterDNS(in.Options, node) {
		return "", nil
	}
	return corev1.DNSNone, &corev1.PodDNSConfig{Nameservers: []string{unreachableNameserver}}
}

// ServerName is the server's name that nodes must resolve, empty if the URL has an address.
func ServerName(o Options) string {
	server, err := url.Parse(o.ServerURL)
	if err != nil {
		return ""
	}
	if _, err := netip.ParseAddr(server.Hostname()); err == nil {
		return ""
	}
	return server.Hostname()
}

// hostAliases are the names of all nodes as seen from one of them, and the server's if the node has no nameserver.
func hostAliases(in Input, node topology.Node) []corev1.HostAlias {
	var aliases []corev1.HostAlias
	for _, peer := range in.Topology.Nodes {
		main, _ := in.Topology.ReachedAt(peer, node)
		named := in.Topology.Reaches(node, peer)
		for _, a := range peer.Attachments {
			names := []string{networkHost(peer, a.Network)}
			if named && a.Address.Addr() == main {
				names = append([]string{peer.Name}, names...)
			}
			aliases = append(aliases, corev1.HostAlias{IP: a.Address.Addr().String(), Hostnames: names})
		}
	}
	if in.ServerAddress != "" && !UsesClusterDNS(in.Options, node) {
		aliases = append(aliases, corev1.HostAlias{IP: in.ServerAddress, Hostnames: []string{ServerName(in.Options)}})
	}
	return aliases
}
