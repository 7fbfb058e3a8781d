package core

import (
	"cmp"
	"net/netip"
)

// Index numbers addresses, so that the graph is of slices.
type Index struct {
	of    map[netip.Addr]int32
	Addrs []netip.Addr
}

// MaxAddresses is how many addresses a router knows at most. Beyond it forgets all, to learn anew those that are still there.
const MaxAddresses = 1 << 14

// Of returns an address's number, a new one for a new address.
func (x *Index) Of(a netip.Addr) int32 {
	if i, ok := x.of[a]; ok {
		return i
	}
	if x.of == nil {
		x.of = map[netip.Addr]int32{}
	}
	i := int32(len(x.Addrs))
	x.of[a] = i
	x.Addrs = append(x.Addrs, a)
	return i
}

// Known is the number of an address that has one.
func (x *Index) Known(a netip.Addr) (int32, bool) {
	i, ok := x.of[a]
	return i, ok
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

// before orders what waits: by metric, then hops, then first edge. Routes thus follow from the topology alone, if first edges
// are in an order that does.
func (a waiting) before(b waiting) bool {
	return cmp.Or(cmp.Compare(a.metric, b.metric), cmp.Compare(a.hops, b.hops), cmp.Compare(a.first, b.first), cmp.Compare(a.node, b.node)) < 0
}

// Find the paths over n nodes that begin with one of the first edges, by Dijkstra's algorithm; edges gives those out of a node.
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

// reach notes a way to a node if it is better than the one known.
func (p *Paths) reach(w waiting) {
	to := &p.To[w.node]
	if to.done || to.First >= 0 && !w.before(waiting{metric: to.Metric, hops: to.Hops, first: to.First, node: w.node}) {
		return
	}
	*to = Path{First: w.first, Hops: w.hops, Metric: w.metric}
	p.push(w)
}

func (p *Paths) push(w waiting) {
	p.heap = append(p.heap, w)
	for i := len(p.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !p.heap[i].before(p.heap[parent]) {
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
			if p.heap[child].before(p.heap[least]) {
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
