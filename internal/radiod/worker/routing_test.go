package worker

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/metrics"
	"vignette.dev/vignette/internal/radiod/radiodtest"
	"vignette.dev/vignette/internal/routing"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Tests of routing mostly wait, and have limits of a minute. So two of them run at a time, after all others.

// chain is a network in which each node receives only the next one.
func chain(protocol v1alpha1.RoutingProtocol, pods ...string) *v1alpha1.RadioNetwork {
	n := networkOf("run", "vhf", pods...)
	n.Spec.Waveform.Link.Loss = "100%"
	for i := 1; i < len(pods); i++ {
		setLink(n, i, i+1, "0%")
	}
	setRouting(n, protocol)
	return n
}

// setLink between two nodes, both ways.
func setLink(n *v1alpha1.RadioNetwork, a, b int, loss v1alpha1.Percent) {
	name := func(i int) string { return fmt.Sprintf("node-%d", i) }
	for _, ends := range [][2]string{{name(a), name(b)}, {name(b), name(a)}} {
		l := v1alpha1.GroupLink{From: ends[0], To: ends[1], LinkModel: v1alpha1.LinkModel{Delay: "1ms", Loss: loss, Limit: 1000}}
		n.Spec.Links = append(slices.DeleteFunc(slices.Clone(n.Spec.Links), func(o v1alpha1.GroupLink) bool { return o.From == l.From && o.To == l.To }), l)
	}
}

func setRouting(n *v1alpha1.RadioNetwork, protocol v1alpha1.RoutingProtocol) {
	hello, validity, tc, tcValidity := v1alpha1.Duration("200ms"), v1alpha1.Duration("3s"), v1alpha1.Duration("400ms"), v1alpha1.Duration("20s")
	n.Spec.Routing = &v1alpha1.Routing{Protocol: protocol, Hello: &hello, HelloValidity: &validity, TC: &tc, TCValidity: &tcValidity}
}

// route has a manager's nodes route until stop is called.
func route(t *testing.T, m *Manager) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Routers.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// bed attaches as many pods to the network.
func attachAll(t *testing.T, m *Manager, n *v1alpha1.RadioNetwork, pods ...string) (all []*pod) {
	t.Helper()
	set(t, m, n)
	for _, uid := range pods {
		p := newPod(t, uid)
		p.attach(t, m, n.Spec.Network)
		all = append(all, p)
	}
	return all
}

// within a minute: routing takes its time on a busy machine.
func within(t *testing.T, what string, condition func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !condition() {
		if time.Since(began) > time.Minute {
			t.Fatalf("after a minute still not: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(began)
}

// kernelRoutes of the platform in the pod: next hops by destination.
func (p *pod) kernelRoutes(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	p.do(t, func() error {
		routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Protocol: routing.RouteProtocol}, netlink.RT_FILTER_PROTOCOL)
		for _, r := range routes {
			via := "direct"
			if r.Gw != nil {
				via = r.Gw.String()
			}
			found[r.Dst.String()] = via
		}
		return err
	})
	return found
}

// alter sends the manager a changed copy of the network.
func alter(t *testing.T, m *Manager, n *v1alpha1.RadioNetwork, change func(*v1alpha1.RadioNetwork)) *v1alpha1.RadioNetwork {
	t.Helper()
	n = n.DeepCopy()
	n.Generation++
	change(n)
	set(t, m, n)
	return n
}

var four = []string{"pod-1", "pod-2", "pod-3", "pod-4"}

func TestNodesOutOfRangeReachEachOtherOverOthers(t *testing.T) {
	t.Parallel()
	for _, protocol := range []v1alpha1.RoutingProtocol{v1alpha1.RoutingOLSRv2, v1alpha1.RoutingOLSRv1} {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			m := newManager(t)
			route(t, m)
			n := chain(protocol, four...)
			pods := attachAll(t, m, n, four...)
			took := within(t, "node-1 has a route to node-4 by node-2", func() bool { return pods[0].kernelRoutes(t)["198.18.9.4/32"] == "198.18.9.2" })
			t.Logf("converged after %v with HELLOs of 200 ms and TCs of 400 ms", took)
			at := pods[3].listenUDP(t, "198.18.9.4:7000")
			within(t, "a datagram arrives over three hops", func() bool { return pods[0].reachesUDP(t, "198.18.9.4:7000", at) })

			// Node 2 goes out of node 1's range, node 3 comes into it.
			alter(t, m, n, func(n *v1alpha1.RadioNetwork) { setLink(n, 1, 2, "100%"); setLink(n, 1, 3, "0%") })
			took = within(t, "node-1 reaches node-4 by node-3", func() bool { return pods[0].kernelRoutes(t)["198.18.9.4/32"] == "198.18.9.3" })
			t.Logf("rerouted after %v", took)
			within(t, "a datagram arrives over two hops", func() bool { return pods[0].reachesUDP(t, "198.18.9.4:7000", at) })
			within(t, "node-1 reaches node-2 by node-3", func() bool { return pods[0].kernelRoutes(t)["198.18.9.2/32"] == "198.18.9.3" })

			if answer := m.Serve(pods[3].request("DEL", "vhf"), nil); answer.Error != "" {
				t.Fatal(answer.Error)
			}
			within(t, "the routes to a node that went are gone", func() bool { return pods[2].kernelRoutes(t)["198.18.9.4/32"] == "" })
		})
	}
}

