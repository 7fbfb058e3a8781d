package worker

import (
	"context"
	"encoding/base64"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/peers"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// cable is a socket that can be cut.
type cable struct {
	*net.UDPConn
	cut *atomic.Bool
}

func (c *cable) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	if c.cut.Load() {
		return len(b), nil
	}
	return c.UDPConn.WriteToUDPAddrPort(b, to)
}

// gapNotes keeps what is recorded.
type gapNotes struct {
	mu   sync.Mutex
	gaps []runapi.RadioGap
}

func (g *gapNotes) Record(_ string, gaps []runapi.RadioGap, _ []NetworkCounters) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gaps = append(g.gaps, gaps...)
	return nil
}

func (g *gapNotes) unreachable() (found []runapi.RadioGap) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, gap := range g.gaps {
		if gap.Gap == gapUnreachable {
			found = append(found, gap)
		}
	}
	return found
}

// site is one host of a test's.
type site struct {
	*Manager
	hosts *Hosts
	gaps  *gapNotes
}

func newSite(t *testing.T, name string, cut *atomic.Bool, skew time.Duration) *site {
	t.Helper()
	s := &site{Manager: newManager(t), gaps: &gapNotes{}}
	s.Recorder = s.gaps
	key, err := peers.NewPrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := peers.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.hosts = NewHosts(HostsOptions{Host: name, Address: conn.LocalAddr().String(), Key: key, Conn: &cable{conn, cut}, Manager: s.Manager,
		Told: func(monotonic int64) int64 { return monotonic + int64(skew) }, MTU: func(netip.AddrPort) int { return 1400 }})
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() { _ = s.hosts.Run(ctx, nil) })
	t.Cleanup(func() { cancel(); wait.Wait() })
	return s
}

