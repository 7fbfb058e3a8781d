package dataplane

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/emane/ota"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/internal/radiod/peers"
	"vignette.dev/vignette/internal/radiod/radiodtest"
	"vignette.dev/vignette/internal/testtool"
)

// farHost is one of two hosts with a network of one node each.
type farHost struct {
	*Local
	node int // the other end of the node's interface
}

// newPair makes two hosts whose clocks are skewed, and waits until they know each other's.
func newPair(t *testing.T, model func(*Network), skews [2]HostOptions) (a, b farHost, cut *atomic.Bool) {
	t.Helper()
	cut = &atomic.Bool{}
	both, names, addresses := []*farHost{&a, &b}, []string{"host-a", "host-b"}, map[string]peers.Address{}
	for i, h := range both {
		loops, err := driver.New(driver.Options{})
		must(t, err)
		h.Local = New(loops)
		t.Cleanup(func() { _ = h.Close() })
		key, err := peers.NewPrivateKey()
		must(t, err)
		conn, err := peers.Listen("127.0.0.1:0")
		must(t, err)
		o := skews[i]
		o.Host, o.Key, o.Conn, o.Log, o.MTU = names[i], key, &radiodtest.Cable{UDPConn: conn, Cut: cut}, slog.New(slog.DiscardHandler), func(netip.AddrPort) int { return 1400 }
		h.OpenHosts(o)
		addresses[names[i]] = peers.Address{UDP: conn.LocalAddr().(*net.UDPAddr).AddrPort(), Key: key.Public()}
		n := &Network{UID: "net", MTU: 1500}
		model(n)
		must(t, h.SetNetwork(n))
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
		must(t, err)
		t.Cleanup(func() { _, _ = unix.Close(fds[0]), unix.Close(fds[1]) })
		h.node = fds[0]
		_, err = h.Attach(&Port{Network: "net", Name: nameOf(i), NEM: i + 1, MAC: radio.MAC(i + 1), Descriptor: fds[1]}) //nolint:gosec // positive
		must(t, err)
	}
	for i, h := range both {
		other := names[1-i]
		far := &Port{Network: "net", Name: nameOf(1 - i), NEM: 2 - i, MAC: radio.MAC(2 - i), Host: other} //nolint:gosec // positive
		if _, err := h.Attach(far); err == nil || !strings.Contains(err.Error(), other) {
			t.Fatalf("a port at a host that SetHosts has not named: error %v; want one with its name", err)
		}
		must(t, h.SetHosts(map[string]peers.Address{other: addresses[other]}))
		_, err := h.Attach(far)
		must(t, err)
	}
	for _, h := range both {
		eventually(t, "the hosts know each other's clocks", func() bool { return h.sees(t).Clock.Known })
	}
	return a, b, cut
}

// sees returns the state of the only other host.
func (f *farHost) sees(t *testing.T) HostState {
	t.Helper()
	s, err := f.Hosts(false)
	must(t, err)
	if len(s.Hosts) != 1 {
		t.Fatalf("hosts %+v; want the other one", s.Hosts)
	}
	return s.Hosts[0]
}

var eventually = testtool.Eventually

// await returns what comes.
func await[T any](t *testing.T, what string, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(30 * time.Second):
		t.Fatalf("after 30 s still not: %s", what)
	}
	return v
}

// counts waits until so much is counted of the other host.
func (f *farHost) counts(t *testing.T, received, unusable uint64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d received, %d of no use", received, unusable), func() bool {
		got := f.sees(t)
		return got.Received == received && got.Unusable == unusable
	})
}

func onLinks(n *Network) { n.Link, n.Now = &LinkModel{}, State{Links: &Links{}} }

