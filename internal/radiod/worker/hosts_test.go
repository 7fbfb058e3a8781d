package worker

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/radiod/hosts"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/peers"
	"vignette.dev/vignette/internal/radiod/radiodtest"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// gapNotes keeps what is recorded.
type gapNotes struct {
	mu   sync.Mutex
	gaps []runapi.RadioGap
}

func (g *gapNotes) Record(_ string, gaps []runapi.RadioGap, _ []figures.Network) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gaps = append(g.gaps, gaps...)
	return nil
}

func (g *gapNotes) unreachable() (found []runapi.RadioGap) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, gap := range g.gaps {
		if gap.Gap == "hostUnreachable" {
			found = append(found, gap)
		}
	}
	return found
}

// site is one host of a test's.
type site struct {
	*Manager
	plane *planeNotes
	hosts *hosts.Hosts
	gaps  *gapNotes
}

// planeNotes notes what is asked of a data plane.
type planeNotes struct {
	dataplane.Plane
	mu     sync.Mutex
	remote map[dataplane.PortID]bool // ports of other hosts
}

func (p *planeNotes) Attach(r *dataplane.Port) (dataplane.PortID, error) {
	id, err := p.Plane.Attach(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && r.Host != "" {
		p.remote[id] = true
	}
	return id, err
}

func (p *planeNotes) Detach(id dataplane.PortID) (dataplane.PortCounters, error) {
	p.mu.Lock()
	delete(p.remote, id)
	p.mu.Unlock()
	return p.Plane.Detach(id)
}

// sees returns the state of another host.
func (s *site) sees(host string) dataplane.HostState {
	for _, state := range s.hosts.States() {
		if state.Host == host {
			return state
		}
	}
	return dataplane.HostState{}
}

type noLog struct{}

func (noLog) Append(string, int64, []byte) error { return nil }

// skewedClock clocks are ahead, and drift by parts of a second in a second.
type skewedClock struct {
	ahead time.Duration
	drift float64
}

func newSite(t *testing.T, name string, cut *atomic.Bool, skew skewedClock) *site {
	t.Helper()
	s := &site{Manager: newManager(t), gaps: &gapNotes{}}
	s.Options.Recorder, s.Networks.Recorder = s.gaps, s.gaps
	local := s.Networks.Plane.(*dataplane.Local)
	s.plane = &planeNotes{Plane: local, remote: map[dataplane.PortID]bool{}}
	s.Networks.Plane = s.plane
	key, err := peers.NewPrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := peers.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	began := clock.Monotonic()
	local.OpenHosts(dataplane.HostOptions{Host: name, Key: key, Conn: &radiodtest.Cable{UDPConn: conn, Cut: cut}, Log: s.Options.Log,
		PeerTime: func(monotonic int64) int64 {
			return monotonic + int64(skew.ahead) + int64(skew.drift*float64(monotonic-began))
		},
		MTU: func(netip.AddrPort) int { return 1400 }})
	s.hosts = hosts.New(hosts.Options{Host: name, Address: conn.LocalAddr().String(), Key: key.Public(), Plane: s.plane, Log: s.Options.Log, Recorder: s.gaps, Changed: s.Changed})
	s.SetHosts(s.hosts)
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() { _ = s.hosts.Run(ctx, noLog{}) })
	t.Cleanup(func() { cancel(); wait.Wait() })
	return s
}

// publish makes the network's status what the sites would write, and has them all read it.
func publish(t *testing.T, n *v1alpha1.RadioNetwork, sites ...*site) {
	t.Helper()
	told := n.DeepCopy()
	told.Generation = 1
	for _, s := range sites {
		status, _ := s.HostStatus(string(n.UID))
		entry := v1alpha1.RadioNetworkHost{Host: s.hosts.Host, Peer: &status.Peer}
		for _, a := range s.members.Attachments(membership.OfNetwork(string(n.UID))) {
			entry.NEMs = append(entry.NEMs, a.Member.NEM)
		}
		told.Status.Hosts = append(told.Status.Hosts, entry)
	}
	for _, s := range sites {
		if err := s.SetNetwork(told); err != nil {
			t.Fatal(err)
		}
	}
}