// routedChain is a worker of radiod whose four nodes have routes to each other.
func routedChain(t *testing.T, r radiodBed) (m *Manager, stop func(), pods []*pod) {
	t.Helper()
	m, _ = r.worker(t)
	stop = route(t, m)
	pods = attachAll(t, m, chain(v1alpha1.RoutingOLSRv2, four...), four...)
	within(t, "the ends of the chain have routes to each other", func() bool {
		return pods[0].kernelRoutes(t)["198.18.9.4/32"] != "" && pods[3].kernelRoutes(t)["198.18.9.1/32"] != ""
	})
	return m, stop, pods
}

func TestRoutesOutliveTheWorkerAndNothingIsLostButInTheGap(t *testing.T) {
	t.Parallel()
	r := newRadiod(t)
	m, stop, pods := routedChain(t, r)
	at := pods[3].listenUDP(t, "198.18.9.4:7000")
	within(t, "a datagram arrives", func() bool { return pods[0].reachesUDP(t, "198.18.9.4:7000", at) })
	before := pods[0].kernelRoutes(t)
	r.seen(t, m)
	stop()
	m.Close()
	// Longer than a HELLO holds.
	time.Sleep(3500 * time.Millisecond)
	if now := pods[0].kernelRoutes(t); fmt.Sprint(now) != fmt.Sprint(before) {
		t.Fatalf("without a worker the routes are %v; want %v", now, before)
	}
	next, _ := r.worker(t)
	route(t, next)
	watchRoutes(t, pods[0], before, func() bool { return counted(next, "node-1").Routing != nil })
	if !pods[0].deliversTo(t, "198.18.9.4:7000", at) {
		t.Error("after the gap a datagram did not arrive")
	}
	within(t, "the next worker's router sends and receives", func() bool {
		c := counted(next, "node-1")
		return c.Routing != nil && c.Routing.Routes == 3 && c.Routing.Neighbours == 1 && c.Routing.PacketsSent > 2 && c.Routing.PacketsReceived > 2
	})
}

// watchRoutes fails if the pod's routes are ever others until a router has run for two seconds. That is shorter than a HELLO
// holds, so that a router on a busy machine does not lose them.
func watchRoutes(t *testing.T, p *pod, want map[string]string, runs func() bool) {
	t.Helper()
	var since time.Time
	for began := time.Now(); since.IsZero() || time.Since(since) < 2*time.Second; time.Sleep(20 * time.Millisecond) {
		if now := p.kernelRoutes(t); fmt.Sprint(now) != fmt.Sprint(want) {
			t.Fatalf("after %v the routes are %v; want %v all the time", time.Since(began), now, want)
		}
		if since.IsZero() && runs() {
			since = time.Now()
		}
		if since.IsZero() && time.Since(began) > time.Minute {
			t.Fatal("after a minute no router runs")
		}
	}
}

