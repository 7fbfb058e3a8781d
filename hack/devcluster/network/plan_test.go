package network

import (
	"net/netip"
	"testing"
)

func TestNoTwoClustersOrNodesShareAddressesOrInterfaces(t *testing.T) {
	var networks []netip.Prefix
	names := map[string]bool{}
	for index := range MaxClusters {
		p := Plan{Index: index}
		networks = append(networks, p.NodeNetwork(), p.Pods(), p.Services())
		links := []string{p.Bridge()}
		for node := 1; node <= MaxNodes; node++ {
			links = append(links, p.Veth(node))
			if !p.NodeNetwork().Contains(p.NodeAddress(node).Addr()) || p.NodeAddress(node).Addr() == p.HostAddress().Addr() {
				t.Errorf("cluster %d: node %d has address %s on %s", index, node, p.NodeAddress(node), p.NodeNetwork())
			}
			if pods := p.NodePods(node); !p.Pods().Contains(pods.Addr()) || pods != pods.Masked() {
				t.Errorf("cluster %d: node %d has pods %s of %s", index, node, pods, p.Pods())
			}
			if node > 1 && p.NodePods(node).Overlaps(p.NodePods(node-1)) {
				t.Errorf("cluster %d: pods of node %d overlap those of the node before", index, node)
			}
		}
		for _, name := range links {
			if names[name] || len(name) > 15 {
				t.Errorf("interface name %q: used twice, or longer than the kernel's 15", name)
			}
			names[name] = true
		}
		for _, special := range []netip.Addr{p.APIService(), p.DNSService()} {
			if !p.Services().Contains(special) {
				t.Errorf("cluster %d: %s is not a service address", index, special)
			}
		}
	}
	for i, one := range networks {
		for _, other := range networks[:i] {
			if one.Overlaps(other) {
				t.Errorf("%s overlaps %s", one, other)
			}
		}
	}
}

func TestTheAPIServerIsOnTheFirstNode(t *testing.T) {
	if got := (Plan{Index: 1}).APIServer(); got != "https://10.132.0.1:6443" {
		t.Errorf("got %s", got)
	}
}
