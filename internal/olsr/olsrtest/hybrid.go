package olsrtest

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/olsr"
)

// Media of a hybrid network.
const (
	broadbandA = iota
	broadbandB
	narrowband
)

// The intervals of a hybrid network. TCs hold for three intervals of the slowest network.
var (
	broadbandTimes  = olsr.Interface{Hello: 2 * time.Second, TC: 4 * time.Second, TCValidity: 90 * time.Second}
	narrowbandTimes = olsr.Interface{Hello: 15 * time.Second, TC: 30 * time.Second, TCValidity: 90 * time.Second}
)

// Message as it went over an interface.
type Message struct {
	Hello, TC  bool
	Originator netip.Addr
}

// Read reads a packet's messages.
type Read func(packet []byte) []Message

// hybrid makes two groups of five nodes, each on a broadband network, whose leaders share a narrowband network. Within a
// group every other node is out of range, so that TCs are forwarded.
func hybrid(t *testing.T, narrow olsr.Interface, maker Maker) *Network {
	t.Helper()
	media := [][]int{{broadbandA, narrowband}, {broadbandA}, {broadbandA}, {broadbandA}, {broadbandA},
		{broadbandB, narrowband}, {broadbandB}, {broadbandB}, {broadbandB}, {broadbandB}}
	times := func(medium int) olsr.Interface {
		if medium == narrowband {
			return narrow
		}
		return broadbandTimes
	}
	net, err := NewWithTimes(media, times, 1, olsr.Config{}, maker)
	if err != nil {
		t.Fatal(err)
	}
	for _, leader := range []int{0, 5} {
		for node := leader + 1; node < leader+5; node++ {
			net.Link(node-1, node, true)
		}
	}
	net.Link(0, 5, true)
	return net
}

// counted are the messages that a node sent over an interface.
type counted struct {
	hellos int
	tcs    map[netip.Addr][]time.Time // by originator
	bytes  int
}

// count runs a network and counts what nodes send, by node and interface.
func (net *Network) count(how time.Duration, read Read) map[[2]int]*counted {
	all := map[[2]int]*counted{}
	net.Packets = func(node, iface int, packet []byte) {
		key := [2]int{node, iface}
		if all[key] == nil {
			all[key] = &counted{tcs: map[netip.Addr][]time.Time{}}
		}
		all[key].bytes += len(packet) + Overhead
		for _, m := range read(packet) {
			if m.Hello {
				all[key].hellos++
			}
			if m.TC {
				all[key].tcs[m.Originator] = append(all[key].tcs[m.Originator], net.Now)
			}
		}
	}
	net.Run(how)
	net.Packets = nil
	return all
}

// Hybrid checks that each network of a domain has its own rates of HELLOs and TCs, and that routes across it stay right.
func Hybrid(t *testing.T, maker Maker, read Read) {
	net := hybrid(t, narrowbandTimes, maker)
	t.Logf("converged after %v", net.converge(t, 5*time.Minute))
	const how = 20 * time.Minute
	sent := net.count(how, read)
	for key, c := range sent {
		medium := net.Nodes[key[0]].media[key[1]]
		times := broadbandTimes
		if medium == narrowband {
			times = narrowbandTimes
		}
		// Jitter makes an interval up to a quarter shorter.
		if least, most := int(how/times.Hello), int(how/(times.Hello*3/4)); c.hellos < least-1 || c.hellos > most+1 {
			t.Errorf("node %d sent %d HELLOs on medium %d in %v; want %d to %d, one every %v less jitter", key[0], c.hellos, medium, how, least, most, times.Hello)
		}
		for from, at := range c.tcs {
			tc := narrowbandTimes.TC
			if int(from.As4()[1]) == medium { // of the group itself
				tc = broadbandTimes.TC
			}
			checkPace(t, key[0], medium, from, at, tc)
		}
	}
	if others := sent[[2]int{0, 1}]; others == nil || len(others.tcs) < 4 {
		t.Errorf("the first leader sent TCs of %d nodes over the narrowband network; want its own and three of its group", len(others.tcs))
	}
	if wrong := net.FirstDifference(); wrong != "" {
		t.Errorf("after %v: %s", how, wrong)
	}
	net.noErrors(t)
	before := hybrid(t, olsr.Interface{Hello: narrowbandTimes.Hello, TC: broadbandTimes.TC, TCValidity: broadbandTimes.TCValidity}, maker)
	before.converge(t, 5*time.Minute)
	unthinned := before.count(how, read)[[2]int{0, 1}].bytes
	thinned := sent[[2]int{0, 1}].bytes
	t.Logf("a leader sends %.1f bytes/s over the narrowband network; with the broadband networks' tc %.1f", float64(thinned)/how.Seconds(), float64(unthinned)/how.Seconds())
	if 3*thinned > unthinned {
		t.Errorf("%d bytes over the narrowband network, %d with the broadband networks' tc; want less than a third", thinned, unthinned)
	}
}

