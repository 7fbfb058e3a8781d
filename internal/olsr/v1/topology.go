package v1

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/olsr/internal/core"
)

var errKey = errors.New("a link's key is an interface and an address")

// receiveTC processes a TC (RFC 3626 section 9.5).
func (r *router) receiveTC(now time.Duration, o *origin, m *message) error {
	ansn, addresses, err := readTC(m.Body)
	if err != nil {
		return fmt.Errorf("TC of %v: %w", m.Originator, err)
	}
	if o.End > now && core.Newer(o.ANSN, ansn) {
		return nil
	}
	if len(addresses) > maxEdges || r.allEdges+len(addresses) > maxAllEdges {
		r.counters.Overflows += uint64(len(addresses))
		return nil
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	addresses = slices.Compact(addresses)
	if o.End > now && ansn == o.ANSN {
		// Several TCs of one ANSN each have a part (RFC 3626 section 9.3).
		for _, a := range o.Edges {
			if _, there := slices.BinarySearchFunc(addresses, a, netip.Addr.Compare); !there {
				addresses = append(addresses, a)
			}
		}
		slices.SortFunc(addresses, netip.Addr.Compare)
	}
	if !slices.Equal(addresses, o.Edges) {
		r.allEdges += len(addresses) - len(o.Edges)
		o.Edges = addresses
		r.dirty = true
	}
	o.ANSN, o.End = ansn, now+m.Validity
	r.expireBy(o.End)
	return nil
}

// receiveMID processes a MID (RFC 3626 section 5.4).
func (r *router) receiveMID(now time.Duration, m *message) error {
	addresses, err := readAddresses(m.Body)
	if err != nil {
		return fmt.Errorf("MID of %v: %w", m.Originator, err)
	}
	for _, a := range addresses {
		if a != m.Originator && !r.own[a] {
			r.alias(now, a, m.Originator, m.Validity)
		}
	}
	return nil
}

// alias records that an interface belongs to the node with that main address.
func (r *router) alias(now time.Duration, a, main netip.Addr, validity time.Duration) {
	known := r.Mains[a]
	if known == nil {
		if len(r.Mains) >= maxOrigins {
			r.counters.Overflows++
			return
		}
		known = &alias{}
		r.Mains[a] = known
	}
	if known.Main != main {
		known.Main = main
		r.dirty, r.mprDirty = true, true
		r.rename(a, main)
	}
	known.End = max(known.End, now+validity)
	r.expireBy(known.End)
}

// rename moves what was learned of an interface, taken for a node, to its node.
func (r *router) rename(a, main netip.Addr) {
	for _, by := range core.Sorted(r.Neighbours) {
		n := r.Neighbours[by]
		end, there := n.TwoHops[a]
		if !there {
			continue
		}
		delete(n.TwoHops, a)
		r.twoHops--
		if _, known := n.TwoHops[main]; !known && by != main {
			r.twoHops++
			n.TwoHops[main] = end
		}
	}
}

// receiveHNA processes an HNA (RFC 3626 section 12.5).
func (r *router) receiveHNA(now time.Duration, o *origin, m *message) error {
	networks, err := readHNA(m.Body)
	if err != nil {
		return fmt.Errorf("HNA of %v: %w", m.Originator, err)
	}
	for _, p := range networks {
		if _, known := o.Networks[p]; !known {
			if r.allEdges >= maxAllEdges || len(o.Networks) >= maxEdges {
				r.counters.Overflows++
				continue
			}
			if o.Networks == nil {
				o.Networks = map[netip.Prefix]time.Duration{}
			}
			r.allEdges++
			r.dirty = true
		}
		o.Networks[p] = now + m.Validity
	}
	r.expireBy(now + m.Validity)
	return nil
}

// sendTC generates TCs that advertise the MPR selectors (RFC 3626 section 9.3). An empty one is repeated
// until the last content has expired everywhere.
func (r *router) sendTC(now time.Duration, s *schedule) {
	var selectors []netip.Addr
	for _, main := range core.Sorted(r.Neighbours) {
		if r.Neighbours[main].Selector > now {
			selectors = append(selectors, main)
		}
	}
	if !slices.Equal(selectors, r.Advertised) {
		r.ANSN++
		r.Advertised = selectors
		if len(selectors) == 0 {
			r.EmptyTCs = now + r.c.LongestTCValidity()
		}
	}
	if len(selectors) == 0 && now < r.EmptyTCs {
		r.flood(now, s, typeTC, appendTC(nil, r.ANSN, nil))
	}
	for chunk := range slices.Chunk(selectors, (r.leastMTU()-packetHeader-messageHeader-4)/addressSize) {
		r.flood(now, s, typeTC, appendTC(nil, r.ANSN, chunk))
	}
}

// sweep removes expired entries, and schedules the next search.
func (r *router) sweep(now time.Duration) {
	r.nextSweep = core.Forever
	for _, key := range r.sortedLinks() {
		l := r.Links[key]
		if l.End <= now {
			delete(r.Links, key)
			r.dirty = true
		}
		for _, at := range []time.Duration{l.Symmetric, l.Asymmetric, l.End} {
			r.expireBy(at)
		}
	}
	linked := map[netip.Addr]bool{}
	for _, l := range r.Links {
		linked[l.Main] = true
	}
	for _, main := range core.Sorted(r.Neighbours) {
		r.updateStatus(now, main)
		r.sweepNeighbour(now, main, linked[main])
	}
	for a, m := range r.Mains {
		if r.expired(now, m.End) {
			delete(r.Mains, a)
		}
	}
	for a, o := range r.Origins {
		r.sweepOrigin(now, o)
		if o.End <= now && len(o.Networks) == 0 && now-o.Processed.At > duplicateHold {
			delete(r.Origins, a)
		}
	}
	r.nextSweep = max(r.nextSweep, now+sweepInterval)
}

// expired reports whether an end has come. If so routes change, else the next search is scheduled.
func (r *router) expired(now, end time.Duration) bool {
	if end > now {
		r.expireBy(end)
		return false
	}
	r.dirty, r.mprDirty = true, true
	return true
}

func (r *router) sweepNeighbour(now time.Duration, main netip.Addr, linked bool) {
	n := r.Neighbours[main]
	for z, end := range n.TwoHops {
		if r.expired(now, end) {
			delete(n.TwoHops, z)
			r.twoHops--
		}
	}
	r.expireBy(n.Selector)
	if !linked {
		r.twoHops -= len(n.TwoHops)
		delete(r.Neighbours, main)
		r.dirty, r.mprDirty = true, true
	}
}

func (r *router) sweepOrigin(now time.Duration, o *origin) {
	if len(o.Edges) > 0 && r.expired(now, o.End) {
		r.allEdges -= len(o.Edges)
		o.Edges = nil
	}
	for p, end := range o.Networks {
		if r.expired(now, end) {
			delete(o.Networks, p)
			r.allEdges--
		}
	}
	r.expireBy(o.Processed.At + duplicateHold + 1)
}

// calculate the routing table (RFC 3626 section 10, 12.6 for networks, 5 for further interfaces).
func (r *router) calculate(now time.Duration) {
	r.dirty = false
	r.counters.RouteCalculations++
	if len(r.index.Addrs)+len(r.Neighbours)+r.twoHops+len(r.Origins) > core.MaxAddresses {
		r.index = core.Index{} // it may have addresses that do not exist any more
	}
	first, via := r.firstEdges(now)
	adjacent := make(map[int32][]core.Edge, len(r.Origins)+len(r.Neighbours))
	join := func(from, to netip.Addr) {
		if i := r.index.Of(from); !r.own[to] {
			adjacent[i] = append(adjacent[i], core.Edge{To: r.index.Of(to), Metric: 1})
		}
	}
	for main, n := range r.Neighbours {
		for z := range n.TwoHops {
			if n.Symmetric && n.Willingness != 0 {
				join(main, z)
			}
		}
	}
	for from, o := range r.Origins {
		for _, to := range o.Edges {
			if o.End > now {
				join(from, r.main(to))
			}
		}
	}
	r.paths.Find(len(r.index.Addrs), first, func(node int32, visit func(core.Edge)) {
		for _, e := range adjacent[node] {
			visit(e)
		}
	})
	r.replace(r.routesOver(now, via))
}

// firstEdges lead to symmetric neighbours' main addresses, each over its first symmetric link.
func (r *router) firstEdges(now time.Duration) (first []core.Edge, via []linkKey) {
	known := map[netip.Addr]bool{}
	for _, key := range r.sortedLinks() {
		l := r.Links[key]
		if l.status(now) == olsr.Symmetric && !known[l.Main] && r.Neighbours[l.Main] != nil {
			known[l.Main] = true
			first, via = append(first, core.Edge{To: r.index.Of(l.Main), Metric: 1}), append(via, key)
		}
	}
	return first, via
}

func (r *router) routesOver(now time.Duration, via []linkKey) []olsr.Route {
	routes := make([]olsr.Route, 0, len(r.routes)+8)
	add := func(to netip.Prefix, node netip.Addr, further int) {
		i, known := r.index.Known(node)
		if !known || int(i) >= len(r.paths.To) || r.paths.To[i].First < 0 || r.own[to.Addr()] {
			return
		}
		path := r.paths.To[i]
		key := via[path.First]
		hops := int(path.Hops) + further
		routes = append(routes, olsr.Route{Destination: to, NextHop: key.Address, Interface: key.Interface, Hops: hops, Metric: uint32(hops)})
	}
	for _, a := range r.index.Addrs {
		if r.Mains[a] == nil {
			add(netip.PrefixFrom(a, 32), a, 0)
		}
	}
	for a, m := range r.Mains {
		add(netip.PrefixFrom(a, 32), m.Main, 0)
	}
	for gateway, o := range r.Origins {
		for p, end := range o.Networks {
			if end > now && !slices.ContainsFunc(r.c.Attached, func(a olsr.Attached) bool { return a.Prefix == p }) {
				add(p, gateway, 1)
			}
		}
	}
	return routes
}

// replace replaces the routes; of several to one destination it takes the nearest.
func (r *router) replace(routes []olsr.Route) {
	slices.SortFunc(routes, func(a, b olsr.Route) int {
		return cmp.Or(a.Destination.Addr().Compare(b.Destination.Addr()), cmp.Compare(a.Destination.Bits(), b.Destination.Bits()),
			cmp.Compare(a.Hops, b.Hops), a.NextHop.Compare(b.NextHop))
	})
	routes = slices.CompactFunc(routes, func(a, b olsr.Route) bool { return a.Destination == b.Destination })
	if slices.Equal(routes, r.routes) {
		return
	}
	r.routes = routes
	r.generation++
	r.counters.RouteChanges++
}
