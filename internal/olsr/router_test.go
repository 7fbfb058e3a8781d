package olsr

import (
	"bytes"
	"fmt"
	"math/rand"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"vignette.dev/vignette/internal/olsr/rfc5444"
)

var (
	start = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	me    = netip.MustParseAddr("10.0.0.1")
	peer  = netip.MustParseAddr("10.0.0.2")
	far   = netip.MustParseAddr("10.0.0.3")
)

func one(t testing.TB, c Config) *router {
	t.Helper()
	if c.Interfaces == nil {
		c.Interfaces = []Interface{{Name: "r0", Address: me}}
	}
	r, err := New(c, func(int, []byte) {})
	if err != nil {
		t.Fatal(err)
	}
	return r.(*router)
}

func attribute(kind uint8, value ...byte) rfc5444.Attribute {
	return rfc5444.Attribute{Type: kind, Value: value}
}

// said of an address.
func said(a netip.Addr, attributes ...rfc5444.Attribute) rfc5444.Entry {
	return rfc5444.Entry{Address: netip.PrefixFrom(a, a.BitLen()), Attributes: attributes}
}

// hello of peer that holds for six seconds.
func hello(t testing.TB, entries ...rfc5444.Entry) []byte {
	t.Helper()
	m := rfc5444.Message{
		Header: rfc5444.Header{Type: messageHello, AddressLength: 4, Originator: peer},
		TLVs:   []rfc5444.TLV{{Type: rfc5444.ValidityTime, Value: []byte{100}}, {Type: rfc5444.IntervalTime, Value: []byte{88}}},
		Blocks: rfc5444.Blocks(append([]rfc5444.Entry{said(peer, attribute(addressLocalIf, thisIf))}, entries...)),
	}
	b, err := m.Append(rfc5444.AppendPacketHeader(nil, 0, false))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// tc of an originator that advertises others.
func tc(t testing.TB, origin netip.Addr, sequence, ansn uint16, kind uint8, to ...netip.Addr) []byte {
	t.Helper()
	var entries []rfc5444.Entry
	for _, a := range to {
		entries = append(entries, said(a, attribute(addressNbrType, nbrOriginator|nbrRoutable)))
	}
	m := rfc5444.Message{
		Header: rfc5444.Header{Type: messageTC, AddressLength: 4, Originator: origin, HasHopLimit: true, HopLimit: 9, HasHopCount: true, HasSequence: true, Sequence: sequence},
		TLVs: []rfc5444.TLV{
			{Type: rfc5444.ValidityTime, Value: []byte{111}},
			{Type: messageContSeqNum, Extension: kind, Value: []byte{byte(ansn >> 8), byte(ansn)}},
		},
		Blocks: rfc5444.Blocks(entries),
	}
	b, err := m.Append(rfc5444.AppendPacketHeader(nil, 0, false))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func hear(t testing.TB, r *router, at time.Duration, packet []byte) {
	t.Helper()
	if err := r.Receive(start.Add(at), 0, peer, packet); err != nil {
		t.Fatal(err)
	}
	r.Tick(start.Add(at))
}

func TestALinkIsHeardThenSymmetricThenLostThenForgotten(t *testing.T) {
	r := one(t, Config{})
	status := func(at time.Duration) string {
		r.Tick(start.Add(at))
		var all []string
		for _, l := range r.Tables().Links {
			all = append(all, string(l.Status))
		}
		return fmt.Sprint(all, len(r.Routes()), len(r.Tables().TwoHops))
	}
	symmetric := attribute(addressLinkStatus, statusSymmetric)
	hear(t, r, 0, hello(t))
	if got := status(0); got != "[heard] 0 0" {
		t.Errorf("after a HELLO that does not name this node: %s", got)
	}
	hear(t, r, time.Second, hello(t, said(me, attribute(addressLinkStatus, statusHeard)), said(far, symmetric)))
	if got := status(time.Second); got != "[symmetric] 2 1" {
		t.Errorf("after one that does: %s", got)
	}
	hear(t, r, 2*time.Second, hello(t, said(me, symmetric), said(far, attribute(addressLinkStatus, statusLost))))
	if got := status(3 * time.Second); got != "[symmetric] 1 0" {
		t.Errorf("after the neighbour has lost its other one: %s", got)
	}
	hear(t, r, 4*time.Second, hello(t, said(me, attribute(addressLinkStatus, statusLost))))
	if got := status(4500 * time.Millisecond); got != "[heard] 0 0" {
		t.Errorf("after the neighbour has lost this node: %s", got)
	}
	if got := status(10500 * time.Millisecond); got != "[lost] 0 0" {
		t.Errorf("after six seconds without HELLO: %s", got)
	}
	if got := status(17 * time.Second); got != "[] 0 0" {
		t.Errorf("after another six: %s", got)
	}
}

func TestALinkThatWasOnlyHeardIsForgotten(t *testing.T) {
	r := one(t, Config{})
	hear(t, r, 0, hello(t)) // it holds for 6 s, and the link for 6 s longer
	for at := start; at.Before(start.Add(13 * time.Second)); {
		at = r.Tick(at)
	}
	if left := r.Tables().Links; len(left) != 0 || len(r.neighbours) != 0 {
		t.Errorf("after 13 s it has the links %v and %d neighbours; want none", left, len(r.neighbours))
	}
}

func TestALossIsAdvertisedForTheLongestValidityOfHELLOs(t *testing.T) {
	r := one(t, Config{Interfaces: []Interface{{Name: "r0", Address: me, Hello: 30 * time.Second}, {Name: "r1", Address: netip.MustParseAddr("10.1.0.1")}}})
	hear(t, r, 0, hello(t, said(me, attribute(addressLinkStatus, statusHeard)))) // it holds for 6 s
	for _, at := range []int{5, 7, 36, 95, 97} {
		want := at > 6 && at < 96
		r.Tick(start.Add(time.Duration(at) * time.Second))
		lost := slices.ContainsFunc(r.helloEntries(time.Duration(at)*time.Second, r.ifaces[1]), func(e rfc5444.Entry) bool {
			return e.Address.Addr() == peer && slices.ContainsFunc(e.Attributes, func(a rfc5444.Attribute) bool {
				return a.Type == addressOtherNeighb && a.Value[0] == statusLost
			})
		})
		if lost != want {
			t.Errorf("after %d s the other interface says that it is lost: %v; want %v", at, lost, want)
		}
	}
}

func TestALaterANSNReplacesAndAnEarlierIsIgnored(t *testing.T) {
	r := one(t, Config{})
	a, b, c := netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("10.0.0.8"), netip.MustParseAddr("10.0.0.9")
	edges := func() string {
		var all []string
		for _, e := range r.Tables().Topology {
			all = append(all, e.To.String())
		}
		return strings.Join(all, " ")
	}
	for _, step := range []struct {
		name           string
		sequence, ansn uint16
		kind           uint8
		to             []netip.Addr
		want           string
	}{
		{"the first", 1, 65535, completeTC, []netip.Addr{a, b}, "10.0.0.7 10.0.0.8"},
		{"a later one over the wrap", 2, 0, completeTC, []netip.Addr{b, c}, "10.0.0.8 10.0.0.9"},
		{"an earlier one that was overtaken", 3, 65534, completeTC, []netip.Addr{a}, "10.0.0.8 10.0.0.9"},
		{"a duplicate", 2, 1, completeTC, []netip.Addr{a}, "10.0.0.8 10.0.0.9"},
		{"an incomplete one", 4, 1, incompleteTC, []netip.Addr{a}, "10.0.0.7 10.0.0.8 10.0.0.9"},
		{"an empty one", 5, 2, completeTC, nil, ""},
	} {
		hear(t, r, time.Second, tc(t, far, step.sequence, step.ansn, step.kind, step.to...))
		if got := edges(); got != step.want {
			t.Errorf("%s leaves %q, not %q", step.name, got, step.want)
		}
	}
	hear(t, r, time.Second, tc(t, far, 6, 3, completeTC, a))
	r.Tick(start.Add(20 * time.Second))
	if got := edges(); got != "" {
		t.Errorf("after its validity: %q", got)
	}
}

func TestOnlyMPRSelectorsAreForwardedFor(t *testing.T) {
	for name, c := range map[string]struct {
		mine      []rfc5444.Attribute
		forwarded uint64
	}{
		"a neighbour that did not choose this node": {[]rfc5444.Attribute{attribute(addressLinkStatus, statusSymmetric)}, 0},
		"one that chose it for routing":             {[]rfc5444.Attribute{attribute(addressLinkStatus, statusSymmetric), attribute(addressMPR, mprRouting)}, 0},
		"one that chose it for flooding":            {[]rfc5444.Attribute{attribute(addressLinkStatus, statusSymmetric), attribute(addressMPR, mprFlooding)}, 1},
		"one whose link is not symmetric":           {[]rfc5444.Attribute{attribute(addressLinkStatus, statusLost), attribute(addressMPR, mprFlooding)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := one(t, Config{})
			hear(t, r, 0, hello(t, said(me, c.mine...)))
			for range 3 {
				hear(t, r, time.Second, tc(t, far, 1, 1, completeTC, peer))
			}
			if got := r.Counters(); got.Forwarded != c.forwarded || got.Duplicates != 2 {
				t.Errorf("%d forwarded, %d duplicates", got.Forwarded, got.Duplicates)
			}
		})
	}
}

func TestDirectionalAirtimeIsLossAndRate(t *testing.T) {
	for name, c := range map[string]struct {
		rate      float64
		sequences []uint16
		silence   time.Duration // after the last packet, with HELLOs announced every 2 s
		want      uint32
	}{
		"no loss at 1 kbit/s":           {1000, []uint16{1, 2, 3, 4}, 0, 1 << 21},
		"no loss at 1 Mbit/s":           {1e6, []uint16{65534, 65535, 0, 1}, 0, 2097},
		"half lost at 1 Mbit/s":         {1e6, []uint16{1, 3, 5, 7, 9, 11, 13, 15}, 0, 2097 * 15 / 8},
		"a sender that began again":     {1e6, []uint16{9000, 9001, 4, 5}, 0, 2097},
		"duplicates":                    {1e6, []uint16{1, 1, 1, 3, 3, 3}, 0, 2097 * 3 / 2},
		"almost all lost is the most":   {1e6, []uint16{1, 200}, 0, 8 * 2097},
		"a HELLO that is not late yet":  {1e6, []uint16{1, 2, 3, 4}, 2300 * time.Millisecond, 2097},
		"one HELLO late":                {1e6, []uint16{1, 2, 3, 4}, 2500 * time.Millisecond, 2097 * 64 / 62},
		"nine HELLOs late":              {1e6, []uint16{1, 2, 3, 4}, 19 * time.Second, 2097 * 64 / 46},
		"so long that less than one is": {1e6, []uint16{1, 2, 3, 4}, 52 * time.Second, rfc5444.MaximumMetric},
		"longer than the memory":        {1e6, []uint16{1, 2, 3, 4}, 2 * time.Minute, rfc5444.MaximumMetric},
		"nothing ever":                  {1e6, nil, 0, rfc5444.MaximumMetric},
		"a HELLO without a number":      {1e6, []uint16{}, 0, 2097},
	} {
		t.Run(name, func(t *testing.T) {
			var d loss
			now := time.Hour
			for _, s := range c.sequences {
				now += time.Second
				d.hello(2*time.Second, 6*time.Second, now)
				d.packet(s, now)
			}
			if c.sequences != nil && len(c.sequences) == 0 {
				d.hello(0, 6*time.Second, now)
			}
			if got := d.metric(now+c.silence, c.rate); got < c.want-c.want/200 || got > c.want+c.want/200 {
				t.Errorf("metric %d; want %d", got, c.want)
			}
		})
	}
}

func TestConfigurationsThatCannotBeAreRefused(t *testing.T) {
	good := []Interface{{Address: me}}
	for want, c := range map[string]Config{
		"interfaces: there is none":                     {},
		"interfaces[1]: address: 10.0.0.1 is that":      {Interfaces: []Interface{{Address: me}, {Address: me}}},
		"interfaces[1]: address: fe80::1 is of another": {Interfaces: []Interface{{Address: me}, {Address: netip.MustParseAddr("fe80::1")}}},
		"hello: -1s is not":                             {Interfaces: good, Hello: -time.Second},
		"helloValidity: 1s is not between 2s":           {Interfaces: good, HelloValidity: time.Second},
		"tcValidity: 1s is not between 5s":              {Interfaces: good, TCValidity: time.Second},
		"routingWillingness: 16 is not":                 {Interfaces: good, RoutingWillingness: new(int)},
		"attached[0].prefix: 10.0.0.1/8 is not":         {Interfaces: good, Attached: []Attached{{Prefix: netip.MustParsePrefix("10.0.0.1/8")}}},
	} {
		if c.RoutingWillingness != nil {
			*c.RoutingWillingness = 16
		}
		if _, err := New(c, nil); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, not %s…", err, want)
		}
	}
}

func FuzzReceive(f *testing.F) {
	f.Add(hello(f, said(me, attribute(addressLinkStatus, statusSymmetric)), said(far, attribute(addressLinkStatus, statusSymmetric))), int64(1))
	f.Add(tc(f, far, 1, 1, completeTC, peer), int64(2))
	f.Add(append(hello(f), tc(f, far, 2, 1, incompleteTC, peer)[1:]...), int64(3))
	f.Add(helloOfTypes(f, []byte{224, 0, 225}, []byte{0x7a, 0xbc}, said(me, attribute(addressLinkStatus, statusSymmetric), linkMetric(225))), int64(3))
	f.Fuzz(func(t *testing.T, packet []byte, seed int64) {
		c := Config{Seed: seed, Metric: Metric(uint64(seed) % 2)}
		if seed%3 == 0 {
			c.Topologies = []Topology{{Type: 225, Metric: DAT}, {Type: 224}}
			c.Interfaces = []Interface{{Name: "r0", Address: me, Topologies: []uint8{225, 224}}}
		}
		r := one(t, c)
		random := rand.New(rand.NewSource(seed))
		now := start
		for range 20 {
			now = now.Add(time.Duration(random.Intn(3000)) * time.Millisecond)
			_ = r.Receive(now, 0, netip.AddrFrom4([4]byte{10, 0, 0, byte(2 + random.Intn(4))}), packet)
			if next := r.Tick(now); !next.After(start.Add(-time.Hour)) {
				t.Fatalf("next tick at %v", next)
			}
			if len(packet) > 0 {
				packet = slices.Clone(packet)
				packet[random.Intn(len(packet))] = byte(random.Intn(256))
			}
		}
		r.Tables()
		snapshot, err := r.Snapshot(now)
		if err != nil {
			t.Fatal(err)
		}
		if err := one(t, c).Restore(now, snapshot); err != nil {
			t.Fatal(err)
		}
	})
}

func TestASnapshotWithWhatIsNoAddressOfThisNetworkIsRefused(t *testing.T) {
	r := one(t, Config{})
	_ = r.Receive(start, 0, peer, hello(t, said(me, attribute(addressLinkStatus, statusSymmetric)), said(far, attribute(addressLinkStatus, statusSymmetric))))
	_ = r.Receive(start, 0, peer, tc(t, far, 1, 1, completeTC, peer))
	whole, err := r.Snapshot(start)
	if err != nil {
		t.Fatal(err)
	}
	if err := one(t, Config{}).Restore(start, whole); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]netip.Addr{"a neighbour's": peer, "one two hops away": far} {
		for _, by := range []netip.Addr{{}, netip.MustParseAddr("fd00::1")} {
			broken := bytes.ReplaceAll(whole, inCBOR(t, of), inCBOR(t, by))
			if err := one(t, Config{}).Restore(start, broken); err == nil || !strings.Contains(err.Error(), "is not an address of 4 bytes") {
				t.Errorf("%s address is %q: %v; want it refused", name, by, err)
			}
		}
	}
}

