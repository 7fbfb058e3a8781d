package dataplane

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/internal/radiod/holder"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
)

// bed is a data plane that workers use by a socket, the first of them plane, and nodes with real TAPs.
type bed struct {
	server *Server
	plane  *Client
	folder string
	host   string // host-a where it is empty
	listen string
	key    []byte
	nodes  []*radiotest.Node
}

func newBed(t *testing.T, nodes int) *bed {
	t.Helper()
	if err := radiotest.Missing(); err != nil {
		t.Skip(err)
	}
	b := &bed{server: NewServer(slog.New(slog.DiscardHandler)), folder: t.TempDir()}
	t.Cleanup(func() { _ = b.server.Close() })
	for i := range nodes {
		n, err := radiotest.NewNode(i+1, 1500)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = n.Close() })
		b.nodes = append(b.nodes, n)
	}
	b.plane = b.worker(t)
	return b
}

// worker connects another worker.
func (b *bed) worker(t *testing.T) *Client {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	var ends [2]*net.UnixConn
	for i := range ends {
		ends[i], err = holder.Conn(os.NewFile(uintptr(fds[i]), "socket")) //nolint:gosec // a descriptor
		must(t, err)
	}
	served := make(chan error, 1)
	go func() { served <- b.server.Serve(ends[0]) }()
	c, err := Connect(ends[1], ProcessOptions{StateDirectory: b.folder, Host: cmp.Or(b.host, "host-a"), Listen: b.listen, Key: b.key})
	must(t, err)
	t.Cleanup(func() {
		_ = c.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return c
}

func (b *bed) attach(t *testing.T, p Plane, node int, counters string) PortID {
	t.Helper()
	n := b.nodes[node]
	id, err := p.Attach(&Port{Network: "run", Name: nameOf(node), NEM: node + 1, MAC: macOf(n.MAC), Descriptor: n.TAP, CounterFile: counters})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func nameOf(node int) string { return fmt.Sprintf("node-%d", node+1) }

func macOf(m net.HardwareAddr) radio.MAC {
	mac, _ := radio.ParseMAC(m.String())
	return mac
}

// send reports whether a frame arrives, which it may not.
func (b *bed) send(t *testing.T, from, to int, sequence uint64) (arrived bool) {
	t.Helper()
	return b.sendWithin(t, 500*time.Millisecond, from, to, sequence)
}

// carries is send for a frame that must arrive, on a busy machine too.
func (b *bed) carries(t *testing.T, from, to int, sequence uint64) (arrived bool) {
	t.Helper()
	return b.sendWithin(t, 10*time.Second, from, to, sequence)
}

func (b *bed) sendWithin(t *testing.T, timeout time.Duration, from, to int, sequence uint64) (arrived bool) {
	t.Helper()
	if err := b.nodes[from].Send(b.nodes[from].Frame(b.nodes[to].MAC, sequence, 100)); err != nil {
		t.Fatal(err)
	}
	r, ok, err := b.nodes[to].Receive(timeout)
	if err != nil {
		t.Fatal(err)
	}
	return ok && r.Sequence == sequence
}

// linkNetwork is a network of links that lose all frames in the given changes.
func linkNetwork(losing ...time.Duration) *Network {
	n := &Network{UID: "run", MTU: 1500, Link: &LinkModel{}, Now: State{Links: &Links{}}, T0: clock.Realtime(), Version: 7}
	for _, at := range losing {
		n.Later = append(n.Later, Change{AtNanoseconds: int64(at), State: State{Links: &Links{Default: link.Parameters{Loss: 1}}}})
	}
	return n
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAPortsCountersEndWithItsFrames(t *testing.T) {
	b := newBed(t, 2)
	c := b.plane
	must(t, c.SetNetwork(linkNetwork()))
	folder := t.TempDir()
	one := b.attach(t, c, 0, filepath.Join(folder, "1"))
	b.attach(t, c, 1, "")
	if !b.carries(t, 0, 1, 1) {
		t.Fatal("a frame was lost")
	}
	must(t, c.SetNetwork(linkNetwork()))
	s, err := c.Snapshot("run", false)
	must(t, err)
	if len(s.Ports) != 2 || s.Ports[0].ID != one || s.Ports[0].FramesSent != 1 || s.Ports[1].FramesReceived != 1 {
		t.Errorf("counters %+v; want those of one frame", s.Ports)
	}
	page, fresh, err := OpenCounters(filepath.Join(folder, "1"))
	must(t, err)
	if fresh || page.Ledger.FramesSent != 1 {
		t.Errorf("%d frames sent by the counter file, new %v; want 1 in the file that the agent gave", page.Ledger.FramesSent, fresh)
	}
	last, err := c.Detach(one)
	must(t, err)
	if last.FramesSent != 1 || b.send(t, 1, 0, 2) {
		t.Errorf("last counters %+v, and a frame reached a node after its end", last)
	}
	if _, err := c.Counters(one); err == nil {
		t.Error("a port that is detached and has no frames under way is still known")
	}
	_, err = c.EndNetwork("run")
	must(t, err)
	if _, err := c.Snapshot("run", false); err == nil {
		t.Error("a network that was ended has counters")
	}
}

func TestTheEndOfANetworkSaysWhatWasUnderWay(t *testing.T) {
	b := newBed(t, 2)
	n := linkNetwork()
	n.Now.Links.Default.Delay = time.Hour
	ids := b.attachBoth(t, b.plane, n)
	if b.send(t, 0, 1, 1) {
		t.Error("a frame arrived an hour early")
	}
	for _, id := range ids {
		_, err := b.plane.Detach(id)
		must(t, err)
	}
	last, err := b.plane.EndNetwork("run")
	must(t, err)
	if c, known := last[ids[0]]; !known || c.FramesSent != 1 || c.InFlight != 1 || len(last) != 1 {
		t.Errorf("last counters %+v; want those of the sender, with a frame under way", last)
	}
}

func TestAChangeIsReportedOnce(t *testing.T) {
	b := newBed(t, 2)
	c := b.plane
	b.attachBoth(t, c, linkNetwork(300*time.Millisecond))
	events := c.Events()
	if len(events) != 1 || events[0].Network != "run" || events[0].Version != 7 || events[0].Change != 0 || events[0].Late < 0 {
		t.Errorf("events %+v; want the change", events)
	}
	if b.send(t, 0, 1, 1) {
		t.Error("a frame arrived over a link that loses all")
	}
	again := linkNetwork(0)
	again.Later[0].Neighbour = true
	must(t, c.SetNetwork(again))
	if more := c.Events(); len(more) != 1 || !more[0].Neighbour || events[0].Neighbour {
		t.Errorf("events %+v; want only the second, as one of a neighbour", more)
	}
}

func (b *bed) attachBoth(t *testing.T, p Plane, n *Network) (ids [2]PortID) {
	t.Helper()
	must(t, p.SetNetwork(n))
	for i := range ids {
		ids[i] = b.attach(t, p, i, "")
	}
	return ids
}

func TestAGoneInterfaceIsReported(t *testing.T) {
	b := newBed(t, 2)
	c := b.plane
	ids := b.attachBoth(t, c, linkNetwork())
	must(t, netns.Do(b.nodes[1].Namespace, func() error { return podnet.Remove(b.nodes[1].Name) }))
	if events := c.Events(); len(events) != 1 || events[0].Gone != ids[1] {
		t.Errorf("events %+v; want that port %d is gone", events, ids[1])
	}
}

func TestAPausedNetworkLeavesFramesInTheInterfaces(t *testing.T) {
	b := newBed(t, 2)
	c := b.plane
	n := linkNetwork()
	n.Paused = true
	b.attachBoth(t, c, n)
	if b.send(t, 0, 1, 1) {
		t.Error("a frame passed a paused network")
	}
	must(t, c.Resume())
	if r, ok, err := b.nodes[1].Receive(5 * time.Second); err != nil || !ok || r.Sequence != 1 {
		t.Errorf("got %+v, %v, %v; want the frame that waited", r, ok, err)
	}
}

// radios of two nodes at 300 MHz that reach 110 dB.
func twoRadios() *Radios {
	r := Radio{phy.Radio{FrequencyHertz: 300e6, BandwidthHertz: 1e6, NoiseFigureDB: 4, SubID: 1, Transmit: true}, 1e6}
	return &Radios{ByNEM: map[int]Radio{1: r, 2: r}}
}

func apart(dB float32) Decibels {
	unknown := float32(math.NaN())
	return Decibels{unknown, dB, dB, unknown}
}

func TestAnRFPipeFollowsTheEnvironmentOfItsRequests(t *testing.T) {
	b := newBed(t, 2)
	c := b.plane
	b.attachBoth(t, c, &Network{UID: "run", MTU: 1500, RFPipe: &RFPipeModel{}, Now: State{Radios: twoRadios()}})
	if b.send(t, 0, 1, 1) {
		t.Error("a frame arrived before the pathloss was known")
	}
	now := clock.Monotonic()
	must(t, c.SetEnvironment(&Environment{Network: "run", Begins: true, NEMs: []int{1, 2}, T0: now, Steps: []Step{{Version: 1, Pathloss: apart(80)}}}))
	if !b.carries(t, 0, 1, 2) {
		t.Error("a frame was lost at 80 dB")
	}
	jammers := []Jamming{{Milliwatts: []float64{0, 0}}}
	must(t, c.SetEnvironment(&Environment{Network: "run", T0: now, Steps: []Step{{AtNanoseconds: 1, Version: 1, Jammers: jammers},
		{AtNanoseconds: int64(time.Hour), Version: 2, Pathloss: apart(200)}}}))
	if !b.carries(t, 0, 1, 3) {
		t.Error("a frame was lost at a pathloss that stays as it was")
	}
	must(t, c.SetEnvironment(&Environment{Network: "run", T0: now - int64(time.Hour)}))
	if b.send(t, 0, 1, 4) {
		t.Error("a frame arrived at 200 dB")
	}
	s, err := c.Snapshot("run", true)
	must(t, err)
	links, err := c.Links("run", []PortID{s.Ports[1].ID, s.Ports[0].ID})
	must(t, err)
	if s.LinksHeard != 1 || len(links) != 2 || len(links[1]) != 0 || len(links[0]) != 1 || links[0][0].FromNEM != 1 || links[0][0].Received != 2 {
		t.Errorf("%d links heard, links %+v; want node 2's of node 1, with 2 frames received", s.LinksHeard, links)
	}
	if err := c.SetEnvironment(&Environment{Network: "run", Steps: []Step{{Pathloss: Decibels{1}}}}); err == nil {
		t.Error("a step of one pair is taken for two members")
	}
}

func TestATDMANetworkWorksByItsSchedule(t *testing.T) {
	b := newBed(t, 2)
	c := b.plane
	schedule, err := tdma.Generate(tdma.Structure{Frames: 1, Slots: 2, SlotDuration: 5 * time.Millisecond, BandwidthHertz: 1e6}, []int{1, 2}, 1e6, 300e6, nil)
	must(t, err)
	b.attachBoth(t, c, &Network{UID: "run", MTU: 1500, TDMA: &TDMAModel{Queue: tdma.DefaultQueue()}, Now: State{Radios: twoRadios(), Schedule: schedule}})
	must(t, c.SetEnvironment(&Environment{Network: "run", Begins: true, NEMs: []int{1, 2}, Steps: []Step{{Version: 1, Pathloss: apart(80)}}}))
	if !b.carries(t, 0, 1, 1) {
		t.Error("a frame was lost")
	}
	s, err := c.Snapshot("run", true)
	must(t, err)
	if p := &s.Ports[0]; p.Slots.Used != 1 || len(p.Classes) != tdma.Classes {
		t.Errorf("slots %+v, classes %v; want one slot used", p.Slots, p.Classes)
	}
	must(t, c.AwaitLoops())
	if all, err := c.LateIntervals(); err != nil || len(all) != 1 {
		t.Errorf("late intervals %v, %v; want those of one loop", all, err)
	}
}

func TestANetworkDoesNotChangeItsModel(t *testing.T) {
	b := newBed(t, 2)
	c := b.plane
	b.attachBoth(t, c, linkNetwork())
	if err := c.SetNetwork(&Network{UID: "run", MTU: 1500, RFPipe: &RFPipeModel{}, Now: State{Radios: twoRadios()}}); err == nil {
		t.Error("links became an RF pipe")
	}
	if b.send(t, 0, 1, 1) {
		t.Error("a frame arrived although the radios are silent")
	}
}
