package render

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// staticRoutes are a network's static routes with addresses, by node.
func staticRoutes(t *topology.Topology, network v1alpha1.Network) map[string][]v1alpha1.MemberRoute {
	routes := map[string][]v1alpha1.MemberRoute{}
	for node, given := range givenRoutes(t, network) {
		for _, route := range given {
			if !route.isDirect() {
				routes[node] = append(routes[node], route.MemberRoute)
			}
		}
	}
	return routes
}

// givenRoute is a static route of a node, with its index in the spec.
type givenRoute struct {
	v1alpha1.MemberRoute
	index int
}

// isDirect reports whether a route is that to the router itself, which its network's nodes have anyway.
func (r givenRoute) isDirect() bool { return r.To == r.Via+"/32" }

// givenRoutes are a network's static routes with addresses, by node, direct ones included.
func givenRoutes(t *topology.Topology, network v1alpha1.Network) map[string][]givenRoute {
	routing := network.Routing
	if routing == nil || routing.Protocol != v1alpha1.RoutingStatic {
		return nil
	}
	routes := map[string][]givenRoute{}
	for i, route := range routing.Routes {
		via, found := t.Node(route.Via)
		gateway, on := via.Address(network.Name)
		if !found || !on {
			continue // checkRoutes reports it
		}
		for _, node := range attached(t, network.Name, everyNode) {
			chosen := len(route.Nodes) == 0 || slices.ContainsFunc(route.Nodes, func(name string) bool { return hasName(node, name) })
			if !chosen || node.Name == route.Via || node.Name == route.To {
				continue // the router and the destination itself need no route there
			}
			for _, to := range destinations(t, network.Name, node, route) {
				add := v1alpha1.MemberRoute{To: to.String(), Via: gateway.String()}
				if !slices.ContainsFunc(routes[node.Name], func(r givenRoute) bool { return r.MemberRoute == add }) {
					routes[node.Name] = append(routes[node.Name], givenRoute{add, i})
				}
			}
		}
	}
	return routes
}

// destinations of a route are the subnet, or every address of the node except those in other subnets of the router.
func destinations(t *topology.Topology, network string, router topology.Node, route v1alpha1.StaticRoute) (to []netip.Prefix) {
	if subnet, err := netip.ParsePrefix(route.To); err == nil {
		return []netip.Prefix{subnet.Masked()}
	}
	target, _ := t.Node(route.To)
	for _, a := range target.Attachments {
		if _, direct := router.Address(a.Network); a.Network == network || !direct {
			to = append(to, netip.PrefixFrom(a.Address.Addr(), a.Address.Addr().BitLen()))
		}
	}
	return to
}

// minBabelMTU is the least MTU of IPv6 (RFC 8200 section 5). Interfaces with less have none.
const minBabelMTU = 1280

// checkRoutes finds static routes that lead nowhere, an MTU that is too small for Babel, and a metric that the protocol lacks.
func checkRoutes(t *topology.Topology, network v1alpha1.Network, path *field.Path) (errs field.ErrorList) {
	if network.Routing == nil {
		return nil
	}
	if network.Routing.Protocol == v1alpha1.RoutingBabel && mtu(network) < minBabelMTU {
		errs = append(errs, field.Invalid(path.Child("mtu"), network.MTU, fmt.Sprintf("routing by babel needs an mtu of %d or more, as its packets are IPv6: want that, or another protocol", minBabelMTU)))
	}
	if network.Routing.Metric == v1alpha1.MetricDAT && network.Routing.SetsRoutes() && network.Routing.Protocol != v1alpha1.RoutingOLSRv2 {
		errs = append(errs, field.Invalid(path.Child("routing", "metric"), network.Routing.Metric, fmt.Sprintf(
			"dat is for protocol olsrv2, and network %s has protocol %s", network.Name, network.Routing.Protocol)))
	}
	for i, route := range network.Routing.Routes {
		at := path.Child("routing", "routes").Index(i)
		for j, name := range route.Nodes {
			if err := checkOnNetwork(t, network.Name, name); err != nil {
				errs = append(errs, field.Invalid(at.Child("nodes").Index(j), name, err.Error()))
			}
		}
		if err := checkVia(t, network.Name, route.Via); err != nil {
			errs = append(errs, field.Invalid(at.Child("via"), route.Via, err.Error()))
		}
		if err := checkTo(t, network.Name, route.To); err != nil {
			errs = append(errs, field.Invalid(at.Child("to"), route.To, err.Error()))
		}
	}
	return errs
}

// checkOneRoute finds nodes with two static routes to a destination, of which the kernel would silently take one.
func checkOneRoute(t *topology.Topology, spec *v1alpha1.ExperimentSpec) (errs field.ErrorList) {
	type destination struct{ node, to string }
	known := map[destination]string{} // the way there
	for i, network := range spec.Networks {
		routes := givenRoutes(t, network)
		for _, node := range slices.Sorted(maps.Keys(routes)) {
			for _, r := range routes[node] {
				d, way := destination{node, r.To}, fmt.Sprintf("via %s on network %s", r.Via, network.Name)
				if r.isDirect() {
					way = "a direct one on network " + network.Name
				}
				if before := known[d]; before != "" {
					errs = append(errs, field.Invalid(routingPath(i).Child("routes").Index(r.index).Child("to"), r.To, fmt.Sprintf(
						"node %s has two routes to it, %s and %s, and its kernel takes one: name in nodes of each route who has it", node, before, way)))
				}
				known[d] = way
			}
		}
	}
	return errs
}

func checkVia(t *topology.Topology, network, name string) error {
	node, found := t.Node(name)
	if !found {
		return fmt.Errorf("the experiment has no node %q", name)
	}
	if _, on := node.Address(network); !on {
		return fmt.Errorf("%q is not attached to network %q, so that it forwards nothing there", name, network)
	}
	return nil
}

// leastRouteBits is that of a network's subnet. Shorter prefixes include the cluster's own addresses.
const leastRouteBits = 8

func checkTo(t *topology.Topology, network, to string) error {
	if node, found := t.Node(to); found {
		if len(node.Attachments) == 0 {
			return fmt.Errorf("node %q is attached to no network", to)
		}
		return nil
	}
	subnet, err := netip.ParsePrefix(to)
	switch {
	case err != nil || !subnet.Addr().Is4() || subnet != subnet.Masked():
		return fmt.Errorf("want the name of a node, or an IPv4 subnet by its base address, such as 198.18.1.0/24")
	case subnet.Bits() < leastRouteBits:
		return fmt.Errorf("includes the cluster's own addresses, and eth0 has the default route: want each subnet behind the router, with a prefix length from %d on", leastRouteBits)
	case subnet == t.Subnets[network]:
		return fmt.Errorf("is the network's own subnet, to which its nodes have a direct route that comes first: name the nodes behind the router")
	}
	return nil
}
