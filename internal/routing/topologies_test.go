package routing

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// bulkAndVoice are two topologies beside the first.
func bulkAndVoice() []Topology {
	return []Topology{{Name: "voice", Topology: olsr.Topology{Type: 224}, DSCP: []uint8{46}},
		{Name: "bulk", Topology: olsr.Topology{Type: 225, Metric: olsr.DAT}, DSCP: []uint8{8, 10}}}
}

// nextHops are the next hops that the node's kernel finds for packets with these marks.
func nextHops(t *testing.T, n *radiotest.Node, to string, marks ...uint32) (via []string) {
	t.Helper()
	err := netns.Do(n.Namespace, func() error {
		for _, mark := range marks {
			routes, err := netlink.RouteGetWithOptions(net.ParseIP(to), &netlink.RouteGetOptions{Mark: mark})
			if err != nil {
				return err
			}
			via = append(via, routes[0].Gw.String())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return via
}

// tablesOfRules are the tables of the node's rules for topologies.
func tablesOfRules(t *testing.T, n *radiotest.Node) (tables []int) {
	t.Helper()
	err := netns.Do(n.Namespace, func() error {
		rules, err := netlink.RuleList(netlink.FAMILY_V4)
		for _, r := range rules {
			if number, ok := topologyOf(r.Table); ok && number > 0 {
				tables = append(tables, r.Table)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(tables)
	return tables
}

// marksPackets reports whether nftables marks packets for topologies.
func marksPackets(t *testing.T, n *radiotest.Node) bool {
	t.Helper()
	c, err := nftables.New(nftables.WithNetNSFd(int(n.Namespace.Fd())))
	if err != nil {
		t.Fatal(err)
	}
	tables, err := c.ListTablesOfFamily(nftables.TableFamilyIPv4)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(tables, func(table *nftables.Table) bool { return table.Name == markTable })
}

func TestEachTopologyHasATableAndTheRestTakesTheFirst(t *testing.T) {
	n := node(t, 1)
	c := configOf(n, v1alpha1.RoutingOLSRv2)
	c.Topologies = bulkAndVoice()
	k := opened(t, n, c)
	to := netip.MustParsePrefix("198.19.0.9/32")
	via := func(topology int, hop string) olsr.Route {
		return olsr.Route{Destination: to, NextHop: netip.MustParseAddr(hop), Topology: topology}
	}
	write(t, k, via(0, "198.18.0.2"), via(2, "198.18.0.4"))
	if got := fmt.Sprint(nextHops(t, n, "198.19.0.9", 0, markOf(1), markOf(2))); got != "[198.18.0.2 198.18.0.2 198.18.0.4]" {
		t.Errorf("next hops %s; want another for the second topology only, as the first has no route", got)
	}
	write(t, k, via(0, "198.18.0.2"), via(1, "198.18.0.3"))
	if got := fmt.Sprint(nextHops(t, n, "198.19.0.9", 0, markOf(1), markOf(2))); got != "[198.18.0.2 198.18.0.3 198.18.0.2]" {
		t.Errorf("next hops %s; want another for the first topology only", got)
	}
	// The next worker finds everything as it is.
	next := opened(t, n, c)
	if len(next.written) != 2 || fmt.Sprint(tablesOfRules(t, n)) != "[8600 8601]" || !marksPackets(t, n) {
		t.Errorf("the successor knows %v, rules of tables %v; want two routes and two rules", next.written, tablesOfRules(t, n))
	}
	// One topology less, then none.
	c.Topologies = c.Topologies[1:]
	write(t, opened(t, n, c), via(0, "198.18.0.2"), via(1, "198.18.0.5"))
	if got := fmt.Sprint(nextHops(t, n, "198.19.0.9", markOf(1), markOf(2))); got != "[198.18.0.5 198.18.0.2]" {
		t.Errorf("next hops %s; want those of the topology that is left", got)
	}
	c.Topologies = nil
	opened(t, n, c)
	if got := tablesOfRules(t, n); len(got) > 0 || marksPackets(t, n) || len(inTable(t, n, tableOf(1))) > 0 {
		t.Errorf("rules of tables %v, routes %v; want none without topologies", got, inTable(t, n, tableOf(1)))
	}
}

// inTable lists the routes of a table.
func inTable(t *testing.T, n *radiotest.Node, table int) (routes []netlink.Route) {
	t.Helper()
	err := netns.Do(n.Namespace, func() (err error) {
		routes, err = netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: table}, netlink.RT_FILTER_TABLE)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return routes
}

func TestNothingOfATopologyIsLeftWhenRoutingStops(t *testing.T) {
	n := node(t, 1)
	c := configOf(n, v1alpha1.RoutingOLSRv2)
	c.Topologies = bulkAndVoice()
	k, err := openKernel(n.Namespace, c)
	if err != nil {
		t.Fatal(err)
	}
	write(t, k, olsr.Route{Destination: netip.MustParsePrefix("198.19.0.9/32"), NextHop: netip.MustParseAddr("198.18.0.2"), Topology: 1})
	if len(inTable(t, n, tableOf(1))) != 1 {
		t.Fatal("the topology has no route")
	}
	i := &Instance{kernel: k}
	if err := i.Stop(); err != nil {
		t.Fatal(err)
	}
	if len(inTable(t, n, tableOf(1))) > 0 || len(tablesOfRules(t, n)) > 0 || marksPackets(t, n) {
		t.Error("routes, rules or marks are left")
	}
}

// sendAs sends a datagram with a DSCP from the node, and returns the hardware address to which its kernel sent the frame.
func sendAs(t *testing.T, n *radiotest.Node, to string, dscp int) string {
	t.Helper()
	err := netns.Do(n.Namespace, func() error {
		conn, err := net.Dial("udp4", to)
		if err != nil {
			return err
		}
		defer conn.Close()
		raw, err := conn.(*net.UDPConn).SyscallConn()
		if err != nil {
			return err
		}
		var failed error
		if err := raw.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS, dscp<<2) }); err != nil || failed != nil {
			return fmt.Errorf("%w, %w", err, failed)
		}
		_, err = conn.Write([]byte("bulk"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, 2048)
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		if ready, err := unix.Poll([]unix.PollFd{{Fd: int32(n.TAP), Events: unix.POLLIN}}, 100); ready <= 0 || err != nil {
			continue
		}
		if got, err := unix.Read(n.TAP, frame); err == nil && got > 34 && frame[12] == 8 && frame[13] == 0 && int(frame[15]>>2) == dscp {
			return net.HardwareAddr(frame[:6]).String()
		}
	}
	t.Fatalf("no datagram with DSCP %d left the node", dscp)
	return ""
}

func TestADatagramTakesTheRouteOfItsDSCP(t *testing.T) {
	n := node(t, 1)
	c := configOf(n, v1alpha1.RoutingOLSRv2)
	c.Topologies = bulkAndVoice()
	k := opened(t, n, c)
	write(t, k, []olsr.Route{
		{Destination: netip.MustParsePrefix("198.19.0.9/32"), NextHop: netip.MustParseAddr("198.18.0.2")},
		{Destination: netip.MustParsePrefix("198.19.0.9/32"), NextHop: netip.MustParseAddr("198.18.0.3"), Topology: 1},
		{Destination: netip.MustParsePrefix("198.19.0.9/32"), NextHop: netip.MustParseAddr("198.18.0.4"), Topology: 2},
	}...)
	err := netns.Do(n.Namespace, func() error {
		for host := range 3 {
			hardware := net.HardwareAddr{2, 2, 0, 0, 0, byte(2 + host)}
			neighbour := &netlink.Neigh{LinkIndex: n.Index, State: netlink.NUD_PERMANENT, IP: net.IPv4(198, 18, 0, byte(2+host)), HardwareAddr: hardware}
			if err := netlink.NeighSet(neighbour); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dscp, want := range map[int]string{0: "02:02:00:00:00:02", 46: "02:02:00:00:00:03", 8: "02:02:00:00:00:04", 10: "02:02:00:00:00:04", 12: "02:02:00:00:00:02"} {
		if got := sendAs(t, n, "198.19.0.9:7000", dscp); got != want {
			t.Errorf("a datagram with DSCP %d went to %s; want %s", dscp, got, want)
		}
	}
}

func TestTopologiesOfADomainDoNotDependOnTheOrderOfNetworks(t *testing.T) {
	bulk := v1alpha1.RoutingTopology{Name: "bulk", Metric: v1alpha1.MetricDAT, DSCP: []int32{8}}
	voice := v1alpha1.RoutingTopology{Name: "voice", Metric: v1alpha1.MetricHopCount, DSCP: []int32{46}, MetricType: ptr.To[int32](9)}
	one := &v1alpha1.Routing{Topologies: []v1alpha1.RoutingTopology{bulk}}
	both := &v1alpha1.Routing{Topologies: []v1alpha1.RoutingTopology{voice, bulk}}
	for _, order := range [][]*v1alpha1.Routing{{one, both}, {both, one}} {
		c := Config{}
		for _, r := range order {
			c.Add(Interface{}, r)
		}
		if len(c.Topologies) != 2 || c.Topologies[0].Name != "voice" || c.Topologies[1].Name != "bulk" || c.Topologies[1].Type != 225 || c.Topologies[1].Metric != olsr.DAT {
			t.Errorf("topologies %+v; want voice of type 9, then bulk of type 225", c.Topologies)
		}
		for n, r := range order {
			if len(c.Interfaces[n].Topologies) != len(r.Topologies) {
				t.Errorf("an interface has the types %v; want as many as its network", c.Interfaces[n].Topologies)
			}
		}
	}
}
