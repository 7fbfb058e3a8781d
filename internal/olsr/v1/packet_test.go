package v1

import (
	"encoding/hex"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"vignette.dev/vignette/internal/olsr"
)

var start = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func addresses(all ...string) (parsed []netip.Addr) {
	for _, a := range all {
		parsed = append(parsed, netip.MustParseAddr(a))
	}
	return parsed
}

func TestAMessageIsLaidOutAsTheStandardSays(t *testing.T) {
	h := hello{Interval: 2 * time.Second, Willingness: 3, Groups: []group{
		{Link: linkSymmetric, Neighbour: mprNeighbour, Addresses: addresses("10.0.0.2")},
		{Link: linkAsymmetric, Neighbour: notNeighbour, Addresses: addresses("10.0.0.3", "10.0.0.4")},
	}}
	m := message{Type: typeHello, Validity: 6 * time.Second, Originator: netip.MustParseAddr("10.0.0.1"), TTL: 1, Sequence: 7, Body: h.append(nil)}
	want := "01" + "86" + "0024" + "0a000001" + "01" + "00" + "0007" + // message header
		"0000" + "05" + "03" + // HELLO
		"0a" + "00" + "0008" + "0a000002" + "01" + "00" + "000c" + "0a0000030a000004"
	if got := hex.EncodeToString(m.append(nil)); got != want {
		t.Errorf("%s, not\n%s", got, want)
	}
	packet := append([]byte{0, 4 + 36, 0, 1}, m.append(nil)...)
	read, err := split(packet, nil)
	if err != nil || len(read) != 1 || read[0].Validity != 6*time.Second || read[0].Sequence != 7 {
		t.Fatalf("%+v, %v", read, err)
	}
	if got, err := readHello(read[0].Body); err != nil || !reflect.DeepEqual(got, h) {
		t.Errorf("%+v, %v, not %+v", got, err, h)
	}
}

func TestTimesAreThoseOfTheStandard(t *testing.T) {
	// RFC 3626 section 18.3, as mantissa and exponent: 2 s is 0 and 5, 6 s is 8 and 6, 15 s is 14 and 7, 30 s
	// is 14 and 8.
	for code, want := range map[uint8]time.Duration{0x05: 2 * time.Second, 0x86: 6 * time.Second, 0xe7: 15 * time.Second, 0xe8: 30 * time.Second} {
		if timeOf(code) != want || timeCode(want) != code {
			t.Errorf("%#x is %v, %v is %#x", code, timeOf(code), want, timeCode(want))
		}
	}
	for code := range 256 {
		if got := timeCode(timeOf(uint8(code))); timeOf(got) != timeOf(uint8(code)) {
			t.Errorf("%#x comes back as %#x", code, got)
		}
	}
	if timeCode(0) != 0 || timeCode(24*time.Hour) != 0xff {
		t.Error("too short and too long times are not the least and the greatest")
	}
}

func TestNetworksAreReadAsTheyWereWritten(t *testing.T) {
	want := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("192.168.4.0/22"), netip.MustParsePrefix("10.0.0.1/32")}
	if got, err := readHNA(appendHNA(nil, want)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := readHNA([]byte{10, 0, 0, 0, 255, 0, 255, 0}); err == nil {
		t.Error("a netmask with a gap is accepted")
	}
}

func TestAGatewayIsFoundByAll(t *testing.T) {
	r, err := New(olsr.Config{Interfaces: []olsr.Interface{{Address: netip.MustParseAddr("10.0.0.1")}}}, func(int, []byte) {})
	if err != nil {
		t.Fatal(err)
	}
	peer := netip.MustParseAddr("10.0.0.2")
	send := func(m message) {
		m.Validity, m.Originator = 6*time.Second, peer
		bytes := m.append([]byte{0, 0, 0, 1})
		bytes[1] = byte(len(bytes))
		if err := r.Receive(start, 0, peer, bytes); err != nil {
			t.Fatal(err)
		}
	}
	network := netip.MustParsePrefix("192.168.0.0/16")
	h := hello{Groups: []group{{Link: linkAsymmetric, Addresses: addresses("10.0.0.1")}}}
	send(message{Type: typeHello, TTL: 1, Sequence: 1, Body: h.append(nil)})
	send(message{Type: typeHNA, TTL: 9, Sequence: 2, Body: appendHNA(nil, []netip.Prefix{network})})
	r.Tick(start)
	routes := r.Routes()
	if len(routes) != 2 || routes[1].Destination != network || routes[1].NextHop != peer || routes[1].Hops != 2 {
		t.Errorf("%+v", routes)
	}
	r.Tick(start.Add(7 * time.Second))
	if routes := r.Routes(); len(routes) != 0 {
		t.Errorf("when it has run out: %+v", routes)
	}
}

