package olsr_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/olsr/olsrtest"
)

// bulk is the metric type of the second topology.
const bulk = 225

// narrow is the medium of a direct link; the others are wide.
const narrow = 1

// directOrFast makes a network whose ends, nodes 0 and 3, have a narrow link and a chain of three wide ones. Hops count in
// the first topology, the rate in the second, to which the narrow link belongs or not. change alters nodes' configurations.
func directOrFast(t *testing.T, narrowIsBulk bool, change func(node int, c *olsr.Config)) *olsrtest.Network {
	t.Helper()
	times := func(medium int) olsr.Interface {
		switch {
		case medium != narrow:
			return olsr.Interface{RateBitsPerSecond: 1e6}
		case narrowIsBulk:
			return olsr.Interface{RateBitsPerSecond: 15e3}
		}
		return olsr.Interface{RateBitsPerSecond: 15e3, Topologies: []uint8{}}
	}
	base := olsr.Config{Topologies: []olsr.Topology{{Type: bulk, Metric: olsr.DAT}}}
	net, err := olsrtest.NewWithTimes([][]int{{0, narrow}, {0, 2}, {2, 3}, {3, narrow}}, times, 1, base, olsr.New)
	if err != nil {
		t.Fatal(err)
	}
	for n, node := range net.Nodes {
		if change == nil {
			break
		}
		change(n, &node.Config)
		if err := net.Boot(n, nil); err != nil {
			t.Fatal(err)
		}
	}
	for node := range 4 {
		net.Link(node, (node+1)%4, true)
	}
	net.Run(2 * time.Minute)
	return net
}

// routesFrom0To3 are node 0's routes to node 3's narrow interface as "topology: next hop, hops".
func routesFrom0To3(net *olsrtest.Network) string {
	var routes []string
	for _, r := range net.Nodes[0].Router.Routes() {
		if r.Destination.Addr() == olsrtest.Address(3, narrow) {
			routes = append(routes, fmt.Sprintf("%d: %v, %d", r.Topology, r.NextHop, r.Hops))
		}
	}
	return fmt.Sprint(routes)
}

func TestEachTopologyHasRoutesByItsOwnMetric(t *testing.T) {
	const direct, chain = "0: 10.1.0.4, 1", " 1: 10.0.0.2, 3"
	net := directOrFast(t, true, nil)
	if got := routesFrom0To3(net); got != "["+direct+chain+"]" {
		t.Errorf("routes %s; want the direct one by hops and the chain by rate", got)
	}
	net.Link(1, 2, false)
	net.Run(time.Minute)
	if got := routesFrom0To3(net); got != "["+direct+" 1: 10.1.0.4, 1]" {
		t.Errorf("with the chain broken, routes %s; want the direct one in both topologies", got)
	}
	net.Link(1, 2, true)
	net.Link(0, 3, false)
	net.Run(time.Minute)
	if got := routesFrom0To3(net); got != "[0: 10.0.0.2, 3"+chain+"]" {
		t.Errorf("without the direct link, routes %s; want the chain in both topologies", got)
	}
}

func TestATopologyKeepsToItsInterfaces(t *testing.T) {
	net := directOrFast(t, false, nil)
	if got := routesFrom0To3(net); got != "[0: 10.1.0.4, 1 1: 10.0.0.2, 3]" {
		t.Errorf("routes %s; want the chain in the second topology", got)
	}
	net.Link(1, 2, false)
	net.Run(time.Minute)
	if got := routesFrom0To3(net); got != "[0: 10.1.0.4, 1]" {
		t.Errorf("with the chain broken, routes %s; want none in the second topology, as the narrow link is not in it", got)
	}
}

// single has a router of one topology, as RFC 7181 alone knows it.
func single(c *olsr.Config) {
	c.Topologies = nil
	c.Interfaces = slices.Clone(c.Interfaces)
	for i := range c.Interfaces {
		c.Interfaces[i].Topologies = nil
	}
}

func TestRoutersOfOneTopologyServeTheFirst(t *testing.T) {
	net := directOrFast(t, false, func(node int, c *olsr.Config) {
		if node == 1 {
			single(c)
		}
	})
	if got := routesFrom0To3(net); got != "[0: 10.1.0.4, 1]" {
		t.Errorf("routes %s; want none in the second topology, as node 1 does not know it", got)
	}
	net.Link(0, 3, false)
	net.Run(time.Minute)
	if got := routesFrom0To3(net); got != "[0: 10.0.0.2, 3]" {
		t.Errorf("without the direct link, routes %s; want the chain over node 1 in the first topology", got)
	}
	for n, node := range net.Nodes {
		for _, r := range node.Router.Routes() {
			if (n == 0 || n == 1) && r.Topology != 0 {
				t.Errorf("node %d has the route %+v; want none in the second topology", n, r)
			}
		}
		if len(node.Errors) > 0 {
			t.Errorf("node %d refused %d packets, the first with %v", n, len(node.Errors), node.Errors[0])
		}
	}
	if in2 := ofTopology(net.Nodes[2].Router.Routes(), 1); len(in2) != 2 {
		t.Errorf("node 2 has the routes %v in the second topology; want those to both interfaces of node 3", in2)
	}
}

