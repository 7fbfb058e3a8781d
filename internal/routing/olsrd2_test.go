package routing

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/pcapng"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/testcapture"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// olsrd2 is OONF's program: on PATH, or in the folder VIGNETTE_OONF or its sbin.
func olsrd2(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("VIGNETTE_OONF")
	for _, name := range []string{"olsrd2", filepath.Join(folder, "olsrd2"), filepath.Join(folder, "sbin/olsrd2")} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("olsrd2 not installed (OONF's; VIGNETTE_OONF names its folder)")
	return ""
}

// testMedium carries frames between nodes that see each other, and records those of routing.
type testMedium struct {
	nodes []*radiotest.Node
	ours  map[int]*Instance // by NEM id

	mu      sync.Mutex
	sees    map[[2]int]bool
	capture []byte
	packets int
}

func newTestMedium(t *testing.T, count int) *testMedium {
	t.Helper()
	a := &testMedium{ours: map[int]*Instance{}, sees: map[[2]int]bool{}, capture: pcapng.AppendSection(nil, "air", "test")}
	for n := range count {
		a.nodes = append(a.nodes, node(t, n+1))
		n := a.nodes[n]
		if err := netns.Do(n.Namespace, loopbackUp); err != nil {
			t.Fatal(err)
		}
	}
	stop, stopped := make(chan struct{}), sync.WaitGroup{}
	for n := range a.nodes {
		stopped.Go(func() { a.carry(n, stop) })
	}
	t.Cleanup(func() { close(stop); stopped.Wait() })
	return a
}

func loopbackUp() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

// see says whether two nodes, counted from 1, see each other.
func (a *testMedium) see(one, other int, whether bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sees[[2]int{one - 1, other - 1}], a.sees[[2]int{other - 1, one - 1}] = whether, whether
}

// carry one node's frames until stop is closed.
func (a *testMedium) carry(from int, stop chan struct{}) {
	frame, poll := make([]byte, 2048), []unix.PollFd{{Fd: int32(a.nodes[from].TAP), Events: unix.POLLIN}}
	for {
		select {
		case <-stop:
			return
		default:
		}
		if n, err := unix.Poll(poll, 50); n <= 0 || err != nil {
			continue
		}
		if n, err := unix.Read(a.nodes[from].TAP, frame); err == nil {
			a.deliver(from, frame[:n])
		}
	}
}

func (a *testMedium) deliver(from int, frame []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ports := []byte{olsr.Port >> 8, olsr.Port & 255, olsr.Port >> 8, olsr.Port & 255}; len(frame) > 38 && bytes.Equal(frame[34:38], ports) {
		a.capture = pcapng.AppendPacket(a.capture, clock.Realtime(), true, len(frame), frame)
		a.packets++
	}
	for to := range a.nodes {
		if a.sees[[2]int{from, to}] {
			_, _ = unix.Write(a.nodes[to].TAP, frame) // a node that refuses frames receives nothing
		}
	}
}

// The intervals of both.
const (
	testHello, testHelloValidity = 250 * time.Millisecond, 2 * time.Second
	testTC, testTCValidity       = 500 * time.Millisecond, 4 * time.Second
)

// runOurs has a node route by this package, in several topologies if there are some beside the first.
func runOurs(t *testing.T, h *Host, n *radiotest.Node, metric olsr.Metric, topologies []Topology) *Instance {
	t.Helper()
	var types []uint8
	for _, topology := range topologies {
		types = append(types, topology.Type)
	}
	c := Config{Protocol: v1alpha1.RoutingOLSRv2, Metric: metric, Topologies: topologies, Seed: int64(n.NEM),
		Interfaces: []Interface{{Name: n.Name, Index: n.Index, Address: netip.MustParsePrefix(fmt.Sprintf("198.18.0.%d/16", n.NEM)), MTU: 1400,
			Hello: testHello, HelloValidity: testHelloValidity, TC: testTC, TCValidity: testTCValidity, Topologies: types}}}
	i, err := h.Start(n.Namespace, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Stop(); err != nil {
			t.Error(err)
		}
	})
	return i
}

// runTheirs has a node route by olsrd2, with OONF's metric of that name; a constant one is a hop count.
func runTheirs(t *testing.T, program string, n *radiotest.Node, metric string) {
	t.Helper()
	configuration := fmt.Sprintf(`[global]
	fork no
	lockfile -
[log]
	stderr true
[nhdp]
	mpr *
[domain=0]
	metric %s
	mpr *
[olsrv2]
	tc_interval %.2f
	tc_validity %.2f
[interface=%s]
	hello_interval %.2f
	hello_validity %.2f
`, metric, testTC.Seconds(), testTCValidity.Seconds(), n.Name, testHello.Seconds(), testHelloValidity.Seconds())
	if metric == "constant_metric" {
		configuration += "\tconstant_metric - 1\n"
	}
	path := filepath.Join(t.TempDir(), "olsrd2.conf")
	if err := os.WriteFile(path, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	said := &bytes.Buffer{}
	daemon := exec.Command(program, "--load", path)
	daemon.Stdout, daemon.Stderr = said, said
	if err := netns.Do(n.Namespace, daemon.Start); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = daemon.Process.Signal(unix.SIGTERM)
		_ = daemon.Wait()
		if t.Failed() {
			t.Logf("olsrd2 of node %d said:\n%s", n.NEM, said)
		}
	})
}