// together is a network of two nodes on two hosts, one of which has another clock.
func together(t *testing.T, waveform v1alpha1.WaveformSpec) (a, b *site, here, there *pod, n *v1alpha1.RadioNetwork, cut *atomic.Bool) {
	t.Helper()
	cut = &atomic.Bool{}
	a, b = newSite(t, "host-a", cut, skewedClock{}), newSite(t, "host-b", cut, skewedClock{ahead: 250 * time.Millisecond})
	n = networkOf("run-1", "vhf", "pod-1", "pod-2")
	n.Spec.Waveform = waveform
	for i := range n.Spec.Members {
		n.Spec.Members[i].Position = northOf(i, 100)
	}
	pods := spreadOver(t, n, a, b)
	return a, b, pods[0], pods[1], n, cut
}

// northOf is a place in a line of places that are so far apart.
func northOf(index int, metres float64) *v1alpha1.Position {
	const metresPerDegree = 111.2e3
	return &v1alpha1.Position{Latitude: v1alpha1.Degrees(fmt.Sprintf("%.6f", 58+float64(index)*metres/metresPerDegree)), Longitude: "8"}
}

// spreadOver attaches a network's nodes to sites alternately; the sites then know each other's clocks.
func spreadOver(t *testing.T, n *v1alpha1.RadioNetwork, sites ...*site) (pods []*pod) {
	t.Helper()
	n.Generation = 1
	for _, s := range sites {
		if err := s.SetNetwork(n); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n.Spec.Members {
		pods = append(pods, newPod(t, string(n.Spec.Members[i].PodUID)))
		pods[i].attach(t, sites[i%len(sites)].Manager, "vhf")
	}
	publish(t, n, sites...)
	for _, s := range sites {
		for _, other := range sites {
			if s == other {
				continue
			}
			eventually(t, s.hosts.Host+" knows the clock of "+other.hosts.Host, func() bool {
				return s.sees(other.hosts.Host).Clock.Known
			})
		}
	}
	time.Sleep(200 * time.Millisecond) // by then time slots follow these clocks
	return pods
}

func linkOf(delay v1alpha1.Duration) v1alpha1.WaveformSpec {
	return v1alpha1.WaveformSpec{Link: &v1alpha1.LinkModel{Delay: delay, Loss: "0%", Limit: 1000}}
}

// slotsOf a waveform that takes the pathloss from positions.
func slotsOf(slot v1alpha1.Duration) v1alpha1.WaveformSpec {
	w := radiodtest.TDMA()
	w.TDMA.PHY.Pathloss, w.TDMA.Structure.SlotDuration = v1alpha1.PathlossFreeSpace, slot
	return w
}

func TestFramesCrossHostsAtTheModelsTimeWhateverTheirClocksShow(t *testing.T) {
	const delay = 60 * time.Millisecond
	a, b, here, there, n, _ := together(t, linkOf("60ms"))
	at := there.listenUDP(t, "198.18.9.2:4000")
	from := here.listenUDP(t, "198.18.9.1:4001")
	to, _ := net.ResolveUDPAddr("udp4", "198.18.9.2:4000")
	var delays []time.Duration
	for i := range 21 {
		sent := time.Now()
		if _, err := from.WriteTo(make([]byte, 600+i), to); err != nil {
			t.Fatal(err)
		}
		_ = at.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, _, err := at.ReadFrom(make([]byte, 2000)); err != nil {
			t.Fatalf("datagram %d: %v", i, err)
		}
		if i > 0 { // the first waits for ARP, which crosses too
			delays = append(delays, time.Since(sent))
		}
	}
	slices.Sort(delays)
	t.Logf("delay %v to %v, median %v; host-b's clock by host-a: %+v", delays[0], delays[len(delays)-1], delays[len(delays)/2],
		a.sees("host-b").Clock)
	if delays[0] < delay-time.Millisecond || delays[0] > delay+20*time.Millisecond {
		t.Errorf("the fastest datagram took %v; want %v", delays[0], delay)
	}
	offset := a.sees("host-b").Clock
	if (offset.Offset - 250*time.Millisecond).Abs() > offset.Uncertainty+50*time.Microsecond {
		t.Errorf("the clock of host-b is %v ± %v ahead; it is 250 ms", offset.Offset, offset.Uncertainty)
	}
	sender, receiver := a.Counters(false), b.Counters(false)
	if len(sender) != 1 || len(sender[0].Nodes) != 1 || len(receiver[0].Nodes) != 1 {
		t.Fatalf("each host counts its own node only: %+v, %+v", sender, receiver)
	}
	if got := sender[0].Nodes[0]; got.FramesSent != got.Released+uint64(got.InFlight)+got.Drops[radio.NoReceiver] {
		t.Errorf("frames of %s do not add up: %+v", n.Name, got.Counters)
	}
	if got := receiver[0].Nodes[0].FramesReceived; got < 21 {
		t.Errorf("%d frames received; want at least 21", got)
	}
	var late uint64
	for _, c := range b.hosts.States() {
		late += c.Late
	}
	t.Logf("%d transmissions came late", late)
}

func TestALostHostShowsInTheStatusAndTheResults(t *testing.T) {
	for name, waveform := range map[string]v1alpha1.WaveformSpec{"link": linkOf("1ms"), "tdma": slotsOf("20ms")} {
		t.Run(name, func(t *testing.T) { losesAHost(t, waveform) })
	}
}

func losesAHost(t *testing.T, waveform v1alpha1.WaveformSpec) {
	t.Helper()
	a, b, here, there, n, cut := together(t, waveform)
	at := there.listenUDP(t, "0.0.0.0:7000")
	if !reaches(t, here, at, arrivalTimeout) {
		t.Error("nothing goes from host to host")
	}
	cut.Store(true)
	eventually(t, "both record it", func() bool { return len(a.gaps.unreachable()) == 1 && len(b.gaps.unreachable()) == 1 })
	status, _ := a.HostStatus(string(n.UID))
	if !strings.Contains(status.Message, "host host-b: not reachable since 2") {
		t.Errorf("message %q; want it to name host-b", status.Message)
	}
	if reaches(t, here, at, testTimeout) {
		t.Error("a frame went to a lost host")
	}
	cut.Store(false)
	eventually(t, "the gap ends", func() bool { return len(a.gaps.unreachable()) == 2 })
	gaps := a.gaps.unreachable()
	if gaps[0].ToNanoseconds != 0 || gaps[1].ToNanoseconds-gaps[1].FromNanoseconds < int64(peers.LostAfter) || gaps[0].FromNanoseconds != gaps[1].FromNanoseconds {
		t.Errorf("gaps %+v; want one that begins, and the same that ends at least %v later", gaps, peers.LostAfter)
	}
	if strings.Contains(a.hosts.Trouble(string(n.UID)), "reachable") {
		t.Error("the message stays")
	}
	eventually(t, "frames go from host to host again", func() bool { return reaches(t, here, at, testTimeout) })
}

// reaches reports whether a broadcast arrives at a socket within a time.
func reaches(t *testing.T, from *pod, at *net.UDPConn, within time.Duration) bool {
	t.Helper()
	from.sendBroadcasts(t, 1)
	_ = at.SetReadDeadline(time.Now().Add(within))
	_, _, err := at.ReadFrom(make([]byte, 16))
	return err == nil
}

func TestAHostWithoutNodesLeavesAndIsNotTakenForLost(t *testing.T) {
	a, b, _, there, n, _ := together(t, linkOf("1ms"))
	if answer := b.Serve(there.request("DEL", "vhf"), nil); answer.Error != "" {
		t.Fatal(answer.Error)
	}
	publish(t, n, a, b)
	time.Sleep(peers.LostAfter + 500*time.Millisecond)
	if gaps := append(a.gaps.unreachable(), b.gaps.unreachable()...); len(gaps) > 0 {
		t.Errorf("gaps %+v; want none", gaps)
	}
	a.plane.mu.Lock()
	defer a.plane.mu.Unlock()
	if len(a.plane.remote) > 0 {
		t.Error("host-a still has a port for the node that is gone")
	}
}
