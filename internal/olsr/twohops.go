package olsr

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"vignette.dev/vignette/internal/olsr/internal/core"
)

// twoHop is a 2-Hop Tuple (RFC 6130 section 7.2, RFC 7181 section 8.2).
type twoHop struct {
	address             netip.Addr
	until               time.Duration
	inMetric, outMetric metrics
	// number of the address in the router's index of that age.
	number int32
	age    uint32
}

// twoHops are a link's 2-Hop Tuples by address, in a slice because iteration is far more frequent than
// changes.
type twoHops []twoHop

func (t twoHops) find(a netip.Addr) (place int, found bool) {
	return slices.BinarySearchFunc(t, a, func(two twoHop, a netip.Addr) int { return two.address.Compare(a) })
}

// of returns that of an address, nil if there is none; valid until one is added or removed.
func (t twoHops) of(a netip.Addr) *twoHop {
	if place, found := t.find(a); found {
		return &t[place]
	}
	return nil
}

// add adds one for an address that has none.
func (t *twoHops) add(a netip.Addr) *twoHop {
	place, _ := t.find(a)
	*t = slices.Insert(*t, place, twoHop{address: a})
	return &(*t)[place]
}

func (t *twoHops) remove(a netip.Addr) {
	if place, found := t.find(a); found {
		*t = slices.Delete(*t, place, place+1)
	}
}

// numberOf a 2-hop neighbour in the index, for which there must be room.
func (r *router) numberOf(two *twoHop) int32 {
	if two.age != r.indexAge {
		two.number, two.age = r.index.Of(two.address), r.indexAge
	}
	return two.number
}

// numberTwoHops adds all to the index, which must have room, so that it does not grow while numbers are in
// use.
func (r *router) numberTwoHops() {
	for _, i := range r.ifaces {
		for _, l := range i.links.order {
			for k := range l.twoHops {
				r.numberOf(&l.twoHops[k])
			}
		}
	}
}

// coverage has the targets of MPRs, by the numbers of addresses. It keeps its memory between choices.
type coverage struct {
	positions []int32 // among targets + 1, by number; 0 for none
	targets   []core.Target
}

// coverages are shared by all routers of the process, because a choice takes only moments.
var coverages = sync.Pool{New: func() any { return &coverage{} }}

func newCoverage(numbers int) *coverage {
	c := coverages.Get().(*coverage)
	c.positions = append(c.positions[:0], make([]int32, numbers)...)
	c.targets = c.targets[:0]
	return c
}

func (c *coverage) reach(number int32, reach core.Reach) {
	place := c.positions[number]
	if place == 0 {
		place = c.add()
		c.positions[number] = place
	}
	t := &c.targets[place-1]
	t.Reaches = append(t.Reaches, reach)
}

// add adds a target that no candidate reaches yet.
func (c *coverage) add() (place int32) {
	n := len(c.targets)
	if n == cap(c.targets) {
		c.targets = append(c.targets, core.Target{})
	} else {
		c.targets = c.targets[:n+1]
		c.targets[n] = core.Target{Reaches: c.targets[n].Reaches[:0]}
	}
	return int32(n + 1)
}

// direct records that an address, if it is a target, is also a neighbour.
func (c *coverage) direct(number int32, metric uint32) {
	if place := c.positions[number]; place > 0 {
		c.targets[place-1].Direct = metric
	}
}

// choose chooses the MPRs among candidates; the coverage must not be used afterwards.
func (c *coverage) choose(candidates []core.Candidate) []bool {
	defer coverages.Put(c)
	return core.Cover(candidates, c.targets, WillAlways)
}
