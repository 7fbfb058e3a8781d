package routing

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// node is a namespace with a radio.
func node(t *testing.T, nem int) *radiotest.Node {
	t.Helper()
	if err := radiotest.Missing(); err != nil {
		t.Skip(err)
	}
	n, err := radiotest.NewNode(nem, 1400)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func configOf(n *radiotest.Node, protocol v1alpha1.RoutingProtocol) *Config {
	return &Config{Protocol: protocol, Interfaces: []Interface{{Name: n.Name, Index: n.Index, Address: netip.MustParsePrefix("198.18.0.1/16"), MTU: 1400}}}
}

// inKernel lists the node's routes of a metric.
func inKernel(t *testing.T, namespace *os.File, metric int) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := netns.Do(namespace, func() error {
		routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{}, 0)
		for _, r := range routes {
			if r.Priority == metric {
				found[r.Dst.String()] = r.Gw.String()
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func opened(t *testing.T, n *radiotest.Node, c *Config) *kernel {
	t.Helper()
	k, err := openKernel(n.Namespace, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.close() })
	return k
}

func write(t *testing.T, k *kernel, wanted ...olsr.Route) {
	t.Helper()
	k.setWanted(wanted, time.Time{})
	if err := k.write(); err != nil {
		t.Fatal(err)
	}
}

func TestASuccessorKnowsTheRoutesAndTouchesNoOthers(t *testing.T) {
	n := node(t, 1)
	c := configOf(n, v1alpha1.RoutingOLSRv2)
	two, three, four := netip.MustParsePrefix("198.18.0.2/32"), netip.MustParsePrefix("198.18.0.3/32"), netip.MustParsePrefix("198.18.0.4/32")
	direct, over := hop{index: n.Index}, hop{index: n.Index, via: two.Addr()}
	first := opened(t, n, c)
	way := func(to, via netip.Prefix) olsr.Route { return olsr.Route{Destination: to, NextHop: via.Addr()} }
	write(t, first, way(two, two), way(three, two))
	err := netns.Do(n.Namespace, func() error { // the node's own, which comes first
		to := &net.IPNet{IP: four.Addr().AsSlice(), Mask: net.CIDRMask(32, 32)}
		return netlink.RouteAdd(&netlink.Route{Dst: to, Gw: two.Addr().AsSlice(), LinkIndex: n.Index})
	})
	if err != nil {
		t.Fatal(err)
	}
	next := opened(t, n, c)
	if len(next.written) != 2 || next.written[route{Prefix: two}].hop != direct || next.written[route{Prefix: three}].hop != over {
		t.Fatalf("the successor knows %v; want the way to the neighbour and the one over it", next.written)
	}
	write(t, next, way(two, two), way(four, two))
	if got := inKernel(t, n.Namespace, 30); len(got) != 2 || got["198.18.0.4/32"] != "198.18.0.2" || got["198.18.0.2/32"] != "<nil>" {
		t.Errorf("routes of metric 30: %v; want those that are wanted", got)
	}
	if got := inKernel(t, n.Namespace, 0); got["198.18.0.4/32"] != "198.18.0.2" {
		t.Errorf("the node's own routes: %v; want that to 198.18.0.4 untouched", got)
	}
	// Another protocol on the same interface has no use for them.
	opened(t, n, configOf(n, v1alpha1.RoutingStatic))
	if got := inKernel(t, n.Namespace, 30); len(got) != 0 {
		t.Errorf("routes of the protocol before: %v; want none", got)
	}
}

func TestARouteThatTheKernelRefusesIsNamedAndTriedAgain(t *testing.T) {
	n := node(t, 1)
	c := configOf(n, v1alpha1.RoutingStatic)
	c.Interfaces = append(c.Interfaces, c.Interfaces[0])
	c.Interfaces[1].Index += 999
	k := opened(t, n, c)
	way := olsr.Route{Destination: netip.MustParsePrefix("10.7.0.0/16"), NextHop: netip.MustParseAddr("198.18.0.2"), Interface: 1}
	k.setWanted([]olsr.Route{way}, time.Time{})
	if err := k.write(); err == nil || k.trouble() == nil {
		t.Fatal("a route through an interface that is not there was taken")
	}
	way.Interface = 0
	write(t, k, way)
	if got := inKernel(t, n.Namespace, 20); k.trouble() != nil || len(got) != 1 {
		t.Errorf("trouble %v, routes %v; want none and one", k.trouble(), got)
	}
}

func TestHundredsOfRoutesGoToTheKernelAtOnceAndThoseThatItRefusesAreNamed(t *testing.T) {
	n := node(t, 1)
	c := configOf(n, v1alpha1.RoutingOLSRv2)
	c.Interfaces = append(c.Interfaces, c.Interfaces[0])
	c.Interfaces[1].Index += 999 // not there
	k := opened(t, n, c)
	const count, everyRefused = 12*maxChanges + 1, 100
	var wanted []olsr.Route
	refused := 0
	for i := range count {
		to := netip.AddrFrom4([4]byte{198, 18, byte(1 + i/200), byte(1 + i%200)})
		r := olsr.Route{Destination: netip.PrefixFrom(to, 32), NextHop: netip.MustParseAddr("198.18.0.2")}
		if i%everyRefused == everyRefused-1 {
			r.Interface = 1
			refused++
		}
		wanted = append(wanted, r)
	}
	k.setWanted(wanted, time.Time{})
	last := fmt.Sprint(wanted[refused*everyRefused-1].Destination)
	if err := k.write(); !errors.Is(err, unix.ENODEV) || !strings.Contains(err.Error(), last) {
		t.Errorf("%v; want it to name the route to %v through an interface that is not there", err, last)
	}
	if got := inKernel(t, n.Namespace, 30); len(got) != count-refused || got["198.18.1.1/32"] != "198.18.0.2" {
		t.Errorf("%d routes, %v to the first; want %d", len(got), got["198.18.1.1/32"], count-refused)
	}
	write(t, k, wanted[:10]...)
	if got := inKernel(t, n.Namespace, 30); len(got) != 10 {
		t.Errorf("%d routes are left; want 10", len(got))
	}
}
