package olsrtest

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/olsr"
)

func build(t testing.TB, n int, seed int64, base olsr.Config, make Maker) *Network {
	t.Helper()
	net, err := New(n, seed, base, make)
	if err != nil {
		t.Fatal(err)
	}
	return net
}

func (net *Network) noErrors(t testing.TB) {
	t.Helper()
	for i, node := range net.Nodes {
		if len(node.Errors) > 0 {
			t.Fatalf("node %d refused %d packets, the first with %v", i, len(node.Errors), node.Errors[0])
		}
	}
	if c := net.Counters(); c.Refused+c.Overflows > 0 {
		t.Fatalf("%d packets refused, %d entries without room", c.Refused, c.Overflows)
	}
}

func (net *Network) converge(t testing.TB, limit time.Duration) time.Duration {
	t.Helper()
	took, err := net.Converge(limit)
	if err != nil {
		t.Fatal(err)
	}
	net.noErrors(t)
	return took
}

// RandomTopologies checks that routes equal shortest paths on count topologies of 3 to 60 nodes, and stay so.
func RandomTopologies(t *testing.T, count int, base olsr.Config, make Maker) {
	var all []time.Duration
	var bytes, packets, nodeSeconds float64
	for seed := range int64(count) {
		r := rand.New(rand.NewSource(seed))
		n := 3 + r.Intn(58)
		net := build(t, n, seed, base, make)
		net.Random(seed, 3+6*r.Float64())
		took, err := net.Converge(2 * time.Minute)
		if err != nil {
			t.Fatalf("topology %d of %d nodes: %v", seed, n, err)
		}
		net.noErrors(t)
		all = append(all, took)
		before := net.Counters()
		for range 6 {
			net.Run(5 * time.Second)
			if wrong := net.FirstDifference(); wrong != "" {
				t.Fatalf("topology %d of %d nodes, once converged: %s", seed, n, wrong)
			}
		}
		after := net.Counters()
		bytes += float64(after.BytesSent - before.BytesSent + Overhead*(after.PacketsSent-before.PacketsSent))
		packets += float64(after.PacketsSent - before.PacketsSent)
		nodeSeconds += 30 * float64(n)
	}
	slices.Sort(all)
	t.Logf("%d topologies of 3 to 60 nodes: converged after %v (median), %v (95 %%), %v (most); %.1f bytes/s with IP and UDP and %.2f packets/s per node",
		count, all[len(all)/2], all[len(all)*95/100], all[len(all)-1], bytes/nodeSeconds, packets/nodeSeconds)
}

// OverheadAtRest measures what each node of a network sends that does not move.
func OverheadAtRest(b *testing.B, base olsr.Config, make Maker) {
	for _, n := range []int{24, 60} {
		b.Run(fmt.Sprintf("%d nodes", n), func(b *testing.B) {
			net := build(b, n, 7, base, make)
			net.Random(7, 8)
			net.converge(b, 2*time.Minute)
			net.Run(time.Minute)
			before := net.Counters()
			for b.Loop() {
				net.Run(2 * time.Minute)
			}
			after := net.Counters()
			rate := func(before, after uint64, unit string) {
				b.ReportMetric(float64(after-before)/(120*float64(b.N)*float64(n)), unit)
			}
			rate(before.BytesSent+Overhead*before.PacketsSent, after.BytesSent+Overhead*after.PacketsSent, "bytes/s")
			rate(before.PacketsSent, after.PacketsSent, "packets/s")
			rate(before.HellosSent, after.HellosSent, "HELLOs/s")
			rate(before.TCsSent, after.TCsSent, "TCs/s")
			rate(before.Forwarded, after.Forwarded, "forwarded/s")
		})
	}
}

// AsymmetricLinks checks that routes equal shortest paths over links that exist both ways.
func AsymmetricLinks(t *testing.T, base olsr.Config, make Maker) {
	for seed := range int64(20) {
		r := rand.New(rand.NewSource(seed))
		net := build(t, 4+r.Intn(30), seed, base, make)
		net.Random(seed, 5)
		for a := range net.Nodes {
			for b := range net.Nodes {
				if a != b && net.Links[a][b] == 0 && r.Float64() < 0.1 {
					net.Links[a][b] = 1
				}
			}
		}
		net.converge(t, 2*time.Minute)
	}
}

// Loss checks that loss on every link delays, but does not prevent, routes.
func Loss(t *testing.T, base olsr.Config, make Maker) {
	for seed := range int64(10) {
		net := build(t, 20, seed, base, make)
		net.Random(seed, 6)
		for a := range net.Nodes {
			for b := range net.Nodes {
				net.Links[a][b] *= 0.9
			}
		}
		net.converge(t, 10*time.Minute)
	}
}

// Changes checks changes of topology, failures of nodes, and a network that splits and joins again.
func Changes(t *testing.T, base olsr.Config, make Maker) {
	net := build(t, 30, 3, base, make)
	net.Random(3, 7)
	t.Logf("at first: %v", net.converge(t, 2*time.Minute))
	net.Random(4, 7)
	t.Logf("another topology: %v", net.converge(t, 3*time.Minute))
	net.Nodes[4].Down, net.Nodes[9].Down = true, true
	t.Logf("two nodes less: %v", net.converge(t, 3*time.Minute))
	net.Nodes[4].Down, net.Nodes[9].Down = false, false
	t.Logf("they are back: %v", net.converge(t, 3*time.Minute))
	cut := [][2]int{}
	for a := range 15 {
		for b := 15; b < 30; b++ {
			if net.Links[a][b] > 0 {
				cut = append(cut, [2]int{a, b})
				net.Link(a, b, false)
			}
		}
	}
	t.Logf("apart, over %d links: %v", len(cut), net.converge(t, 3*time.Minute))
	for _, c := range cut {
		net.Link(c[0], c[1], true)
	}
	t.Logf("together again: %v", net.converge(t, 3*time.Minute))
}

