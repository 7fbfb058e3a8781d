package core

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// Index numbers addresses, so that the graph consists of slices. IPv4 addresses are in a compact hash table:
// hundreds of routers look up addresses of every message, mostly in memory outside the caches.
type Index struct {
	Addrs []netip.Addr
	four  []indexSlot // by linear probing; its length is a power of 2, and at most half of it is in use
	other map[netip.Addr]int32
}

type indexSlot struct {
	address uint32
	after   int32 // the number + 1; 0 is vacant
}

// minSlots of a table that is not empty.
const minSlots = 16

// MaxAddresses is the most addresses that a router knows. Beyond it the router forgets all, and learns the
// existing ones again.
const MaxAddresses = 1 << 14

// Of returns an address's number, a new one for a new address.
func (x *Index) Of(a netip.Addr) int32 {
	if i, known := x.Known(a); known {
		return i
	}
	i := int32(len(x.Addrs))
	x.Addrs = append(x.Addrs, a)
	switch {
	case a.Is4():
		x.insert(a, i)
	case x.other == nil:
		x.other = map[netip.Addr]int32{a: i}
	default:
		x.other[a] = i
	}
	return i
}

// Known is the number of an address that has one.
func (x *Index) Known(a netip.Addr) (i int32, known bool) {
	if !a.Is4() {
		i, known = x.other[a]
		return i, known
	}
	if len(x.four) == 0 {
		return 0, false
	}
	slot := x.slot(bits4(a))
	return slot.after - 1, slot.after != 0
}

// slot returns an IPv4 address's slot, or the vacant one for it.
func (x *Index) slot(address uint32) *indexSlot {
	// 2^32 over the golden ratio spreads neighbouring addresses (Knuth, The Art of Computer Programming, 6.4).
	first := address * 0x9e3779b1 >> (32 - bits.TrailingZeros(uint(len(x.four))))
	for i := first; ; i++ {
		slot := &x.four[i&uint32(len(x.four)-1)]
		if slot.after == 0 || slot.address == address {
			return slot
		}
	}
}

// insert an IPv4 address that has no slot yet.
func (x *Index) insert(a netip.Addr, number int32) {
	if 2*len(x.Addrs) > len(x.four) {
		x.four = make([]indexSlot, max(2*len(x.four), minSlots))
		for before, known := range x.Addrs[:number] {
			if known.Is4() {
				x.put(known, int32(before))
			}
		}
	}
	x.put(a, number)
}

func (x *Index) put(a netip.Addr, number int32) {
	address := bits4(a)
	*x.slot(address) = indexSlot{address, number + 1}
}

func bits4(a netip.Addr) uint32 {
	bytes := a.As4()
	return binary.BigEndian.Uint32(bytes[:])
}

// Edge of the graph, out of a node.
type Edge struct {
	To     int32
	Metric uint32
}

// Path to a node. First is the index of the edge it begins with among those given to Find, -1 if there is none.
type Path struct {
	First  int32
	Hops   int32
	Metric uint32
	done   bool
}

// Paths finds shortest paths; it keeps its memory between calculations.
type Paths struct {
	To   []Path
	heap []waiting
}

type waiting struct {
	metric      uint32
	hops        int32
	first, node int32
}

// before orders waiting nodes by metric, then hops, then first edge. So routes depend on the topology alone,
// if the order of first edges does.
func (a *waiting) before(b *waiting) bool {
	switch {
	case a.metric != b.metric:
		return a.metric < b.metric
	case a.hops != b.hops:
		return a.hops < b.hops
	case a.first != b.first:
		return a.first < b.first
	}
	return a.node < b.node
}

// Find finds the paths over n nodes that begin with one of the first edges, by Dijkstra's algorithm. edges
// visits a node's edges.
func (p *Paths) Find(n int, first []Edge, edges func(node int32, visit func(Edge))) {
	p.To = append(p.To[:0], make([]Path, n)...)
	for i := range p.To {
		p.To[i].First = -1
	}
	p.heap = p.heap[:0]
	for i, e := range first {
		p.reach(waiting{metric: e.Metric, hops: 1, first: int32(i), node: e.To})
	}
	var at waiting
	visit := func(e Edge) {
		p.reach(waiting{metric: at.metric + e.Metric, hops: at.hops + 1, first: at.first, node: e.To})
	}
	for len(p.heap) > 0 {
		at = p.pop()
		if to := &p.To[at.node]; !to.done {
			to.done = true
			edges(at.node, visit)
		}
	}
}

// reach records a path to a node if it is better than the known one.
func (p *Paths) reach(w waiting) {
	to := &p.To[w.node]
	if to.done || to.First >= 0 && !w.before(&waiting{metric: to.Metric, hops: to.Hops, first: to.First, node: w.node}) {
		return
	}
	*to = Path{First: w.first, Hops: w.hops, Metric: w.metric}
	p.push(w)
}

func (p *Paths) push(w waiting) {
	p.heap = append(p.heap, w)
	for i := len(p.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !p.heap[i].before(&p.heap[parent]) {
			return
		}
		p.heap[i], p.heap[parent] = p.heap[parent], p.heap[i]
		i = parent
	}
}

func (p *Paths) pop() waiting {
	top := p.heap[0]
	last := len(p.heap) - 1
	p.heap[0] = p.heap[last]
	p.heap = p.heap[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if p.heap[child].before(&p.heap[least]) {
				least = child
			}
		}
		if least == i {
			return top
		}
		p.heap[i], p.heap[least] = p.heap[least], p.heap[i]
		i = least
	}
}