func TestASilentRadioHasItsRouterSilent(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	route(t, m)
	n := rfNetwork(four[:2]...)
	pods := attachAll(t, m, n, four[:2]...)
	sent := func() uint64 { return counted(m, "node-1").Routing.PacketsSent }
	within(t, "the nodes have routes to each other", func() bool { return len(pods[0].kernelRoutes(t)) == 1 && len(pods[1].kernelRoutes(t)) == 1 })
	change := func(at time.Duration, transmit bool) v1alpha1.TimedRadioChange {
		return v1alpha1.TimedRadioChange{AtNanoseconds: int64(at), RadioChange: v1alpha1.RadioChange{From: "node-1", Radio: &v1alpha1.RadioPatch{Transmit: &transmit}}}
	}
	t0 := time.Now()
	n = alter(t, m, n, func(n *v1alpha1.RadioNetwork) {
		n.Spec.T0 = &metav1.MicroTime{Time: t0}
		// The first one is carried out by the network's loop.
		n.Spec.Changes = []v1alpha1.TimedRadioChange{change(300*time.Millisecond, false)}
	})
	within(t, "the silent node has no routes any more", func() bool { return len(pods[0].kernelRoutes(t)) == 0 && len(pods[1].kernelRoutes(t)) == 0 })
	before := sent()
	time.Sleep(time.Second)
	if now := sent(); now != before {
		t.Errorf("a silent node sent %d packets", now-before)
	}
	alter(t, m, n, func(n *v1alpha1.RadioNetwork) { n.Spec.Changes = append(n.Spec.Changes, change(time.Since(t0), true)) })
	within(t, "the nodes have routes again", func() bool { return len(pods[0].kernelRoutes(t)) == 1 && len(pods[1].kernelRoutes(t)) == 1 })
}

func TestARadioSilentOnOneOfTwoNetworksLeavesTheOther(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	route(t, m)
	narrow, wide := rfNetwork("pod-1", "pod-2"), rfNetwork("pod-1", "pod-2")
	wide.Name, wide.UID, wide.Spec.Network = "run-uhf", "runuhf", "uhf"
	for i := range wide.Spec.Members {
		w := &wide.Spec.Members[i]
		w.Interface, w.Address, w.Primary = "uhf", fmt.Sprintf("198.18.10.%d/24", i+1), false
	}
	set(t, m, narrow)
	set(t, m, wide)
	pods := []*pod{newPod(t, "pod-1"), newPod(t, "pod-2")}
	for _, p := range pods {
		p.attach(t, m, "vhf")
		p.attach(t, m, "uhf")
	}
	via := func(p int, to string) string { return pods[p].kernelRoutes(t)[to] }
	within(t, "of two links the first is used", func() bool { return via(1, "198.18.9.1/32") == "direct" && via(1, "198.18.10.1/32") == "198.18.9.1" })
	sent := func(network string) uint64 {
		return m.Routers.Counters()[membership.Key{PodUID: "pod-1", Interface: network}].PacketsSent
	}
	silence := false
	alter(t, m, narrow, func(n *v1alpha1.RadioNetwork) {
		n.Spec.T0 = &metav1.MicroTime{Time: time.Now()}
		n.Spec.Changes = []v1alpha1.TimedRadioChange{{RadioChange: v1alpha1.RadioChange{From: "node-1", Radio: &v1alpha1.RadioPatch{Transmit: &silence}}}}
	})
	within(t, "node-2 reaches node-1's silent radio over its other one", func() bool { return via(1, "198.18.9.1/32") == "198.18.10.1" })
	within(t, "node-1 reaches node-2's radio there over its other one", func() bool { return via(0, "198.18.9.2/32") == "198.18.10.2" })
	silent, other := sent("vhf"), sent("uhf")
	time.Sleep(time.Second)
	if now := sent("vhf"); now != silent {
		t.Errorf("the silent radio's router sent %d packets", now-silent)
	}
	if now := sent("uhf"); now < other+3 {
		t.Errorf("the other radio's router sent %d packets in a second; want 3 at least", now-other)
	}
	at := pods[0].listenUDP(t, "198.18.9.1:7000")
	within(t, "a datagram for the silent radio's address arrives over the other", func() bool { return pods[1].reachesUDP(t, "198.18.9.1:7000", at) })
}

