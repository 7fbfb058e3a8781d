package dataplane

import (
	"bytes"
	"encoding"
	"encoding/gob"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/framering"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/peers"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/testtool"
)

func TestFramesGoOnWhileOneWorkerEndsAndAnotherTakesOver(t *testing.T) {
	b := newBed(t, 3)
	first := b.plane
	must(t, first.SetNetwork(linkNetwork()))
	folder := t.TempDir()
	one, two := b.attach(t, first, 0, filepath.Join(folder, "1")), b.attach(t, first, 1, "")
	b.attach(t, first, 2, "")
	must(t, first.SetNetwork(&Network{UID: "other", MTU: 1500, Link: &LinkModel{}, Now: State{Links: &Links{}}}))
	must(t, first.Resume())
	must(t, first.Restored())
	if !b.carries(t, 0, 1, 1) {
		t.Fatal("a frame was lost")
	}
	must(t, first.Close())
	if !b.carries(t, 0, 1, 2) {
		t.Fatal("a frame was lost without a worker")
	}
	second := b.worker(t)
	left, err := second.Left()
	must(t, err)
	if slices.Sort(left.Networks); left.New || !slices.Equal(left.Networks, []string{"other", "run"}) {
		t.Errorf("the next worker finds %+v; want both networks", left)
	}
	must(t, second.SetNetwork(linkNetwork()))
	if again := []PortID{b.attach(t, second, 0, filepath.Join(folder, "1")), b.attach(t, second, 1, "")}; !slices.Equal(again, []PortID{one, two}) {
		t.Errorf("ports %v; want %d and %d as before", again, one, two)
	}
	if _, err := second.Attach(&Port{Network: "run", Name: nameOf(0), NEM: 1, MAC: macOf(b.nodes[0].MAC), Descriptor: b.nodes[0].TAP, CounterFile: filepath.Join(folder, "1")}); err == nil {
		t.Error("the same worker attached a node twice")
	}
	must(t, second.DropLeft())
	if !b.carries(t, 0, 1, 3) || b.send(t, 0, 2, 4) {
		t.Error("want frames for the ports that were taken up, and none for the other")
	}
	s, err := second.Snapshot("run", false)
	must(t, err)
	if len(s.Ports) != 2 || s.Ports[0].FramesSent != 4 || s.Ports[1].FramesReceived != 3 {
		t.Errorf("counters %+v; want two ports with those of both workers' frames", s.Ports)
	}
	if _, err := second.Snapshot("other", false); err == nil {
		t.Error("the network that nobody took up is still there")
	}
}

func TestANewPlaneIsNewUntilItsGapIsRecorded(t *testing.T) {
	b := newBed(t, 0)
	for _, worker := range []*Client{b.plane, nil} {
		if worker == nil {
			worker = b.worker(t)
		}
		left, err := worker.Left()
		must(t, err)
		if !left.New || left.Seen != 0 {
			t.Errorf("%+v; want a new one that was not seen before", left)
		}
		must(t, worker.Resume())
		if left, err = worker.Left(); err != nil || left.Resumed == 0 {
			t.Errorf("%+v, %v; want when frames flowed again", left, err)
		}
		must(t, worker.Close())
	}
	last := b.worker(t)
	must(t, last.Restored())
	if left, err := last.Left(); err != nil || left.New {
		t.Errorf("%+v, %v; want no gap any more", left, err)
	}
	eventually(t, "the data plane is seen", func() bool { _, err := os.Stat(filepath.Join(b.folder, "plane-seen")); return err == nil })
	must(t, b.server.Close())
	next := &bed{server: NewServer(b.server.log), folder: b.folder}
	if left, err := next.worker(t).Left(); err != nil || !left.New || left.Seen == 0 {
		t.Errorf("%+v, %v; want when the one before was last seen", left, err)
	}
	_ = next.server.Close()
}

func TestDataPlanesReachEachOtherAtTheAddressesAndKeysThatTheirWorkersGive(t *testing.T) {
	workers, addresses := map[string]*Client{}, map[string]peers.Address{}
	for _, host := range []string{"host-a", "host-b"} {
		key, err := peers.NewPrivateKey()
		must(t, err)
		address := freePort(t)
		b := &bed{server: NewServer(slog.New(slog.DiscardHandler)), folder: t.TempDir(), host: host, listen: address.String(), key: key.Bytes()}
		t.Cleanup(func() { _ = b.server.Close() })
		workers[host], addresses[host] = b.worker(t), peers.Address{UDP: address, Key: key.Public()}
	}
	for host, other := range map[string]string{"host-a": "host-b", "host-b": "host-a"} {
		must(t, workers[host].SetHosts(map[string]peers.Address{other: addresses[other]}))
	}
	for host, worker := range workers {
		eventually(t, host+" reaches the other", func() bool {
			states, err := worker.Hosts(false)
			must(t, err)
			return len(states.Hosts) == 1 && states.Hosts[0].Reachable && states.Hosts[0].Clock.Known
		})
	}
}

