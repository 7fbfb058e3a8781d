package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Host is the machine's side of a cluster's network. Every interface's alias has
// the Owner, so that no other interface is ever changed.
type Host struct {
	Plan  Plan
	Owner string
}

// Free reports whether nothing on the machine uses the plan's interface name or
// addresses; the cluster's own bridge does not count.
func (h Host) Free() (bool, error) {
	own := -1
	if link, err := netlink.LinkByName(h.Plan.Bridge()); err == nil {
		if !h.owns(link) {
			return false, nil
		}
		own = link.Attrs().Index
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return false, fmt.Errorf("list the machine's routes: %w", err)
	}
	for _, route := range routes {
		if route.Dst == nil || route.LinkIndex == own {
			continue
		}
		used, ok := prefixOf(route.Dst)
		if !ok || used.Bits() == 0 {
			continue
		}
		for _, wanted := range []netip.Prefix{h.Plan.NodeNetwork(), h.Plan.Pods(), h.Plan.Services()} {
			// Our narrower routes override a wider one, like a company's 10.0.0.0/8,
			// for these addresses only.
			if wanted.Overlaps(used) && used.Bits() >= 16 {
				return false, nil
			}
		}
	}
	return true, nil
}

func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	addr, ok := netip.AddrFromSlice(n.IP)
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(addr.Unmap(), bits), ok
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)}
}

// forwarding is the machine's own, which all new network namespaces inherit. If each pod switched it on, it would need the
// kernel's lock of all interfaces, for which a write does not sleep: it keeps a processor.
const forwarding = "/proc/sys/net/ipv4/ip_forward"

// Up adds the bridge and its address, if missing.
func (h Host) Up() error {
	bridge, err := h.find(h.Plan.Bridge())
	if err != nil {
		return err
	}
	if bridge == nil {
		bridge = &netlink.Bridge{LinkAttrs: attributes(h.Plan.Bridge())}
		if err := netlink.LinkAdd(bridge); err != nil {
			return fmt.Errorf("add bridge %s: %w", h.Plan.Bridge(), err)
		}
	}
	if err := netlink.AddrReplace(bridge, &netlink.Addr{IPNet: ipNet(h.Plan.HostAddress())}); err != nil {
		return fmt.Errorf("address of bridge %s: %w", h.Plan.Bridge(), err)
	}
	if err := os.WriteFile(forwarding, []byte("1"), 0o644); err != nil {
		return fmt.Errorf("forwarding: %w", err)
	}
	return h.claim(bridge)
}

func attributes(name string) netlink.LinkAttrs {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = name
	return attributes
}

// claim marks a new interface as the cluster's, and only then sets it up.
func (h Host) claim(link netlink.Link) error {
	if err := netlink.LinkSetAlias(link, h.Owner); err != nil {
		return fmt.Errorf("mark interface %s: %w", link.Attrs().Name, err)
	}
	return netlink.LinkSetUp(link)
}

// owns reports whether the cluster owns an interface. An unmarked one with our name that was never
// set up is ours: we were killed before marking it.
func (h Host) owns(link netlink.Link) bool {
	alias, up := link.Attrs().Alias, link.Attrs().Flags&net.FlagUp != 0
	return alias == h.Owner || alias == "" && !up
}

// find returns the cluster's interface of this name, or nil if there is none.
// A foreign interface with the name is an error.
func (h Host) find(name string) (netlink.Link, error) {
	link, err := netlink.LinkByName(name)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", name, err)
	}
	if !h.owns(link) {
		return nil, fmt.Errorf("interface %s belongs to %q, want %q", name, link.Attrs().Alias, h.Owner)
	}
	return link, nil
}

// Attach makes a node's uplink: eth0 in the network namespace of process pid,
// and the other end on the bridge. It replaces a leftover of an earlier node process.
func (h Host) Attach(node, pid int) error {
	bridge, err := h.find(h.Plan.Bridge())
	if err != nil {
		return err
	}
	if bridge == nil {
		return fmt.Errorf("bridge %s is not there", h.Plan.Bridge())
	}
	if err := h.remove(h.Plan.Veth(node)); err != nil {
		return err
	}
	veth := &netlink.Veth{LinkAttrs: attributes(h.Plan.Veth(node)), PeerName: "eth0", PeerNamespace: netlink.NsPid(pid)}
	veth.MasterIndex = bridge.Attrs().Index
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("add uplink %s: %w", h.Plan.Veth(node), err)
	}
	return h.claim(veth)
}

// remove removes an interface if it is there. A dead network namespace may
// linger for a minute on orphaned TCP sockets, and keep its uplink.
func (h Host) remove(name string) error {
	link, err := h.find(name)
	if err != nil || link == nil {
		return err
	}
	if err := netlink.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("delete interface %s: %w", name, err)
	}
	return nil
}

// Route makes the pods of a node reachable from the machine, and the services through node 1.
func (h Host) Route(node int) error {
	targets := []netip.Prefix{h.Plan.NodePods(node)}
	if node == 1 {
		targets = append(targets, h.Plan.Services())
	}
	for _, to := range targets {
		route := &netlink.Route{Dst: ipNet(to), Gw: h.Plan.NodeAddress(node).Addr().AsSlice()}
		if err := netlink.RouteReplace(route); err != nil {
			return fmt.Errorf("route %s: %w", to, err)
		}
	}
	return nil
}

// Down removes all interfaces of the cluster, with their addresses and routes.
func (h Host) Down() error {
	var problems []error
	for node := 1; node <= MaxNodes; node++ {
		problems = append(problems, h.remove(h.Plan.Veth(node)))
	}
	return errors.Join(append(problems, h.remove(h.Plan.Bridge()))...)
}

// ConfigureNode sets up a node's own interfaces and routes. It runs in the
// node's network namespace. Without a default route nothing leaves the cluster.
func ConfigureNode(p Plan, node int) error {
	for name, address := range map[string]*netip.Prefix{"lo": nil, "eth0": new(p.NodeAddress(node))} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return fmt.Errorf("interface %s: %w", name, err)
		}
		if address != nil {
			if err := netlink.AddrReplace(link, &netlink.Addr{IPNet: ipNet(*address)}); err != nil {
				return fmt.Errorf("address of %s: %w", name, err)
			}
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return fmt.Errorf("set %s up: %w", name, err)
		}
	}
	uplink, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	// kube-proxy rewrites the destination only after routing found a
	// route: this one. Other destinations find no neighbour.
	services := &netlink.Route{Dst: ipNet(p.Services()), LinkIndex: uplink.Attrs().Index, Scope: netlink.SCOPE_LINK}
	if err := netlink.RouteReplace(services); err != nil {
		return fmt.Errorf("route %s: %w", p.Services(), err)
	}
	for other := 1; other <= MaxNodes; other++ {
		if other == node {
			continue
		}
		route := &netlink.Route{Dst: ipNet(p.NodePods(other)), Gw: p.NodeAddress(other).Addr().AsSlice()}
		if err := netlink.RouteReplace(route); err != nil {
			return fmt.Errorf("route to the pods of %s: %w", NodeName(other), err)
		}
	}
	return nil
}