// fewestHops of a node by the routing protocol that runs there: next hops by destination, "direct" for a neighbour.
func fewestHops(t *testing.T, n *radiotest.Node) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := netns.Do(n.Namespace, func() error {
		routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{}, 0)
		for _, r := range routes {
			if r.Dst == nil || r.Protocol == unix.RTPROT_KERNEL {
				continue
			}
			if ones, _ := r.Dst.Mask.Size(); ones == 32 && !r.Dst.IP.Equal(net.IPv4bcast) {
				via := r.Gw.String()
				if r.Gw == nil || r.Gw.Equal(r.Dst.IP) {
					via = "direct"
				}
				found[r.Dst.IP.String()] = via
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// distances in hops from a node, counted from 1, to all; 0 for out of reach.
func (a *testMedium) distances(from int) []int {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, reached := make([]int, len(a.nodes)+1), []int{from}
	for len(reached) > 0 {
		at := reached[0]
		reached = reached[1:]
		for to := 1; to <= len(a.nodes); to++ {
			if a.sees[[2]int{at - 1, to - 1}] && to != from && found[to] == 0 {
				found[to] = found[at] + 1
				reached = append(reached, to)
			}
		}
	}
	return found
}

// firstDifference returns which of a node's routes do not have the fewest hops, are missing, or are superfluous; "" for
// none.
func (a *testMedium) firstDifference(t *testing.T, n int) string {
	t.Helper()
	got, far := fewestHops(t, a.nodes[n-1]), a.distances(n)
	for to := 1; to <= len(a.nodes); to++ {
		via, there := got[address(to)]
		switch {
		case to == n || !there && far[to] == 0:
			continue
		case far[to] == 0:
			return fmt.Sprintf("a route to node %d, which is out of reach", to)
		case !there:
			return fmt.Sprintf("no route to node %d, %d hops away", to, far[to])
		case via == "direct" && far[to] == 1:
			continue
		}
		next := 0
		for other := 1; other <= len(a.nodes); other++ {
			if via == address(other) {
				next = other
			}
		}
		if next == 0 || far[next] != 1 || a.distances(next)[to] != far[to]-1 {
			return fmt.Sprintf("the route to node %d, %d hops away, leads to %v", to, far[to], via)
		}
	}
	return ""
}

func address(n int) string { return fmt.Sprintf("198.18.0.%d", n) }

// converge waits until all have the routes of what the nodes see.
func (a *testMedium) converge(t *testing.T, what string) {
	t.Helper()
	began := time.Now()
	for n := 1; n <= len(a.nodes); {
		problem := a.firstDifference(t, n)
		if problem == "" {
			n++
			continue
		}
		if time.Since(began) > time.Minute {
			for n, i := range a.ours {
				t.Logf("node %d: %+v\n%+v", n, i.Tables(), i.counters())
			}
			t.Fatalf("%s: after a minute node %d has still %s", what, n, problem)
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Logf("%s: all nodes have their routes after %v", what, time.Since(began).Round(10*time.Millisecond))
}

// reaches sends datagrams from one node to another until one arrives.
func (a *testMedium) reaches(t *testing.T, from, to int, patience time.Duration) bool {
	t.Helper()
	var at net.PacketConn
	var out net.Conn
	there := address(to) + ":7000"
	err := netns.Do(a.nodes[to-1].Namespace, func() (err error) { at, err = net.ListenPacket("udp4", there); return err })
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	if err := netns.Do(a.nodes[from-1].Namespace, func() (err error) { out, err = net.Dial("udp4", there); return err }); err != nil {
		return false // no route
	}
	defer out.Close()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		_, _ = out.Write([]byte("hello"))
		_ = at.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if _, _, err := at.ReadFrom(make([]byte, 16)); err == nil {
			return true
		}
	}
	return false
}

// dissect the captured packets with tshark, where it is there.
func (a *testMedium) dissect(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("tshark"); err != nil {
		t.Log("tshark is not installed (apt-get install tshark): the packets are not dissected")
		return
	}
	a.mu.Lock()
	file, packets := bytes.Clone(a.capture), a.packets
	a.mu.Unlock()
	path := filepath.Join(t.TempDir(), "air.pcapng")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	read := testcapture.Read(t, path, "-d", "udp.port==269,packetbb")
	testcapture.NoneOf(t, read, "Malformed", "malformed", "Expert Info (Error", "Expert Info (Warn")
	if got := strings.Count(read, "PacketBB"); got != packets || packets < 100 {
		t.Errorf("tshark dissects %d of %d packets; want all, and more than 100", got, packets)
	}
	t.Logf("tshark dissects %d packets of both, none malformed", packets)
}

// checkAirtime checks links without a known rate, which count as the slowest. None of their packets was lost,
// and they may still have the maximum that they begin with.
func (a *testMedium) checkAirtime(t *testing.T) {
	t.Helper()
	const least, most = 1 << 21, 1 << 24
	for n, i := range a.ours {
		for _, l := range i.Tables().Links {
			t.Logf("node %d, link to %v: metric %d as we measure it, %d as the neighbour does", n, l.Neighbour, l.InMetric, l.OutMetric)
			if l.InMetric < least || l.OutMetric < least || l.InMetric > most || l.OutMetric > most {
				t.Errorf("node %d, link to %v: metrics %d and %d; want both between %d and %d", n, l.Neighbour, l.InMetric, l.OutMetric, least, most)
			}
		}
	}
}

// ends of links of a line, or a ring, of that many nodes.
func line(count int) (links [][2]int) {
	for n := 1; n < count; n++ {
		links = append(links, [2]int{n, n + 1})
	}
	return links
}

func ring(count int) [][2]int { return append(line(count), [2]int{1, count}) }

func TestOursAndOlsrd2FormOneNetwork(t *testing.T) {
	program := olsrd2(t)
	for _, c := range []struct {
		name   string
		links  [][2]int
		nodes  int
		ours   []int  // of the nodes, the others are olsrd2's
		broken [2]int // a link that goes and comes
		across [2]int // nodes that only that link joins, or that are far apart
		metric olsr.Metric
		theirs string
		// topologies of ours beside the first; olsrd2 has one.
		topologies []Topology
	}{
		{"a line by hop count, ours first", line(4), 4, []int{1, 3}, [2]int{2, 3}, [2]int{1, 4}, olsr.HopCount, "constant_metric", nil},
		{"a line by hop count, ours in the middle", line(5), 5, []int{2, 3}, [2]int{2, 3}, [2]int{1, 5}, olsr.HopCount, "constant_metric", nil},
		{"a ring with chords by hop count, every other one ours", append(ring(8), [2]int{1, 4}, [2]int{2, 7}, [2]int{3, 6}), 8, []int{1, 3, 5, 7},
			[2]int{1, 4}, [2]int{1, 5}, olsr.HopCount, "constant_metric", nil},
		{"a line by hop count, ours with three topologies", line(5), 5, []int{1, 3, 4}, [2]int{2, 3}, [2]int{1, 5}, olsr.HopCount, "constant_metric", bulkAndVoice()},
		{"a line by directional airtime, ours first", line(4), 4, []int{1, 3}, [2]int{2, 3}, [2]int{1, 4}, olsr.DAT, "ff_dat_metric", nil},
		{"a line by directional airtime, ours at the ends", line(5), 5, []int{1, 5}, [2]int{2, 3}, [2]int{1, 5}, olsr.DAT, "ff_dat_metric", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if plugins, _ := exec.Command(program, "--version").CombinedOutput(); !bytes.Contains(plugins, []byte(c.theirs)) {
				t.Skipf("this olsrd2 is built without the plugin %s", c.theirs)
			}
			a := newTestMedium(t, c.nodes)
			a.run(t, program, c.ours, c.metric, c.theirs, c.topologies)
			for _, ends := range c.links {
				a.see(ends[0], ends[1], true)
			}
			a.converge(t, "from the start")
			for _, ends := range [][2]int{c.across, {c.across[1], c.across[0]}} {
				if !a.reaches(t, ends[0], ends[1], 5*time.Second) {
					t.Errorf("node %d does not reach node %d", ends[0], ends[1])
				}
			}
			a.see(c.broken[0], c.broken[1], false)
			a.converge(t, "after a link broke")
			if there := a.distances(c.across[0])[c.across[1]] > 0; a.reaches(t, c.across[0], c.across[1], 500*time.Millisecond) != there {
				t.Errorf("with a link broken, node %d reaches node %d: %v; want %v", c.across[0], c.across[1], !there, there)
			}
			a.see(c.broken[0], c.broken[1], true)
			a.converge(t, "after it was mended")
			if !a.reaches(t, c.across[0], c.across[1], 5*time.Second) {
				t.Errorf("node %d does not reach node %d after the link was mended", c.across[0], c.across[1])
			}
			for n, i := range a.ours {
				if refused := i.counters().Refused; refused > 0 {
					t.Errorf("node %d refused %d of olsrd2's packets", n, refused)
				}
			}
			if c.metric == olsr.DAT {
				a.checkAirtime(t)
			}
			a.dissect(t)
		})
	}
}

// run has the nodes route, by our router and olsrd2.
func (a *testMedium) run(t *testing.T, program string, ours []int, metric olsr.Metric, theirs string, topologies []Topology) {
	t.Helper()
	host, err := NewHost(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	for n := 1; n <= len(a.nodes); n++ {
		if slices.Contains(ours, n) {
			a.ours[n] = runOurs(t, host, a.nodes[n-1], metric, topologies)
		} else {
			runTheirs(t, program, a.nodes[n-1], theirs)
		}
	}
}

func (i *Instance) counters() (c olsr.Counters) {
	i.host.do(func() { c = i.router.Counters() })
	return c
}