func TestRoutersDoNotKeepANodeThatWentWithoutAWord(t *testing.T) {
	t.Parallel()
	for _, protocol := range []v1alpha1.RoutingProtocol{v1alpha1.RoutingOLSRv2, v1alpha1.RoutingOLSRv1, v1alpha1.RoutingStatic, v1alpha1.RoutingBabel} {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath("babeld"); err != nil && protocol == v1alpha1.RoutingBabel {
				t.Skip("babeld is not installed (Debian's package of that name)")
			}
			m := newManager(t)
			route(t, m)
			n := chain(protocol, four[:2]...)
			pods := attachAll(t, m, n, four[:2]...)
			reaches := func() bool { return pods[0].routeVia(t, "198.18.9.2") != "" || len(pods[0].kernelRoutes(t)) > 0 }
			if protocol != v1alpha1.RoutingStatic {
				within(t, "node-1 has a route to node-2", reaches)
			}
			within(t, "node-2 routes", func() bool {
				return m.Routers.Serves("pod-2") && (protocol != v1alpha1.RoutingBabel || len(babelds(t, m)) == 2)
			})
			lives := pods[1].witness(t)
			pods[1].end() // no process, no file, and no word of the runtime
			time.Sleep(500 * time.Millisecond)
			if !lives() {
				t.Fatal("the namespace went by itself: the test tests nothing")
			}
			if err := m.RemovePinned(); err != nil {
				t.Fatal(err)
			}
			if attached, _, _ := statusOf(m, "runvhf"); attached != 1 {
				t.Fatalf("%d attachments; want 1, as one pod is gone", attached)
			}
			took := within(t, "the namespace has ended", func() bool { return !lives() })
			t.Logf("the namespace ended %v after radiod looked", took)
			if m.Routers.Serves("pod-2") {
				t.Error("node-2 still routes")
			}
			within(t, "node-1 has no route to node-2", func() bool { return !reaches() })
			// babeld would continue without radiod.
			alter(t, m, n, func(n *v1alpha1.RadioNetwork) { n.Spec.Routing.Protocol = v1alpha1.RoutingNone })
			within(t, "nobody routes", func() bool { return !m.Routers.Serves("pod-1") })
		})
	}
}

// witness reports whether the pod's namespace still exists, without keeping it: by the other end of a veth.
func (p *pod) witness(t *testing.T) (lives func() bool) {
	t.Helper()
	other := newPod(t, "witness")
	other.do(t, func() error {
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "witness"}, PeerName: "witnessed", PeerNamespace: netlink.NsFd(p.namespace.Fd())})
	})
	return func() bool { return other.has(t, "witness") }
}

// rfNetwork is an RF pipe whose nodes stand side by side.
func rfNetwork(pods ...string) *v1alpha1.RadioNetwork {
	n := networkOf("run", "vhf", pods...)
	n.Spec.Waveform = radiodtest.RFPipe()
	n.Spec.Waveform.RFPipe.PHY.Pathloss = v1alpha1.PathlossFreeSpace
	for i := range n.Spec.Members {
		n.Spec.Members[i].Position = &v1alpha1.Position{Latitude: "50", Longitude: "8", Altitude: "100"}
	}
	setRouting(n, v1alpha1.RoutingOLSRv2)
	return n
}

func TestANodeOfTwoNetworksForwardsBetweenThem(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	route(t, m)
	vhf := networkOf("run", "vhf", "pod-1", "pod-2")
	uhf := networkOf("run", "uhf", "pod-3", "pod-2")
	for i := range uhf.Spec.Members {
		uhf.Spec.Members[i].Address, uhf.Spec.Members[i].Primary = fmt.Sprintf("198.18.10.%d/24", i+1), i == 0
	}
	uhf.Spec.Members[0].Node, uhf.Spec.Members[1].Node = "node-3", "node-2"
	for _, n := range []*v1alpha1.RadioNetwork{vhf, uhf} {
		setRouting(n, v1alpha1.RoutingOLSRv2)
		set(t, m, n)
	}
	pods := map[string]*pod{}
	for _, uid := range four[:3] {
		pods[uid] = newPod(t, uid)
	}
	pods["pod-1"].attach(t, m, "vhf")
	pods["pod-2"].attach(t, m, "vhf")
	within(t, "the first network routes before the second is there", func() bool { return pods["pod-1"].kernelRoutes(t)["198.18.9.2/32"] == "direct" })
	pods["pod-2"].attach(t, m, "uhf")
	pods["pod-3"].attach(t, m, "uhf")
	within(t, "there is a way from one network into the other", func() bool {
		return pods["pod-1"].kernelRoutes(t)["198.18.10.1/32"] == "198.18.9.2" && pods["pod-3"].kernelRoutes(t)["198.18.9.1/32"] == "198.18.10.2"
	})
	at := pods["pod-3"].listenUDP(t, "198.18.10.1:7000")
	within(t, "a datagram arrives", func() bool { return pods["pod-1"].reachesUDP(t, "198.18.10.1:7000", at) })
}