// Wrap runs until sequence numbers, which set puts near their end, begin again.
func Wrap(t *testing.T, base olsr.Config, make Maker, set func(olsr.Router)) {
	net := build(t, 8, 5, base, make)
	for i, node := range net.Nodes {
		set(node.Router)
		if i > 0 {
			net.Link(i-1, i, true)
		}
	}
	net.converge(t, time.Minute)
	for i := range 30 {
		// Each change of topology is a new advertised neighbour set.
		net.Link(0, 3, i%2 == 0)
		net.converge(t, 3*time.Minute)
	}
	if s := net.Nodes[3].Router.Tables(); s.SequenceNumber > 60000 || s.ANSN > 60000 {
		t.Errorf("sequence number %d, ANSN %d: they have not begun again", s.SequenceNumber, s.ANSN)
	}
}

// Restart checks that a node's restart with its snapshot changes no routes, and that its own are there from
// its first Tick.
func Restart(t *testing.T, base olsr.Config, make Maker) {
	net := build(t, 20, 6, base, make)
	net.Random(6, 6)
	net.converge(t, 2*time.Minute)
	net.Run(time.Minute)
	generation := func() []uint64 {
		var all []uint64
		for _, node := range net.Nodes {
			all = append(all, node.Router.Generation())
		}
		return all
	}
	before := generation()
	for i, node := range net.Nodes {
		routes := slices.Clone(node.Router.Routes())
		snapshot, err := node.Router.Snapshot(net.Now)
		if err != nil {
			t.Fatal(err)
		}
		node.Down = true
		net.Run(1500 * time.Millisecond)
		node.Down = false
		if err := net.Boot(i, snapshot); err != nil {
			t.Fatal(err)
		}
		if got := node.Router.Routes(); !slices.Equal(got, routes) {
			t.Fatalf("node %d has routes %+v after its restart, not %+v", i, got, routes)
		}
		before[i] = node.Router.Generation()
		for range 30 {
			net.Run(time.Second)
			if wrong := net.FirstDifference(); wrong != "" {
				t.Fatalf("after the restart of node %d: %s", i, wrong)
			}
		}
	}
	if after := generation(); !slices.Equal(before, after) {
		t.Errorf("routes were changed: generations %v, then %v", before, after)
	}
	net.noErrors(t)
}

// Silence checks a silent node (EMCON): others lose it, it continues to learn, and it is back soon after.
func Silence(t *testing.T, base olsr.Config, make Maker) {
	net := build(t, 6, 8, base, make)
	for i := 1; i < 6; i++ {
		net.Link(i-1, i, true)
	}
	net.converge(t, time.Minute)
	sent := net.Nodes[0].Router.Counters().PacketsSent
	net.Nodes[0].Router.Transmit(net.Now, 0, false)
	net.Tick(0)
	net.Run(2 * time.Minute)
	c := net.Nodes[0].Router.Counters()
	if c.PacketsSent != sent || c.Silenced == 0 {
		t.Fatalf("the silent node sent %d packets, and left out %d", c.PacketsSent-sent, c.Silenced)
	}
	tables := net.Nodes[0].Router.Tables()
	if len(tables.Links) != 1 || tables.Links[0].Status != olsr.Heard || !slices.Equal(tables.Silent, []int{0}) {
		t.Errorf("links of the silent node: %+v", tables.Links)
	}
	if routes := net.Nodes[5].Router.Routes(); len(routes) != 4 {
		t.Errorf("the others have %d routes, not 4", len(routes))
	}
	net.Nodes[0].Router.Transmit(net.Now, 0, true)
	net.Tick(0)
	t.Logf("heard again after %v", net.converge(t, time.Minute))
}

// LeastMTU checks that routers find all routes with packets of that many bytes.
func LeastMTU(t *testing.T, bytes int, base olsr.Config, make Maker) {
	net, err := NewWithTimes(onOne(20), func(int) olsr.Interface { return olsr.Interface{MTU: bytes} }, 9, base, make)
	if err != nil {
		t.Fatal(err)
	}
	net.Random(9, 8)
	net.converge(t, 2*time.Minute)
	net.Run(time.Minute)
	if wrong := net.FirstDifference(); wrong != "" {
		t.Errorf("once converged: %s", wrong)
	}
}

// SeveralInterfaces checks one routing domain over two radio networks, with some nodes on both.
func SeveralInterfaces(t *testing.T, base olsr.Config, make Maker) {
	for seed := range int64(20) {
		r := rand.New(rand.NewSource(seed))
		media := [][]int{{0, 1}}
		for range 3 + r.Intn(20) {
			media = append(media, [][]int{{0}, {1}, {0, 1}}[r.Intn(3)])
		}
		net, err := NewOn(media, seed, base, make)
		if err != nil {
			t.Fatal(err)
		}
		net.Random(seed, 7)
		net.converge(t, 3*time.Minute)
		net.Run(20 * time.Second)
		if wrong := net.FirstDifference(); wrong != "" {
			t.Fatalf("topology %d, once converged: %s", seed, wrong)
		}
	}
}