// publish makes the network's status what the sites would write, and has them all read it.
func publish(t *testing.T, n *v1alpha1.RadioNetwork, sites ...*site) {
	t.Helper()
	told := n.DeepCopy()
	told.Generation = 1
	for _, s := range sites {
		var status hostStatus
		s.describeHost(string(n.UID), &status)
		entry := v1alpha1.RadioNetworkHost{Host: s.hosts.Host, Peer: &status.peer}
		for _, a := range s.attachments {
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
func together(t *testing.T, delay v1alpha1.Duration) (a, b *site, here, there *pod, n *v1alpha1.RadioNetwork, cut *atomic.Bool) {
	t.Helper()
	cut = &atomic.Bool{}
	a, b = newSite(t, "host-a", cut, 0), newSite(t, "host-b", cut, 250*time.Millisecond)
	n = networkOf("run-1", "vhf", "pod-1", "pod-2")
	n.Spec.Waveform.Link.Delay = delay
	n.Generation = 1
	for _, s := range []*site{a, b} {
		if err := s.SetNetwork(n); err != nil {
			t.Fatal(err)
		}
	}
	here, there = newPod(t, "pod-1"), newPod(t, "pod-2")
	here.attach(t, a.Manager, "vhf")
	there.attach(t, b.Manager, "vhf")
	publish(t, n, a, b)
	known := func(s *site, host string) bool {
		peer := s.hosts.peers.Peer(host)
		return peer != nil && peer.Clock().Known
	}
	eventually(t, "the hosts know each other's clocks", func() bool { return known(a, "host-b") && known(b, "host-a") })
	return a, b, here, there, n, cut
}

func TestFramesCrossHostsAtTheModelsTimeWhateverTheirClocksShow(t *testing.T) {
	const delay = 60 * time.Millisecond
	a, b, here, there, n, _ := together(t, "60ms")
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
		a.hosts.peers.Peer("host-b").Clock())
	if delays[0] < delay-time.Millisecond || delays[0] > delay+20*time.Millisecond {
		t.Errorf("the fastest datagram took %v; want %v", delays[0], delay)
	}
	offset := a.hosts.peers.Peer("host-b").Clock()
	if (offset.Offset - 250*time.Millisecond).Abs() > offset.Uncertainty+50*time.Microsecond {
		t.Errorf("the clock of host-b is reckoned %v ± %v ahead; it is 250 ms", offset.Offset, offset.Uncertainty)
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
	for _, c := range b.hosts.counted {
		late += c.late.Load()
	}
	t.Logf("%d transmissions came late", late)
}

func TestALostHostShowsInTheStatusAndTheResults(t *testing.T) {
	a, b, _, _, n, cut := together(t, "1ms")
	cut.Store(true)
	eventually(t, "both record it", func() bool { return len(a.gaps.unreachable()) == 1 && len(b.gaps.unreachable()) == 1 })
	var status hostStatus
	a.describeHost(string(n.UID), &status)
	if !strings.Contains(status.message, "host host-b: not reachable since 2") {
		t.Errorf("message %q; want it to name host-b", status.message)
	}
	cut.Store(false)
	eventually(t, "the gap ends", func() bool { return len(a.gaps.unreachable()) == 2 })
	gaps := a.gaps.unreachable()
	if gaps[0].ToNanoseconds != 0 || gaps[1].ToNanoseconds-gaps[1].FromNanoseconds < int64(peers.LostAfter) || gaps[0].FromNanoseconds != gaps[1].FromNanoseconds {
		t.Errorf("gaps %+v; want one that begins, and the same that ends at least %v later", gaps, peers.LostAfter)
	}
	a.describeHost(string(n.UID), &status)
	if strings.Contains(a.hosts.trouble(string(n.UID)), "reachable") {
		t.Error("the message stays")
	}
}

func TestAHostWithoutNodesLeavesAndIsNotTakenForLost(t *testing.T) {
	a, b, _, _, n, _ := together(t, "1ms")
	if err := b.removeIf(memberKey{"pod-2", "vhf"}, nil); err != nil {
		t.Fatal(err)
	}
	publish(t, n, a, b)
	time.Sleep(peers.LostAfter + 500*time.Millisecond)
	if gaps := append(a.gaps.unreachable(), b.gaps.unreachable()...); len(gaps) > 0 {
		t.Errorf("gaps %+v; want none", gaps)
	}
	if len(a.hosts.spreads["run-1vhf"].ports) != 0 {
		t.Error("host-a still has a port for the node that is gone")
	}
}

func TestATDMANetworkOnTwoHostsSaysThatItIsApart(t *testing.T) {
	a, b, _, _, n, _ := together(t, "1ms")
	n.Generation, n.Spec.Waveform = 0, v1alpha1.WaveformSpec{TDMA: &v1alpha1.TDMAModel{}}
	h := a.hosts
	for _, s := range []*site{a, b} {
		entry := v1alpha1.RadioNetworkHost{Host: s.hosts.Host, NEMs: []int32{1}, Peer: &v1alpha1.RadioPeer{Address: s.hosts.Address,
			Key: base64.StdEncoding.EncodeToString(make([]byte, peers.KeyLength))}}
		n.Status.Hosts = append(n.Status.Hosts, entry)
	}
	h.wiring.Lock()
	s := h.spreads[string(n.UID)]
	s.object = n
	h.keepApart(s, h.wanted(n))
	h.keepApart(s, h.wanted(n))
	h.wiring.Unlock()
	want := "network vhf has nodes on hosts host-a and host-b: tdma does not carry frames between hosts"
	if trouble := h.trouble(string(n.UID)); !strings.HasPrefix(trouble, want) {
		t.Errorf("message %q; want %q", trouble, want)
	}
	eventually(t, "the results say so once", func() bool { return len(a.gaps.unreachable()) == 1 })
}

func TestWrittenShipmentsAreReadAsTheyWere(t *testing.T) {
	same := func(x int64) int64 { return x + 5 }
	for name, s := range map[string]radio.Shipment{
		"a frame for all":   {Source: 65534, Index: 7, Sent: 1, Start: 2, Due: 3, Bytes: 3, Data: []byte{1, 2, 3}},
		"a frame for some":  {Source: 1, Receivers: []uint16{2, 65534}, Due: -9, Bytes: 1, Data: []byte{9}},
		"only interference": {Source: 3, FrequencyHertz: 2.4e9, PowerDBm: -3.5, RateBitsPerSecond: 1e6, Bytes: 900},
	} {
		t.Run(name, func(t *testing.T) {
			id, got, err := parseShipment(appendShipment(nil, networkIDOf("uid"), &s, same))
			if err != nil || id != networkIDOf("uid") {
				t.Fatalf("%x: %v", id, err)
			}
			if got.Source != s.Source || got.Index != s.Index || got.Due != s.Due+5 || got.Sent != s.Sent+5 || got.Start != s.Start+5 ||
				!slices.Equal(got.Receivers, s.Receivers) || !slices.Equal(got.Data, s.Data) || got.Bytes != s.Bytes ||
				got.FrequencyHertz != s.FrequencyHertz || got.PowerDBm != s.PowerDBm || got.RateBitsPerSecond != s.RateBitsPerSecond {
				t.Errorf("read %+v; want %+v", got, s)
			}
		})
	}
}

func TestOtherHostsEntriesAreChecked(t *testing.T) {
	good := base64.StdEncoding.EncodeToString(make([]byte, peers.KeyLength))
	for name, c := range map[string]struct {
		peer v1alpha1.RadioPeer
		want string
	}{
		"good":       {v1alpha1.RadioPeer{Address: "192.0.2.7:9601", Key: good}, ""},
		"no port":    {v1alpha1.RadioPeer{Address: "192.0.2.7", Key: good}, "peer.address"},
		"a name":     {v1alpha1.RadioPeer{Address: "host:9601", Key: good}, "peer.address"},
		"short key":  {v1alpha1.RadioPeer{Address: "192.0.2.7:9601", Key: good[:20]}, "peer.key"},
		"not base64": {v1alpha1.RadioPeer{Address: "192.0.2.7:9601", Key: "§"}, "peer.key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parsePeer(&c.peer)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v; want an error with %q", err, c.want)
			}
		})
	}
}

func FuzzParseShipment(f *testing.F) {
	f.Add(appendShipment(nil, networkIDOf("uid"), &radio.Shipment{Receivers: []uint16{1}, Bytes: 1, Data: []byte{1}}, func(x int64) int64 { return x }))
	f.Add([]byte{shipmentVersion})
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, s, err := parseShipment(b); err == nil && len(s.Data) > 0 && len(s.Data) != s.Bytes {
			t.Errorf("a frame of %d bytes has %d", s.Bytes, len(s.Data))
		}
	})
}