// freePort returns an address of the loopback interface with a UDP port that nobody uses.
func freePort(t *testing.T) netip.AddrPort {
	t.Helper()
	conn, err := peers.Listen("127.0.0.1:0")
	must(t, err)
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// TestPackageGobSendsAllFieldsOfRequests: a struct has the methods of its embedded fields. If one of them encodes itself, gob
// takes it for the whole struct. A pointer to 0 arrives as nil, and fields that are not exported do not arrive.
func TestPackageGobSendsAllFieldsOfRequests(t *testing.T) {
	encodesItself := func(r reflect.Type) bool {
		p := reflect.PointerTo(r)
		return p.Implements(reflect.TypeFor[encoding.BinaryMarshaler]()) || p.Implements(reflect.TypeFor[gob.GobEncoder]())
	}
	seen := map[reflect.Type]bool{}
	var look func(reflect.Type)
	look = func(r reflect.Type) {
		if seen[r] {
			return
		}
		seen[r] = true
		switch r.Kind() {
		case reflect.Map:
			look(r.Key())
			look(r.Elem())
		case reflect.Slice, reflect.Array:
			look(r.Elem())
		case reflect.Pointer:
			if r.Elem().Kind() != reflect.Struct {
				t.Errorf("%v is nil for a pointer to 0: use a struct", r)
			}
			look(r.Elem())
		case reflect.Struct:
			if encodesItself(r) {
				for i := range r.NumField() {
					if field := r.Field(i); field.Anonymous && encodesItself(field.Type) {
						t.Errorf("%v encodes itself as its embedded %s: name the field", r, field.Name)
					}
				}
				return
			}
			for i := range r.NumField() {
				if !r.Field(i).IsExported() {
					t.Errorf("%v.%s is not exported, so that gob leaves it out", r, r.Field(i).Name)
				}
				look(r.Field(i).Type)
			}
		}
	}
	plane := reflect.TypeFor[Plane]()
	for i := range plane.NumMethod() {
		method := plane.Method(i).Type
		for k := range method.NumIn() {
			look(method.In(k))
		}
		for k := range method.NumOut() {
			look(method.Out(k))
		}
	}
	if len(seen) < 50 {
		t.Errorf("only %d types: not all were looked at", len(seen))
	}
}

func TestOtherHostsAreTalkedToUntilTheNextWorkerHasReadAll(t *testing.T) {
	key, err := peers.NewPrivateKey()
	must(t, err)
	b := &bed{server: NewServer(slog.New(slog.DiscardHandler)), folder: t.TempDir(), listen: "127.0.0.1:0", key: key.Bytes()}
	t.Cleanup(func() { _ = b.server.Close() })
	named := func(c *Client) (names []string) {
		states, err := c.Hosts(false)
		must(t, err)
		for _, s := range states.Hosts {
			names = append(names, s.Host)
		}
		slices.Sort(names)
		return names
	}
	address := peers.Address{UDP: netip.MustParseAddrPort("127.0.0.1:9"), Key: key.Public()}
	first := b.worker(t)
	must(t, first.SetHosts(map[string]peers.Address{"host-b": address, "host-c": address}))
	must(t, first.SetNetwork(linkNetwork()))
	far := &Port{Network: "run", Name: nameOf(0), NEM: 1, MAC: 1, Host: "host-b"}
	id, err := first.Attach(far)
	must(t, err)
	must(t, first.Close())
	second := b.worker(t)
	must(t, second.SetHosts(map[string]peers.Address{"host-c": address, "host-d": address}))
	if got := named(second); !slices.Equal(got, []string{"host-b", "host-c", "host-d"}) {
		t.Errorf("hosts %v; want those of both workers", got)
	}
	must(t, second.SetNetwork(linkNetwork()))
	if again, err := second.Attach(far); err != nil || again != id {
		t.Errorf("port %d, %v; want %d as before", again, err, id)
	}
	must(t, second.DropLeft())
	if got := named(second); !slices.Equal(got, []string{"host-c", "host-d"}) {
		t.Errorf("hosts %v; want only the second worker's", got)
	}
}

func TestTheDataPlaneClosesItsDescriptorOfADetachedPort(t *testing.T) {
	b := newBed(t, 1)
	c := b.plane
	must(t, c.SetNetwork(linkNetwork()))
	before := testtool.Descriptors(t)
	id := b.attach(t, c, 0, "")
	if _, err := c.Attach(&Port{Network: "nobody", Descriptor: b.nodes[0].TAP}); err == nil {
		t.Error("a port was attached to a network that is not there")
	}
	if now := testtool.Descriptors(t); now != before+1 {
		t.Errorf("%d descriptors more with one port; want one", now-before)
	}
	_, err := c.Detach(id)
	must(t, err)
	if now := testtool.Descriptors(t); now != before {
		t.Errorf("%d descriptors more after its end; want none", now-before)
	}
}

func TestAnotherWorkerHearsOfAChangeThatTheFirstWasWaitingFor(t *testing.T) {
	b := newBed(t, 2)
	b.attachBoth(t, b.plane, linkNetwork(2*time.Second))
	ended := make(chan []Event)
	go func() { ended <- b.plane.Events() }()
	must(t, b.plane.Close())
	if events := await(t, "the first worker's request ends", ended); events != nil {
		t.Errorf("events %+v; want none", events)
	}
	second := b.worker(t)
	events := second.Events()
	if len(events) != 1 || events[0].Network != "run" || events[0].Version != 7 || events[0].Change != 0 || events[0].Late < 0 {
		t.Errorf("events %+v; want the change", events)
	}
	must(t, second.Close()) // before it asks for more
	third := b.worker(t)
	if again := third.Events(); !slices.Equal(again, events) {
		t.Errorf("events %+v; want %+v, of which nobody knows whether they have arrived", again, events)
	}
	must(t, third.SetNetwork(linkNetwork(0)))
	if more := third.Events(); len(more) != 1 || more[0] == events[0] {
		t.Errorf("events %+v; want only the second", more)
	}
}

func TestAnotherWorkerHearsAgainThatTheInterfaceOfAPortHasGone(t *testing.T) {
	b := newBed(t, 2)
	ids := b.attachBoth(t, b.plane, linkNetwork())
	must(t, netns.Do(b.nodes[1].Namespace, func() error { return podnet.Remove(b.nodes[1].Name) }))
	want := []Event{{Gone: ids[1]}}
	if events := b.plane.Events(); !slices.Equal(events, want) {
		t.Fatalf("events %+v; want that port %d is gone", events, ids[1])
	}
	ended := make(chan []Event)
	go func() { ended <- b.plane.Events() }() // which says that they have arrived
	time.Sleep(50 * time.Millisecond)
	must(t, b.plane.Close())
	await(t, "the first worker's request ends", ended)
	second := b.worker(t)
	must(t, second.SetNetwork(linkNetwork()))
	b.attach(t, second, 1, "")
	if events := second.Events(); !slices.Equal(events, want) {
		t.Errorf("events %+v; want again that port %d is gone", events, ids[1])
	}
}

func TestAnotherWorkerHearsOfLatenessThatTheFirstDidNotLog(t *testing.T) {
	const stop = 100 * time.Millisecond
	b := newBed(t, 2)
	first := b.plane
	b.attachBoth(t, first, linkNetwork())
	n, err := b.server.plane.Load().find("run")
	must(t, err)
	began, goOn := make(chan bool), make(chan bool)
	n.Schedule(clock.Monotonic(), func(int64, radio.Model) (bool, int64) {
		began <- true
		<-goOn
		return false, 0
	})
	<-began
	must(t, b.nodes[0].Send(b.nodes[0].Frame(b.nodes[1].MAC, 1, 100)))
	during := clock.Monotonic() + int64(stop/2)
	time.Sleep(stop)
	close(goOn)
	must(t, first.AwaitLoops())
	hears := func(c *Client) bool {
		all, err := c.LateIntervals()
		must(t, err)
		return slices.ContainsFunc(all[0], func(i radio.Interval) bool { return i.From <= during && during <= i.To && i.Worst >= int64(stop/2) })
	}
	eventually(t, "the first worker hears of it", func() bool { return hears(first) })
	must(t, first.Close()) // before it says that it has logged it
	second := b.worker(t)
	if !hears(second) {
		t.Error("the second worker does not hear of it, and nobody has logged it")
	}
	must(t, second.ForgetLateIntervals())
	if hears(second) {
		t.Error("it is told again although it is logged")
	}
}

func TestCapturedFramesGoIntoTheRingOfTheWorker(t *testing.T) {
	b := newBed(t, 2)
	ids := b.attachBoth(t, b.plane, linkNetwork())
	ring, err := framering.New(filepath.Join(t.TempDir(), "frames"), 1<<16)
	must(t, err)
	must(t, b.plane.SetTap(ids[0], &framering.Tap{Path: ring.Path, ID: 5, Keep: 20}))
	b.carries(t, 0, 1, 1)
	b.carries(t, 1, 0, 2)
	must(t, b.plane.SetTap(ids[0], nil))
	b.send(t, 0, 1, 3)
	var out []bool
	must(t, ring.Drain(ring.Head.Load(), math.MaxUint64, func(f framering.Frame) {
		if f.Tap != 5 || len(f.Data) != 20 || f.WireLength < 100 {
			t.Errorf("frame %+v; want 20 bytes of one of tap 5", f)
		}
		out = append(out, f.Out)
	}))
	if !slices.Equal(out, []bool{true, false}) {
		t.Errorf("directions %v; want a frame that the node sent, and one that it received", out)
	}
	if err := b.plane.SetTap(ids[0], &framering.Tap{Path: "/nowhere"}); err == nil {
		t.Error("a tap was set whose ring is not there")
	}
}

func TestPathlossKeepsEveryBit(t *testing.T) {
	want := Decibels{80.25, float32(math.Inf(1)), -3, math.MaxFloat32}
	var b bytes.Buffer
	var got Decibels
	must(t, gob.NewEncoder(&b).Encode(want))
	if err := gob.NewDecoder(&b).Decode(&got); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}