func TestPacketsTakeTheTopologyOfTheirDSCP(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	route(t, m)
	const bulkDSCP = 10
	// The ends share a slow network, and a chain of three fast ones.
	members := [][2]int{{1, 4}, {1, 2}, {2, 3}, {3, 4}}
	pods := map[int]*pod{}
	for i := range 4 {
		pods[i+1] = newPod(t, four[i])
	}
	for k, ends := range members {
		name := fmt.Sprintf("net%d", k)
		n := networkOf("run", name, four[ends[0]-1], four[ends[1]-1])
		rate := v1alpha1.DataRate("10Mbit")
		if k == 0 {
			rate = "100kbit"
		}
		n.Spec.Waveform.Link.Rate = &rate
		for i, node := range ends {
			member := &n.Spec.Members[i]
			member.Node, member.NEM, member.Address, member.Primary = fmt.Sprintf("node-%d", node), int32(node), fmt.Sprintf("198.18.%d.%d/24", k, node), k == 0
			member.MAC = fmt.Sprintf("02:02:00:00:00:%02x", node)
		}
		setRouting(n, v1alpha1.RoutingOLSRv2)
		n.Spec.Routing.Topologies = []v1alpha1.RoutingTopology{{Name: "bulk", Metric: v1alpha1.MetricDAT, DSCP: []int32{8, bulkDSCP}}}
		set(t, m, n)
		for _, node := range ends {
			pods[node].attach(t, m, name)
		}
	}
	const to = "198.18.0.4:7000"
	at := pods[4].listenUDP(t, to)
	hops := func(dscp int) int { return pods[1].hopsOfDatagram(t, to, dscp, at) }
	within(t, "bulk traffic takes the chain", func() bool { return hops(bulkDSCP) == 3 })
	for _, dscp := range []int{0, 46} {
		if got := hops(dscp); got != 1 {
			t.Errorf("a datagram with DSCP %d took %d hops; want the direct one", dscp, got)
		}
	}
	within(t, "each topology's routes are reported", func() bool {
		found := map[string]bool{}
		for _, n := range m.Routes() {
			for _, r := range n.Finder.AppendRoutes(nil) {
				found[fmt.Sprintf("%s %q %v %d %d", n.Node, n.Topology, r.Destination, r.Topology, r.Hops)] = r.Topology == n.Number
			}
		}
		return found[`node-1 "" 198.18.0.4/32 0 1`] && found[`node-1 "bulk" 198.18.0.4/32 1 3`]
	})
}

// hopsOfDatagram sends a datagram with a DSCP, and returns over how many hops it came; 0 if it did not arrive.
func (p *pod) hopsOfDatagram(t *testing.T, address string, dscp int, at *net.UDPConn) int {
	t.Helper()
	set := func(conn *net.UDPConn, option, value int) error {
		raw, err := conn.SyscallConn()
		if err != nil {
			return err
		}
		failed := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, option, value) })
		return errors.Join(err, failed)
	}
	const firstTTL = 64
	p.do(t, func() error {
		conn, err := net.Dial("udp4", address)
		if err != nil {
			return nil // no route is also out of reach
		}
		defer conn.Close()
		if err := errors.Join(set(conn.(*net.UDPConn), unix.IP_TOS, dscp<<2), set(conn.(*net.UDPConn), unix.IP_TTL, firstTTL)); err != nil {
			return err
		}
		_, err = conn.Write([]byte("hello"))
		return err
	})
	if err := set(at, unix.IP_RECVTTL, 1); err != nil {
		t.Fatal(err)
	}
	oob := make([]byte, 64)
	_ = at.SetReadDeadline(time.Now().Add(testTimeout))
	_, n, _, _, err := at.ReadMsgUDP(make([]byte, 16), oob)
	if err != nil {
		return 0
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) == 0 {
		t.Fatalf("%d control messages, %v; want the time to live", len(messages), err)
	}
	return firstTTL + 1 - int(binary.NativeEndian.Uint32(messages[0].Data))
}