func TestARouteFollowsTheLinksToANeighbour(t *testing.T) {
	mine, peers := addresses("10.0.0.1", "10.0.1.1"), addresses("10.0.0.2", "10.0.1.2")
	r, err := New(olsr.Config{Interfaces: []olsr.Interface{{Address: mine[0]}, {Address: mine[1]}}}, func(int, []byte) {})
	if err != nil {
		t.Fatal(err)
	}
	// hear a HELLO, which holds for 6 s, over an interface.
	hear := func(after time.Duration, iface int, sequence uint16, named ...netip.Addr) {
		h := hello{Groups: []group{{Link: linkAsymmetric, Neighbour: notNeighbour, Addresses: named}}}
		m := message{Type: typeHello, TTL: 1, Validity: 6 * time.Second, Originator: peers[0], Sequence: sequence, Body: h.append(nil)}
		bytes := m.append([]byte{0, 0, 0, 1})
		bytes[1] = byte(len(bytes))
		if err := r.Receive(start.Add(after), iface, peers[iface], bytes); err != nil {
			t.Fatal(err)
		}
		r.Tick(start.Add(after))
	}
	over := func(after time.Duration, iface int, when string) {
		t.Helper()
		r.Tick(start.Add(after))
		for _, route := range r.Routes() {
			if route.Interface != iface || route.NextHop != peers[iface] {
				t.Errorf("%s the route to %v is over interface %d; want %d", when, route.Destination, route.Interface, iface)
			}
		}
		if len(r.Routes()) != len(peers) {
			t.Errorf("%s there are the routes %+v; want one to each address of the neighbour", when, r.Routes())
		}
	}
	hear(0, 1, 1, mine[1])
	hear(time.Second, 0, 2) // it does not hear this node there yet
	over(2*time.Second, 1, "with one symmetric link")
	hear(2*time.Second, 0, 3, mine[0])
	over(4*time.Second, 0, "with a second one, over the first interface,")
	hear(5*time.Second, 1, 4, mine[1])
	over(9*time.Second, 1, "when that link is lost")
}

func FuzzReceive(f *testing.F) {
	h := hello{Interval: time.Second, Groups: []group{{Link: linkSymmetric, Neighbour: mprNeighbour, Addresses: addresses("10.0.0.1")}}}
	for _, m := range []message{
		{Type: typeHello, TTL: 1, Body: h.append(nil)}, {Type: typeTC, TTL: 9, Body: appendTC(nil, 1, addresses("10.0.0.3"))},
		{Type: typeMID, TTL: 9, Body: appendAddresses(nil, addresses("10.0.0.4"))}, {Type: typeHNA, TTL: 9, Body: appendHNA(nil, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})},
	} {
		m.Originator = netip.MustParseAddr("10.0.0.2")
		b := m.append([]byte{0, 0, 0, 1})
		b[1] = byte(len(b))
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		made, err := New(olsr.Config{Interfaces: []olsr.Interface{{Address: netip.MustParseAddr("10.0.0.1")}}}, func(int, []byte) {})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 6 {
			now := start.Add(time.Duration(i) * 1500 * time.Millisecond)
			_ = made.Receive(now, 0, netip.MustParseAddr("10.0.0.2"), packet)
			made.Tick(now)
		}
		made.Tables()
		snapshot, err := made.Snapshot(start.Add(10 * time.Second))
		if err != nil {
			t.Fatal(err)
		}
		again, _ := New(olsr.Config{Interfaces: []olsr.Interface{{Address: netip.MustParseAddr("10.0.0.1")}}}, func(int, []byte) {})
		if err := again.Restore(start.Add(10*time.Second), snapshot); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzRestore(f *testing.F) {
	config := olsr.Config{Interfaces: []olsr.Interface{{Address: netip.MustParseAddr("10.0.0.1")}}}
	made, err := New(config, func(int, []byte) {})
	if err != nil {
		f.Fatal(err)
	}
	from := netip.MustParseAddr("10.0.0.2")
	h := hello{Interval: time.Second, Groups: []group{{Link: linkSymmetric, Neighbour: mprNeighbour, Addresses: addresses("10.0.0.1", "10.0.0.5")}}}
	for _, m := range []message{
		{Type: typeHello, TTL: 1, Body: h.append(nil)}, {Type: typeTC, TTL: 9, Body: appendTC(nil, 1, addresses("10.0.0.3"))},
		{Type: typeMID, TTL: 9, Body: appendAddresses(nil, addresses("10.0.0.4"))}, {Type: typeHNA, TTL: 9, Body: appendHNA(nil, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})},
	} {
		m.Originator = from
		packet := m.append([]byte{0, 0, 0, 1})
		packet[1] = byte(len(packet))
		if err := made.Receive(start, 0, from, packet); err != nil {
			f.Fatal(err)
		}
	}
	snapshot, err := made.Snapshot(start)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(snapshot)
	f.Fuzz(func(_ *testing.T, snapshot []byte) {
		again, _ := New(config, func(int, []byte) {})
		_ = again.Restore(start, snapshot)
		for i := range 10 {
			again.Tick(start.Add(time.Duration(i) * time.Second))
		}
		again.Tables()
	})
}

func TestHELLOsHaveTheTimesOfTheirInterface(t *testing.T) {
	both := addresses("10.0.0.1", "10.0.1.1")
	hellos := [2]int{}
	c := olsr.Config{Hello: time.Second, Interfaces: []olsr.Interface{{Address: both[0]}, {Address: both[1], Hello: 10 * time.Second, HelloValidity: 50 * time.Second}}}
	r, err := New(c, func(iface int, packet []byte) {
		messages, err := split(packet, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			if m.Type != typeHello {
				continue
			}
			hellos[iface]++
			h, err := readHello(m.Body)
			interval, validity := [2]time.Duration{time.Second, 10 * time.Second}[iface], [2]time.Duration{3 * time.Second, 50 * time.Second}[iface]
			if err != nil || h.Interval != interval || m.Validity != validity {
				t.Errorf("interface %d: a HELLO of interval %v and validity %v, %v; want %v and %v", iface, h.Interval, m.Validity, err, interval, validity)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for now := start; now.Before(start.Add(100 * time.Second)); {
		now = r.Tick(now)
	}
	// Jitter makes an interval up to a quarter shorter.
	if hellos[0] < 99 || hellos[0] > 134 || hellos[1] < 9 || hellos[1] > 14 {
		t.Errorf("%d HELLOs on the fast interface and %d on the slow one in 100 s; want 100 to 134, and 10 to 14", hellos[0], hellos[1])
	}
}