func inCBOR(t *testing.T, a netip.Addr) []byte {
	t.Helper()
	b, err := cbor.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func FuzzRestore(f *testing.F) {
	r := one(f, Config{})
	_ = r.Receive(start, 0, peer, hello(f, said(me, attribute(addressLinkStatus, statusSymmetric)), said(far, attribute(addressLinkStatus, statusSymmetric))))
	_ = r.Receive(start, 0, peer, tc(f, far, 1, 1, completeTC, peer))
	s, _ := r.Snapshot(start)
	f.Add(s)
	f.Fuzz(func(t *testing.T, snapshot []byte) {
		r := one(t, Config{})
		_ = r.Restore(start, snapshot)
		for i := range 10 {
			r.Tick(start.Add(time.Duration(i) * time.Second))
		}
		r.Tables()
	})
}

func TestGarbageDoesNotFillTheMemory(t *testing.T) {
	r := one(t, Config{})
	random := rand.New(rand.NewSource(1))
	address := func() netip.Addr {
		return netip.AddrFrom4([4]byte{11, byte(random.Intn(256)), byte(random.Intn(256)), byte(random.Intn(256))})
	}
	for i := range 4000 {
		to := make([]netip.Addr, 20)
		for k := range to {
			to[k] = address()
		}
		hear(t, r, time.Second, tc(t, address(), uint16(i), 1, completeTC, to...))
	}
	if got := len(r.index.Addrs); got > 1<<14 || len(r.topology) > 1<<14 || r.Counters().Overflows == 0 {
		t.Errorf("%d addresses, %d overflows", got, r.Counters().Overflows)
	}
}

// timedMessages counts the messages of a type that a router sends on each of two interfaces in 100 s. On the first one they have an interval of
// 1 s and the default validity, on the second 10 s and 50 s.
func timedMessages(t *testing.T, config Config, kind byte) (counts [2]int) {
	t.Helper()
	r, err := New(config, func(iface int, packet []byte) {
		var p rfc5444.Packet
		if err := rfc5444.Split(packet, &p); err != nil {
			t.Fatal(err)
		}
		interval, validity := [2]time.Duration{time.Second, 10 * time.Second}[iface], [2]time.Duration{3 * time.Second, 50 * time.Second}[iface]
		for i := range p.Messages {
			var m rfc5444.Message
			if err := p.Messages[i].Decode(&m); err != nil || m.Type != kind {
				continue
			}
			counts[iface]++
			if got, want := m.TLVs[0].Value[0], rfc5444.TimeCode(validity); got != want {
				t.Errorf("interface %d: validity of code %d; want %d", iface, got, want)
			}
			if got, want := m.TLVs[1].Value[0], rfc5444.TimeCode(interval); got != want {
				t.Errorf("interface %d: interval of code %d; want %d", iface, got, want)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for now := start; now.Before(start.Add(100 * time.Second)); {
		now = r.Tick(now)
	}
	return counts
}

func TestHELLOsHaveTheTimesOfTheirInterface(t *testing.T) {
	fast, slow := Interface{Name: "fast", Address: me}, Interface{Name: "slow", Address: far, Hello: 10 * time.Second, HelloValidity: 50 * time.Second}
	hellos := timedMessages(t, Config{Interfaces: []Interface{fast, slow}, Hello: time.Second}, messageHello)
	// Jitter makes an interval up to a quarter shorter.
	if hellos[0] < 99 || hellos[0] > 134 || hellos[1] < 9 || hellos[1] > 14 {
		t.Errorf("%d HELLOs on the fast interface and %d on the slow one in 100 s; want 100 to 134, and 10 to 14", hellos[0], hellos[1])
	}
}

func TestAnInterfacesOwnTimesAreChecked(t *testing.T) {
	for _, c := range []struct {
		i    Interface
		want string
	}{
		{Interface{Hello: time.Second, HelloValidity: 500 * time.Millisecond}, "helloValidity: 500ms is not between 1s and 24h0m0s, on interface r0"},
		{Interface{Hello: time.Millisecond}, "hello: 1ms is not between 10ms and 24h0m0s, on interface r0"},
		{Interface{Hello: 5 * time.Second}, ""},
	} {
		c.i.Name, c.i.Address = "r0", me
		_, err := Config{Interfaces: []Interface{c.i}, HelloValidity: 4 * time.Second}.WithDefaults()
		if got := fmt.Sprint(err); c.want != "" && got != c.want || c.want == "" && err != nil {
			t.Errorf("%+v: %s; want %q", c.i, got, c.want)
		}
	}
}

func TestTCsHaveTheTimesOfTheirInterface(t *testing.T) {
	fast, slow := Interface{Name: "fast", Address: me}, Interface{Name: "slow", Address: far, TC: 10 * time.Second, TCValidity: 50 * time.Second}
	attached := []Attached{{Prefix: netip.MustParsePrefix("192.168.0.0/24")}}
	tcs := timedMessages(t, Config{Interfaces: []Interface{fast, slow}, TC: time.Second, Attached: attached}, messageTC)
	if tcs[0] < 96 || tcs[0] > 134 || tcs[1] < 9 || tcs[1] > 14 {
		t.Errorf("%d TCs on the fast interface and %d on the slow one in 100 s; want 96 to 134, and 9 to 14", tcs[0], tcs[1])
	}
}

func TestATCInSeveralMessagesGoesOnWhole(t *testing.T) {
	var sent [2]int
	fast, slow := Interface{Name: "fast", Address: me, TC: time.Second}, Interface{Name: "slow", Address: netip.MustParseAddr("10.2.0.1"), TC: 20 * time.Second}
	r, err := New(Config{Interfaces: []Interface{fast, slow}}, func(iface int, packet []byte) {
		var p rfc5444.Packet
		if err := rfc5444.Split(packet, &p); err != nil {
			t.Fatal(err)
		}
		for i := range p.Messages {
			if p.Messages[i].Type == messageTC && p.Messages[i].Originator == far {
				sent[iface]++
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	now := start
	receive := func(packet []byte) {
		t.Helper()
		if err := r.Receive(now, 0, peer, packet); err != nil {
			t.Fatal(err)
		}
	}
	for second := range 10 {
		receive(hello(t, said(me, attribute(addressLinkStatus, statusSymmetric), attribute(addressMPR, mprFlooding|mprRouting))))
		number := uint16(2 * second)
		receive(tc(t, far, number, 1, incompleteTC, peer))
		receive(tc(t, far, number+1, 1, incompleteTC, netip.MustParseAddr("10.0.0.4")))
		for next := now; next.Before(now.Add(time.Second)); {
			next = r.Tick(next)
		}
		now = now.Add(time.Second)
	}
	if sent != [2]int{20, 2} {
		t.Errorf("%d messages went on over the fast interface and %d over the slow one; want all 20, and the 2 of one TC", sent[0], sent[1])
	}
}