func TestTroubleOfARouterIsInTheStatus(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	n := chain(v1alpha1.RoutingOLSRv2, "pod-1")
	set(t, m, n)
	p := newPod(t, "pod-1")
	taken := p.listenUDP(t, "0.0.0.0:269")
	p.attach(t, m, "vhf")
	route(t, m)
	message := func() string { _, text, _ := statusOf(m, "runvhf"); return text }
	within(t, "the status names the node and the port", func() bool {
		return strings.Contains(message(), "node-1: routing on vhf, UDP port 269") && strings.Contains(message(), "address already in use")
	})
	if refused := refusedOf(m, "runvhf"); refused != "" {
		t.Errorf("refused is %q at once: the port may be free soon", refused)
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	within(t, "it routes once the port is free", func() bool { return message() == "" && counted(m, "node-1").Routing != nil })
}

func TestStaticRoutesAreSetAndFollowTheSpec(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	route(t, m)
	n := chain(v1alpha1.RoutingStatic, four[:3]...)
	n.Spec.Members[0].Routes = []v1alpha1.MemberRoute{{To: "198.18.9.3/32", Via: "198.18.9.2"}, {To: "10.7.0.0/16", Via: "198.18.9.2"}}
	n.Spec.Members[2].Routes = []v1alpha1.MemberRoute{{To: "198.18.9.1/32", Via: "198.18.9.2"}}
	pods := attachAll(t, m, n, four[:3]...)
	within(t, "the routes are there", func() bool { return len(pods[0].kernelRoutes(t)) == 2 && len(pods[2].kernelRoutes(t)) == 1 })
	at := pods[2].listenUDP(t, "198.18.9.3:7000")
	within(t, "a datagram arrives", func() bool { return pods[0].reachesUDP(t, "198.18.9.3:7000", at) })
	n = alter(t, m, n, func(n *v1alpha1.RadioNetwork) { n.Spec.Members[0].Routes = n.Spec.Members[0].Routes[:1] })
	within(t, "one of them is gone", func() bool { return fmt.Sprint(pods[0].kernelRoutes(t)) == "map[198.18.9.3/32:198.18.9.2]" })
	alter(t, m, n, func(n *v1alpha1.RadioNetwork) { n.Spec.Routing.Protocol = v1alpha1.RoutingNone })
	within(t, "without routing there are none", func() bool { return len(pods[0].kernelRoutes(t))+len(pods[2].kernelRoutes(t)) == 0 })
}

func TestRoutesAndBytesOfRoutingAreInTheRadioLog(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	route(t, m)
	pods := attachAll(t, m, chain(v1alpha1.RoutingOLSRv2, four[:3]...), four[:3]...)
	s := newSampler(t, m)
	within(t, "node-1 has all routes", func() bool { return len(pods[0].kernelRoutes(t)) == 2 })
	sample := func() string {
		before, err := os.ReadFile(s.Directory + "/run.0.jsonl")
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		s.Sample()
		after, err := os.ReadFile(s.Directory + "/run.0.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		return string(after[len(before):])
	}
	first := sample()
	if want := `"node":"node-1","routing":"olsrv2","whole":true,"routes":[{"to":"198.18.9.2/32","network":"vhf","hops":1,"metric":1},{"to":"198.18.9.3/32","via":"198.18.9.2","network":"vhf","hops":2,"metric":2}]`; !strings.Contains(first, want) {
		t.Errorf("log:\n%s\nwant a line with %s", first, want)
	}
	for _, line := range strings.Split(first, "\n") {
		var radio struct{ FramesSent, BytesSent, RoutingPacketsSent, RoutingBytesSent uint64 }
		if !strings.Contains(line, `"framesSent"`) {
			continue
		}
		if err := json.Unmarshal([]byte(line), &radio); err != nil {
			t.Fatal(err)
		}
		// Nothing but the routing protocol has sent anything. A packet may be under way to the radio, or be sent between the one's counting and the other's.
		if radio.RoutingPacketsSent == 0 || radio.RoutingPacketsSent-radio.FramesSent+1 > 2 || radio.FramesSent == radio.RoutingPacketsSent && radio.BytesSent != radio.RoutingBytesSent {
			t.Errorf("sample %s: want as many frames and bytes as the routing protocol sent", line)
		}
	}
	if second := sample(); strings.Contains(second, `"node":"node-1","routing"`) {
		t.Errorf("routes that have not changed are written again:\n%s", second)
	}
	want := `# HELP vignette_radio_routing_routes Routes of the node that lead through the network.
# TYPE vignette_radio_routing_routes gauge
vignette_radio_routing_routes{experiment="exp",namespace="team",network="vhf",node="node-1"} 2
vignette_radio_routing_routes{experiment="exp",namespace="team",network="vhf",node="node-2"} 2
vignette_radio_routing_routes{experiment="exp",namespace="team",network="vhf",node="node-3"} 2
`
	within(t, "all have all routes", func() bool { return len(pods[1].kernelRoutes(t)) == 2 && len(pods[2].kernelRoutes(t)) == 2 })
	if err := testutil.CollectAndCompare(metrics.Collector{Counters: func() []figures.Network { return m.Counters(false) }}, strings.NewReader(want), "vignette_radio_routing_routes"); err != nil {
		t.Error(err)
	}
}

func TestBabelRoutesWhereItIsInstalled(t *testing.T) {
	t.Parallel()
	testtool.Need(t, "babeld")
	r := newRadiod(t)
	m, _ := r.worker(t)
	stop := route(t, m)
	n := chain(v1alpha1.RoutingBabel, four[:3]...)
	pods := attachAll(t, m, n, four[:3]...)
	reaches := func() bool { return pods[0].routeVia(t, "198.18.9.3") == "198.18.9.2" }
	took := within(t, "babeld has a route over two hops", reaches)
	t.Logf("babeld converged after %v", took)
	at := pods[2].listenUDP(t, "198.18.9.3:7000")
	within(t, "a datagram arrives", func() bool { return pods[0].reachesUDP(t, "198.18.9.3:7000", at) })
	var processes []int
	within(t, "the three daemons are saved", func() bool { processes = babelds(t, m); return len(processes) == 3 })
	stop()
	m.Close()
	next, _ := r.worker(t)
	route(t, next)
	within(t, "the next worker has taken up the daemons", func() bool { return len(babelds(t, next)) == 3 })
	if again := babelds(t, next); !slices.Equal(again, processes) {
		t.Errorf("babeld processes %v; want those of before, %v", again, processes)
	}
	if !reaches() {
		t.Error("the route is gone with the worker")
	}
	alter(t, next, n, func(n *v1alpha1.RadioNetwork) { n.Spec.Routing.Protocol = v1alpha1.RoutingNone })
	within(t, "the daemons' routes are gone", func() bool { return pods[0].routeVia(t, "198.18.9.3") == "" })
}

// babelds lists the process ids of a worker's daemons.
func babelds(t *testing.T, m *Manager) (pids []int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(m.StateDirectory, "routing", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		var saved struct{ State routing.State }
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &saved)
		}
		if err != nil {
			t.Fatal(err)
		}
		if saved.State.Process != 0 && m.Routers.Includes(saved.State.Process) {
			pids = append(pids, saved.State.Process)
		}
	}
	slices.Sort(pids)
	return pids
}

// routeVia returns the next hop of a node's own route in the kernel.
func (p *pod) routeVia(t *testing.T, to string) (via string) {
	t.Helper()
	p.do(t, func() error {
		routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Dst: &net.IPNet{IP: netip.MustParseAddr(to).AsSlice(), Mask: net.CIDRMask(32, 32)}}, netlink.RT_FILTER_DST)
		for _, r := range routes {
			if r.Gw != nil {
				via = r.Gw.String()
			}
		}
		return err
	})
	return via
}