func TestATransmissionReachesThePortsOfTheOtherHost(t *testing.T) {
	a, b, _ := newPair(t, onLinks, [2]HostOptions{})
	frame := make([]byte, 64)
	frame[5] = 2
	if _, err := unix.Write(a.node, frame); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the frame arrives", func() bool { n, _ := unix.Read(b.node, frame); return n == 64 })
	if _, err := a.Attach(&Port{Network: "net", Name: nameOf(1), NEM: 2, MAC: radio.MAC(2), Host: "host-b"}); err == nil {
		t.Error("a node is attached twice")
	}
	out := a.networks["net"].remote[2] // still
	soon := clock.Monotonic() + int64(time.Hour)
	out.Ship(&radio.Shipment{Source: 1, Due: soon, Bytes: 1, Data: []byte{1}})
	b.counts(t, 2, 0)
	late := b.sees(t).Late
	out.Ship(&radio.Shipment{Source: 1, Due: 0, Bytes: 1, Data: []byte{1}})
	out.Ship(&radio.Shipment{Source: 2, Due: soon, Bytes: 1, Data: []byte{1}}) // 2 is no node at host-a
	b.counts(t, 4, 1)
	out.Ship(&radio.Shipment{Source: 1, Slot: 1, SlotDuration: 1, Due: soon, Bytes: 1, Data: []byte{1}})
	b.counts(t, 5, 2)
	if got := b.sees(t).Late; got != late+1 {
		t.Errorf("%d late; want %d", got, late+1)
	}
	if s, err := b.Hosts(true); err != nil || s.Hosts[0].WorstLate <= 0 || b.sees(t).WorstLate != 0 {
		t.Errorf("hosts %+v, %v; want the worst lateness, and none after a reset", s, err)
	}
}

// processOf opens the channel of EMANE's processes of a host, once for the host and once for a process.
func processOf(t *testing.T, group string) (host, process *ota.Channel) {
	t.Helper()
	for _, channel := range []**ota.Channel{&host, &process} {
		var err error
		*channel, err = ota.Open(t.Context(), netip.MustParseAddrPort(group), "lo")
		must(t, err)
		t.Cleanup(func() { _ = (*channel).Close() })
	}
	return host, process
}

// give gives a host the channel of a network's processes.
func (f *farHost) give(t *testing.T, uid string, channel *ota.Channel) {
	t.Helper()
	sockets, err := channel.Sockets()
	must(t, err)
	must(t, f.SetChannel(uid, &sockets))
}

func TestWhatEMANESendsReachesTheProcessesOfOtherHostsOfItsNetworkOnly(t *testing.T) {
	a, b, _ := newPair(t, onLinks, [2]HostOptions{})
	channelA, processA := processOf(t, "224.1.2.8:45702")
	channelB, processB := processOf(t, "224.1.2.9:45703")
	must(t, a.SetRelay("emane", Relay{Hosts: []string{"host-b"}}))
	a.give(t, "emane", channelA)
	id := networkIDOf("emane")
	for _, message := range [][]byte{{otaVersion}, append([]byte{otaVersion}, id[:]...), append([]byte{otaVersion}, make([]byte, 40)...)} {
		a.hosts.peers.Peer("host-b").Send(message)
	}
	must(t, processA.Send([]byte("no relay")))
	b.counts(t, 4, 4)
	must(t, b.SetRelay("emane", Relay{Hosts: []string{"host-a"}}))
	must(t, processA.Send([]byte("no processes")))
	b.counts(t, 5, 5)
	b.give(t, "emane", channelB)
	got := make(chan string, 1)
	go func() {
		buffer := make([]byte, 100)
		n, _ := processB.Receive(buffer)
		got <- string(buffer[:n])
	}()
	must(t, processA.Send([]byte("hello")))
	if text := await(t, "the datagram", got); text != "hello" {
		t.Errorf("%q came; want hello", text)
	}
	must(t, b.SetRelay("emane", Relay{}))
	must(t, processA.Send([]byte("too late")))
	b.counts(t, 7, 6)
	must(t, a.SetChannel("emane", nil))
	must(t, processA.Send([]byte("unheard")))
	time.Sleep(50 * time.Millisecond)
	b.counts(t, 7, 6)
}

func TestWhatEMANESendsReachesTheProcessesOfItsNeighboursHereAndThere(t *testing.T) {
	a, b, _ := newPair(t, onLinks, [2]HostOptions{})
	channelA, processA := processOf(t, "224.1.2.8:45702")
	here, processHere := processOf(t, "224.1.2.10:45704")
	there, processThere := processOf(t, "224.1.2.9:45703")
	must(t, a.SetRelay("emane", Relay{Hosts: []string{"host-b"}, Neighbours: []string{"other"}}))
	must(t, a.SetRelay("other", Relay{Hosts: []string{"host-b"}, Neighbours: []string{"emane"}}))
	must(t, b.SetRelay("other", Relay{Hosts: []string{"host-a"}, Neighbours: []string{"emane"}}))
	a.give(t, "emane", channelA)
	a.give(t, "other", here)
	b.give(t, "other", there)
	for name, process := range map[string]*ota.Channel{"here": processHere, "there": processThere} {
		got := make(chan string, 1)
		go func() {
			buffer := make([]byte, 100)
			n, _ := process.Receive(buffer)
			got <- string(buffer[:n])
		}()
		must(t, processA.Send([]byte("noise")))
		if text := await(t, "the datagram "+name, got); text != "noise" {
			t.Errorf("%q came %s; want noise", text, name)
		}
	}
}

