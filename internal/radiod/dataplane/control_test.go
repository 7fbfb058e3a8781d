package dataplane

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"math"
	"net"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/internal/radiod/holder"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
)

// bed is a data plane that agents use by a socket, and nodes with real TAPs.
type bed struct {
	server *Server
	nodes  []*radiotest.Node
}

func newBed(t *testing.T, nodes int) *bed {
	t.Helper()
	if err := radiotest.Missing(); err != nil {
		t.Skip(err)
	}
	loops, err := driver.New(driver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plane := New(loops)
	t.Cleanup(func() { _ = plane.Close() })
	b := &bed{server: NewServer(plane)}
	for i := range nodes {
		n, err := radiotest.NewNode(i+1, 1500)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = n.Close() })
		b.nodes = append(b.nodes, n)
	}
	return b
}

// agent is a new agent's end of a new connection.
func (b *bed) agent(t *testing.T) *Client {
	t.Helper()
	ours, file, err := holder.SocketPair(unix.SOCK_STREAM)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := holder.Conn(file)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- b.server.Serve(ours) }()
	c := Dial(theirs)
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

func (b *bed) send(t *testing.T, from, to int, sequence uint64) (arrived bool) {
	t.Helper()
	if err := b.nodes[from].Send(b.nodes[from].Frame(b.nodes[to].MAC, sequence, 100)); err != nil {
		t.Fatal(err)
	}
	r, ok, err := b.nodes[to].Receive(500 * time.Millisecond)
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

func TestFramesGoOnWhileOneAgentEndsAndAnotherTakesOver(t *testing.T) {
	b := newBed(t, 2)
	first := b.agent(t)
	must(t, first.SetNetwork(linkNetwork()))
	folder := t.TempDir()
	one, two := b.attach(t, first, 0, filepath.Join(folder, "1")), b.attach(t, first, 1, "")
	if !b.send(t, 0, 1, 1) {
		t.Fatal("a frame was lost")
	}
	must(t, first.Close())
	if !b.send(t, 0, 1, 2) {
		t.Fatal("a frame was lost without an agent")
	}
	second := b.agent(t)
	known, err := second.Ports()
	must(t, err)
	want := []AttachedPort{{one, "run", nameOf(0), 1, true}, {two, "run", nameOf(1), 2, true}}
	if !reflect.DeepEqual(known, want) {
		t.Errorf("the next agent finds %+v; want %+v", known, want)
	}
	must(t, second.SetNetwork(linkNetwork()))
	s, err := second.Snapshot("run", false)
	must(t, err)
	if len(s.Ports) != 2 || s.Ports[0].ID != one || s.Ports[0].FramesSent != 2 || s.Ports[1].FramesReceived != 2 {
		t.Errorf("counters %+v; want those of both agents' frames", s.Ports)
	}
	page, fresh, err := OpenCounters(filepath.Join(folder, "1"))
	must(t, err)
	if fresh || page.Ledger.FramesSent != 2 {
		t.Errorf("%d frames sent by the counter file, new %v; want 2 in the file that the agent gave", page.Ledger.FramesSent, fresh)
	}
	last, err := second.Detach(one)
	must(t, err)
	if last.FramesSent != 2 || b.send(t, 1, 0, 3) {
		t.Errorf("last counters %+v, and a frame reached a node after its end", last)
	}
	if _, err := second.Counters(one); err == nil {
		t.Error("a port that is detached and has no frames under way is still known")
	}
	must(t, second.EndNetwork("run"))
	if _, err := second.Snapshot("run", false); err == nil {
		t.Error("a network that was ended has counters")
	}
}

func TestTheDataPlaneClosesItsDescriptorOfADetachedPort(t *testing.T) {
	b := newBed(t, 1)
	c := b.agent(t)
	must(t, c.SetNetwork(linkNetwork()))
	before := descriptors(t)
	id := b.attach(t, c, 0, "")
	if _, err := c.Attach(&Port{Network: "nobody", Descriptor: b.nodes[0].TAP}); err == nil {
		t.Error("a port was attached to a network that is not there")
	}
	if now := descriptors(t); now != before+1 {
		t.Errorf("%d descriptors more with one port; want one", now-before)
	}
	_, err := c.Detach(id)
	must(t, err)
	if now := descriptors(t); now != before {
		t.Errorf("%d descriptors more after its end; want none", now-before)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := filepath.Glob("/proc/self/fd/*")
	must(t, err)
	return len(all)
}

func TestAnAgentHearsOfChangesOnceEvenIfAnotherOneWasWaitingForThem(t *testing.T) {
	b := newBed(t, 2)
	first := b.agent(t)
	b.attachBoth(t, first, linkNetwork(300*time.Millisecond))
	go first.Events()
	must(t, first.Close())
	second := b.agent(t)
	events := second.Events()
	if len(events) != 1 || events[0].Network != "run" || events[0].Version != 7 || events[0].Change != 0 || events[0].Late < 0 {
		t.Errorf("events %+v; want the change", events)
	}
	if b.send(t, 0, 1, 1) {
		t.Error("a frame arrived over a link that loses all")
	}
	must(t, second.SetNetwork(linkNetwork(0)))
	if events := second.Events(); len(events) != 1 || events[0].Number != 2 {
		t.Errorf("events %+v; want only the second", events)
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
	c := b.agent(t)
	ids := b.attachBoth(t, c, linkNetwork())
	must(t, netns.Do(b.nodes[1].Namespace, func() error { return podnet.Remove(b.nodes[1].Name) }))
	if events := c.Events(); len(events) != 1 || events[0].Gone != ids[1] {
		t.Errorf("events %+v; want that port %d is gone", events, ids[1])
	}
}

func TestAPausedNetworkLeavesFramesInTheInterfaces(t *testing.T) {
	b := newBed(t, 2)
	c := b.agent(t)
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

func TestAnRFPipeFollowsTheEnvironmentThatItsAgentSends(t *testing.T) {
	b := newBed(t, 2)
	c := b.agent(t)
	b.attachBoth(t, c, &Network{UID: "run", MTU: 1500, RFPipe: &RFPipeModel{}, Now: State{Radios: twoRadios()}})
	if b.send(t, 0, 1, 1) {
		t.Error("a frame arrived before the pathloss was known")
	}
	now := clock.Monotonic()
	must(t, c.SetEnvironment(&Environment{Network: "run", Begins: true, NEMs: []int{1, 2}, T0: now, Steps: []Step{{Version: 1, Pathloss: apart(80)}}}))
	if !b.send(t, 0, 1, 2) {
		t.Error("a frame was lost at 80 dB")
	}
	jammers := []Jamming{{Milliwatts: []float64{0, 0}}}
	must(t, c.SetEnvironment(&Environment{Network: "run", T0: now, Steps: []Step{{AtNanoseconds: 1, Version: 1, Jammers: jammers},
		{AtNanoseconds: int64(time.Hour), Version: 2, Pathloss: apart(200)}}}))
	if !b.send(t, 0, 1, 3) {
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

func TestATDMANetworkWorksByItsScheduleFromAnotherProcess(t *testing.T) {
	b := newBed(t, 2)
	c := b.agent(t)
	schedule, err := tdma.Generate(tdma.Structure{Frames: 1, Slots: 2, SlotDuration: 5 * time.Millisecond, BandwidthHertz: 1e6}, []int{1, 2}, 1e6, 300e6, nil)
	must(t, err)
	b.attachBoth(t, c, &Network{UID: "run", MTU: 1500, TDMA: &TDMAModel{Queue: tdma.DefaultQueue()}, Now: State{Radios: twoRadios(), Schedule: schedule}})
	must(t, c.SetEnvironment(&Environment{Network: "run", Begins: true, NEMs: []int{1, 2}, Steps: []Step{{Version: 1, Pathloss: apart(80)}}}))
	if !b.send(t, 0, 1, 1) {
		t.Error("a frame was lost")
	}
	s, err := c.Snapshot("run", true)
	must(t, err)
	if p := &s.Ports[0]; p.Slots.Used != 1 || len(p.Classes) != tdma.Classes {
		t.Errorf("slots %+v, classes %v; want one slot used", p.Slots, p.Classes)
	}
	must(t, c.FollowClock("run", clock.EpochOffset()+1))
	must(t, c.AwaitLoops())
	if all, err := c.LateIntervals(); err != nil || len(all) != 1 {
		t.Errorf("late intervals %v, %v; want those of one loop", all, err)
	}
}

func TestANetworkDoesNotChangeItsModel(t *testing.T) {
	b := newBed(t, 2)
	c := b.agent(t)
	b.attachBoth(t, c, linkNetwork())
	if err := c.SetNetwork(&Network{UID: "run", MTU: 1500, RFPipe: &RFPipeModel{}, Now: State{Radios: twoRadios()}}); err == nil {
		t.Error("links became an RF pipe")
	}
	if b.send(t, 0, 1, 1) {
		t.Error("a frame arrived although the radios are silent")
	}
}

func TestPathlossKeepsEveryBit(t *testing.T) {
	want := Decibels{80.25, float32(math.Inf(1)), -3, math.MaxFloat32}
	var b bytes.Buffer
	var got Decibels
	if err := gob.NewEncoder(&b).Encode(want); err != nil {
		t.Fatal(err)
	}
	if err := gob.NewDecoder(&b).Decode(&got); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

// BenchmarkStep is what a step costs agent and data plane together, in which all nodes have moved.
func BenchmarkStep(b *testing.B) {
	for name, nodes := range map[string]int{"24": 24, "243": 243} {
		b.Run(name, func(b *testing.B) {
			e := &Environment{Network: "run", Steps: []Step{{Version: 1, Pathloss: make(Decibels, nodes*nodes)}}}
			var wire bytes.Buffer
			encoder, decoder := gob.NewEncoder(&wire), gob.NewDecoder(&wire)
			b.ReportAllocs()
			for b.Loop() {
				if err := encoder.Encode(e); err != nil {
					b.Fatal(err)
				}
				if err := decoder.Decode(&Environment{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
