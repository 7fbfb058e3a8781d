package core

import (
	"math/rand"
	"net/netip"
	"slices"
	"testing"
	"time"
)

func TestASequenceNumberIsFreshOnce(t *testing.T) {
	for name, c := range map[string]struct {
		numbers []uint16
		fresh   []bool
	}{
		"in order":               {[]uint16{1, 2, 3, 2, 3}, []bool{true, true, true, false, false}},
		"out of order":           {[]uint16{10, 7, 10, 7, 8}, []bool{true, true, false, false, true}},
		"over the wrap":          {[]uint16{65535, 0, 65535, 0, 65534, 1}, []bool{true, true, false, false, true, true}},
		"a restarted originator": {[]uint16{5000, 100, 100, 101}, []bool{true, true, false, true}},
		"a gap of a window":      {[]uint16{0, 63, 0, 127, 63}, []bool{true, true, false, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			var w Window
			var got []bool
			for _, n := range c.numbers {
				there := w.Has(n, time.Hour, time.Minute)
				fresh := w.Add(n, time.Hour, time.Minute)
				if there == fresh {
					t.Errorf("%d: there is %v, fresh is %v", n, there, fresh)
				}
				got = append(got, fresh)
			}
			if !slices.Equal(got, c.fresh) {
				t.Errorf("%v, not %v", got, c.fresh)
			}
		})
	}
	var w Window
	w.Add(5, time.Hour, time.Minute)
	if late := time.Hour + 2*time.Minute; w.Has(5, late, time.Minute) || !w.Add(5, late, time.Minute) {
		t.Error("a number was held longer than the hold time")
	}
}

func TestAQueueSendsWhatWaitsTogether(t *testing.T) {
	var q Queue
	q.Add(9, []byte("aaaa"))
	q.Add(5, []byte("bbbb"))
	q.Add(7, []byte("cc"))
	q.Add(8, []byte("ddddddddddddd"))
	if due, ok := q.Due(); !ok || due != 5 {
		t.Errorf("due at %v", due)
	}
	var sizes []int
	q.Flush(10, func(m [][]byte) { sizes = append(sizes, len(m)) })
	if _, waiting := q.Due(); waiting || !slices.Equal(sizes, []int{3, 1}) {
		t.Errorf("packets of %v messages", sizes)
	}
	for i := 0; q.Add(1, nil); i++ {
		if i > queueLimit {
			t.Fatal("the queue has no limit")
		}
	}
}

func TestMPRsReachEveryTargetAtItsLeastDistance(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	chosenInAll, candidatesInAll := 0, 0
	for range 2000 {
		candidates := make([]Candidate, 1+r.Intn(12))
		for i := range candidates {
			candidates[i] = Candidate{Willingness: []int{0, 3, 7, 7, 7, 15}[r.Intn(6)], Distance: uint32(1 + r.Intn(4))}
		}
		targets := make([]Target, r.Intn(30))
		for i := range targets {
			if r.Intn(4) == 0 {
				targets[i].Direct = uint32(1 + r.Intn(6))
			}
			for c := range candidates {
				if r.Intn(4) == 0 {
					targets[i].Reaches = append(targets[i].Reaches, Reach{c, uint32(1 + r.Intn(4))})
				}
			}
		}
		chosen := Cover(candidates, targets, 15)
		distance := func(t Target, allowed func(int) bool) uint32 {
			least := t.Direct
			for _, reach := range t.Reaches {
				d := candidates[reach.Candidate].Distance + reach.Distance
				if allowed(reach.Candidate) && (least == 0 || d < least) {
					least = d
				}
			}
			return least
		}
		for i, target := range targets {
			want := distance(target, func(c int) bool { return candidates[c].Willingness > 0 })
			if got := distance(target, func(c int) bool { return chosen[c] }); got != want {
				t.Fatalf("target %d at distance %d over MPRs, at %d over all", i, got, want)
			}
		}
		for i, c := range candidates {
			if c.Willingness == 0 && chosen[i] || c.Willingness == 15 && !chosen[i] {
				t.Fatalf("candidate of willingness %d: chosen %v", c.Willingness, chosen[i])
			}
			candidatesInAll++
			if chosen[i] {
				chosenInAll++
			}
		}
	}
	if chosenInAll*10 > candidatesInAll*8 {
		t.Errorf("%d of %d neighbours are MPRs", chosenInAll, candidatesInAll)
	}
}

func TestPathsAreTheShortest(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	var p Paths
	for range 500 {
		n := 2 + r.Intn(20)
		edges := make([][]Edge, n)
		dist := make([][]uint32, n)
		const none = 1 << 30
		for i := range edges {
			dist[i] = slices.Repeat([]uint32{none}, n)
			for j := range n {
				if i != j && r.Intn(4) == 0 {
					e := Edge{int32(j), uint32(1 + r.Intn(9))}
					edges[i] = append(edges[i], e)
					dist[i][j] = e.Metric
				}
			}
		}
		for k := range n {
			for i := range n {
				for j := range n {
					dist[i][j] = min(dist[i][j], dist[i][k]+dist[k][j])
				}
			}
		}
		p.Find(n, edges[0], func(node int32, visit func(Edge)) {
			for _, e := range edges[node] {
				visit(e)
			}
		})
		for j := 1; j < n; j++ {
			if got := p.To[j]; got.First < 0 != (dist[0][j] == none) || got.First >= 0 && got.Metric != dist[0][j] {
				t.Fatalf("node %d: %+v, not at %d", j, got, dist[0][j])
			}
		}
	}
}

func TestAddressesOfBothFamiliesAreFoundAgainHoweverMany(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	var x Index
	numbers := map[netip.Addr]int32{}
	for range 5000 {
		// Few values for each byte, so that many come again and neighbours collide in the table.
		four := netip.AddrFrom4([4]byte{10, byte(random.Intn(3)), byte(random.Intn(20)), byte(random.Intn(40))})
		six := netip.AddrFrom16([16]byte{0xfd, 15: byte(random.Intn(200))})
		mapped := netip.AddrFrom16(four.As16())
		for _, a := range []netip.Addr{four, six, mapped} {
			want, there := numbers[a]
			if got, known := x.Known(a); known != there || known && got != want {
				t.Fatalf("%v has number %d, known %v; want %d, %v", a, got, known, want, there)
			}
			numbers[a] = x.Of(a)
			if n := numbers[a]; there && n != want || x.Addrs[n] != a {
				t.Fatalf("%v has number %d, which is of %v; want %d", a, n, x.Addrs[n], want)
			}
		}
	}
	if len(x.Addrs) != len(numbers) {
		t.Errorf("%d numbers for %d addresses", len(x.Addrs), len(numbers))
	}
}

func TestAddressesKeepTheirNumbers(t *testing.T) {
	var x Index
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	if x.Of(a) != 0 || x.Of(b) != 1 || x.Of(a) != 0 || x.Addrs[1] != b {
		t.Error("numbers change")
	}
	if _, known := x.Known(netip.MustParseAddr("10.0.0.3")); known {
		t.Error("an address that nobody named has a number")
	}
}