// checkPace checks the times between an originator's TCs over an interface.
func checkPace(t *testing.T, node, medium int, from netip.Addr, at []time.Time, tc time.Duration) {
	t.Helper()
	// A TC waits for its jitter, and one of another network is up to an interval of that early.
	slack := broadbandTimes.TC + broadbandTimes.Hello
	least := tc*3/4 - slack
	for i := 1; i < len(at); i++ {
		if gap := at[i].Sub(at[i-1]); gap < least || gap > tc+slack {
			t.Errorf("node %d sent TCs of %v on medium %d after %v; want about %v", node, from, medium, gap, tc)
			return
		}
	}
}

// SilentInterface checks silence (EMCON) on one of two interfaces: nothing is sent over it, routes through it end as neighbours
// time out, and the other interface goes on.
func SilentInterface(t *testing.T, maker Maker, read Read) {
	net := hybrid(t, narrowbandTimes, maker)
	net.converge(t, 5*time.Minute)
	routes := func(node int) int { return len(net.Nodes[node].Router.Routes()) }
	farLeader := netip.PrefixFrom(Address(0, narrowband), 32)
	knowsFarLeader := func() bool {
		return slices.ContainsFunc(net.Nodes[5].Router.Routes(), func(r olsr.Route) bool { return r.Destination == farLeader })
	}
	if all := routes(9); all != 11 {
		t.Fatalf("a node has %d routes; want one to each of eleven addresses", all)
	}
	net.Nodes[0].Router.Transmit(net.Now, 1, false)
	net.Tick(0)
	net.Run(narrowbandTimes.Hello)
	if !knowsFarLeader() {
		t.Error("the other leader lost its route before the last HELLO had run out")
	}
	net.Run(3 * narrowbandTimes.Hello)
	if knowsFarLeader() {
		t.Error("the other leader has a route after the last HELLO has run out")
	}
	net.Run(narrowbandTimes.TCValidity + 30*time.Second)
	sent := net.count(5*time.Minute, read)
	if c := sent[[2]int{0, 1}]; c != nil {
		t.Errorf("the leader sent %d HELLOs and TCs of %d nodes over its silent interface", c.hellos, len(c.tcs))
	}
	if c := sent[[2]int{0, 0}]; c == nil || c.hellos < 140 {
		t.Errorf("the leader did not go on with HELLOs over its other interface: %+v", c)
	}
	// Four others of the group; a leader has two addresses.
	if own, far := routes(4), routes(9); own != 5 || far != 5 {
		t.Errorf("the nodes at both ends have %d and %d routes; want those to their groups, 5 and 5", own, far)
	}
	net.Nodes[0].Router.Transmit(net.Now, 1, true)
	net.Tick(0)
	t.Logf("one domain again after %v", net.converge(t, 5*time.Minute))
}