func TestRoutersWithTheirTopologiesInAnotherOrderAgree(t *testing.T) {
	net := directOrFast(t, true, func(node int, c *olsr.Config) {
		other := olsr.Topology{Type: 224, Metric: olsr.HopCount}
		c.Topologies = [][]olsr.Topology{{{Type: bulk, Metric: olsr.DAT}, other}, {other, {Type: bulk, Metric: olsr.DAT}}}[node%2]
		c.Interfaces = slices.Clone(c.Interfaces)
		for i := range c.Interfaces {
			c.Interfaces[i].Topologies = []uint8{bulk, 224}
		}
	})
	if got := routesFrom0To3(net); got != "[0: 10.1.0.4, 1 1: 10.0.0.2, 3 2: 10.1.0.4, 1]" {
		t.Errorf("routes %s; want the chain in bulk only", got)
	}
}

func TestRoutesOfAFurtherTopologyAreShortestPaths(t *testing.T) {
	for seed := range int64(20) {
		base := olsr.Config{Metric: olsr.DAT, Topologies: []olsr.Topology{{Type: bulk, Metric: olsr.DAT}, {Type: 224, Metric: olsr.HopCount}}}
		net, err := olsrtest.New(30, seed, base, olsr.New)
		if err != nil {
			t.Fatal(err)
		}
		net.Random(seed, 6)
		net.Topology = 2
		if _, err := net.Converge(2 * time.Minute); err != nil {
			t.Fatalf("network %d: %v", seed, err)
		}
		for n, node := range net.Nodes {
			all := node.Router.Routes()
			if !slices.IsSortedFunc(all, func(a, b olsr.Route) int { return olsr.CompareDestinations(&a, &b) }) {
				t.Fatalf("network %d: node %d has unsorted routes", seed, n)
			}
			equal := func(a, b olsr.Route) bool { return a.Destination == b.Destination && a.Metric == b.Metric }
			if first, second := ofTopology(all, 0), ofTopology(all, 1); !slices.EqualFunc(first, second, equal) {
				t.Fatalf("network %d: node %d has %v and %v in two topologies of one metric", seed, n, first, second)
			}
		}
	}
}

func ofTopology(all []olsr.Route, topology int) []olsr.Route {
	return slices.DeleteFunc(slices.Clone(all), func(r olsr.Route) bool { return r.Topology != topology })
}

func TestAGatewayIsReachedInEveryTopology(t *testing.T) {
	network := netip.MustParsePrefix("192.168.0.0/24")
	net := directOrFast(t, true, func(node int, c *olsr.Config) {
		if node == 3 {
			c.Attached = []olsr.Attached{{Prefix: network, Hops: 2}}
		}
	})
	var found []string
	for _, r := range net.Nodes[0].Router.Routes() {
		if r.Destination == network {
			found = append(found, fmt.Sprintf("%d: %v, %d", r.Topology, r.NextHop, r.Hops))
		}
	}
	if got := fmt.Sprint(found); got != "[0: 10.1.0.4, 3 1: 10.0.0.2, 5]" {
		t.Errorf("routes %s; want the direct way by hops and the chain by rate", got)
	}
}

func TestTopologiesAreChecked(t *testing.T) {
	i := olsr.Interface{Name: "r0", Address: netip.MustParseAddr("10.0.0.1")}
	with := func(types ...uint8) olsr.Interface {
		i.Topologies = types
		return i
	}
	for name, c := range map[string]struct {
		config olsr.Config
		want   string
	}{
		"two":                    {olsr.Config{Interfaces: []olsr.Interface{with(224)}, Topologies: []olsr.Topology{{Type: 224}, {Type: 1}}}, "<nil>"},
		"the first's type":       {olsr.Config{Interfaces: []olsr.Interface{with()}, Topologies: []olsr.Topology{{Type: 0}}}, "topologies[0].type: 0 is that of another topology"},
		"the same type":          {olsr.Config{Interfaces: []olsr.Interface{with()}, Topologies: []olsr.Topology{{Type: 9}, {Type: 9}}}, "topologies[1].type: 9 is that of another topology"},
		"three":                  {olsr.Config{Interfaces: []olsr.Interface{with()}, Topologies: []olsr.Topology{{Type: 1}, {Type: 2}, {Type: 3}}}, "topologies: 3 are more than 2"},
		"an interface's unknown": {olsr.Config{Interfaces: []olsr.Interface{with(7)}, Topologies: []olsr.Topology{{Type: 1}}}, "topologies: none has type 7, of interface r0"},
	} {
		if _, err := olsr.New(c.config, nil); fmt.Sprint(err) != c.want {
			t.Errorf("%s: %v; want %s", name, err, c.want)
		}
	}
}