// Node 2's host has a wrong date; the network's slots go by the first host's.
func TestSlotsGoByOneHostsClock(t *testing.T) {
	schedule, err := tdma.Generate(tdma.Structure{Frames: 1, Slots: 2, SlotDuration: 20 * time.Millisecond, BandwidthHertz: 1e6}, []int{1, 2}, 1e6, 300e6, nil)
	must(t, err)
	inSlots := func(n *Network) {
		n.TDMA, n.Now = &TDMAModel{Queue: tdma.DefaultQueue()}, State{Radios: twoRadios(), Schedule: schedule}
	}
	const wrong = int64(250 * time.Millisecond)
	began := clock.Monotonic()
	ahead := HostOptions{PeerTime: func(now int64) int64 { return now + int64(time.Hour) }, Realtime: func() int64 { return clock.Realtime() + wrong }}
	behind := HostOptions{PeerTime: func(now int64) int64 { return now - int64(time.Hour) + int64(80e-6*float64(now-began)) }}
	a, b, cut := newPair(t, inSlots, [2]HostOptions{ahead, behind})
	followed := func(h farHost) int64 { return h.networks["net"].environment.clock.followed.Load() }
	within := b.sees(t).Clock.Uncertainty + 50*time.Microsecond
	follows := func() bool {
		off := time.Duration(followed(b) - clock.EpochOffset() - wrong)
		return followed(b) != 0 && off.Abs() < within+peers.LostAfter/1000
	}
	eventually(t, "host-b's slots go by host-a's clock", follows)
	if f := followed(a); f != 0 {
		t.Errorf("host-a follows %d; want its own clock", f)
	}
	cut.Store(true)
	eventually(t, "host-b follows its own clock, as host-a is lost", func() bool { return followed(b) == 0 })
	b.hears(t, false)
	b.hosts.tellLost()
	if again := b.Events(); len(again) != 1 || again[0].Host != "host-a" || !again[0].Again || again[0].Reachable || again[0].Since == 0 {
		t.Errorf("events %+v; want again that host-a is lost", again)
	}
	cut.Store(false)
	eventually(t, "host-b follows host-a again", follows)
	b.hears(t, true)
}

func TestAHostThatWasLostAndRemovedIsNotLostWhenItIsBack(t *testing.T) {
	a, b, cut := newPair(t, onLinks, [2]HostOptions{})
	there := map[string]peers.Address{"host-a": {UDP: a.hosts.Conn.(*radiodtest.Cable).LocalAddr().(*net.UDPAddr).AddrPort(), Key: a.hosts.Key.Public()}}
	cut.Store(true)
	b.hears(t, false)
	must(t, b.SetHosts(nil))
	if n := len(b.hosts.lost); n != 0 {
		t.Errorf("%d hosts are lost; want none, as the only one is removed", n)
	}
	b.hosts.reachabilityChanged(peers.Change{Host: "host-a"}) // late
	b.hears(t, false)
	cut.Store(false)
	must(t, b.SetHosts(there))
	eventually(t, "host-a is reachable", func() bool { return b.sees(t).Reachable })
	b.hosts.losing.Lock()
	b.hosts.told = func(e Event) {
		if e.Again {
			t.Errorf("event %+v; want none of a host that is reachable", e)
		}
	}
	b.hosts.losing.Unlock()
	b.hosts.tellLost()
}

// hears waits for the event that host-a is lost, or reachable again. A busy machine may lose it more often than the test does.
func (f *farHost) hears(t *testing.T, reachable bool) {
	t.Helper()
	for {
		next := make(chan []Event, 1)
		go func() { next <- f.Events() }()
		for _, e := range await(t, fmt.Sprintf("the event that host-a is reachable: %v", reachable), next) {
			if e.Host != "host-a" || e.Since == 0 || e.At < e.Since {
				t.Fatalf("event %+v; want one of host-a, and since when nothing came", e)
			}
			if e.Reachable == reachable {
				return
			}
		}
	}
}
