// Package network assigns a cluster's addresses, and connects its nodes and the
// machine by a private bridge. Nothing is routed beyond the machine.
package network

import (
	"fmt"
	"net/netip"
)

const (
	// MaxClusters is the most clusters on one machine.
	MaxClusters = 32
	// MaxNodes is the most nodes of a cluster.
	MaxNodes = 16

	firstOctet  = 128 // 10.128.0.0 and up: four /16 per cluster, three of them used
	octetStride = 4
)

// Plan is the address plan of the cluster with this index; nodes count from 1.
type Plan struct{ Index int }

func (p Plan) octet() byte { return byte(firstOctet + octetStride*p.Index) }

// Bridge is the name of the bridge in the machine's network namespace.
func (p Plan) Bridge() string { return fmt.Sprintf("vgn%d", p.Index) }

// Veth is the name of the machine's end of a node's uplink.
func (p Plan) Veth(node int) string { return fmt.Sprintf("vgn%dn%d", p.Index, node) }

// HostAddress is the machine's own address on the bridge.
func (p Plan) HostAddress() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, p.octet(), 0, 254}), 24)
}

// NodeAddress is a node's address on the bridge.
func (p Plan) NodeAddress(node int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, p.octet(), 0, byte(node)}), 24)
}

// NodeNetwork is the bridge's network.
func (p Plan) NodeNetwork() netip.Prefix { return p.HostAddress().Masked() }

// Pods is the network of all pods.
func (p Plan) Pods() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, p.octet() + 1, 0, 0}), 16)
}

// NodePods is the network of a node's pods: room for about 1000.
func (p Plan) NodePods(node int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, p.octet() + 1, byte(4 * node), 0}), 22)
}

// Services is the network of the services' virtual addresses.
func (p Plan) Services() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, p.octet() + 2, 0, 0}), 16)
}

// APIService is the address of the service "kubernetes".
func (p Plan) APIService() netip.Addr { return netip.AddrFrom4([4]byte{10, p.octet() + 2, 0, 1}) }

// DNSService is the address of the cluster's name server.
func (p Plan) DNSService() netip.Addr { return netip.AddrFrom4([4]byte{10, p.octet() + 2, 0, 10}) }

// APIServer is the URL of the API server, on node 1.
func (p Plan) APIServer() string {
	return fmt.Sprintf("https://%s", netip.AddrPortFrom(p.NodeAddress(1).Addr(), 6443))
}

// NodeName is the name of a node.
func NodeName(node int) string { return fmt.Sprintf("n%d", node) }
