package olsr

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"vignette.dev/vignette/internal/olsr/internal/core"
)

// calculate the Routing Set (RFC 7181 section 17 and appendix C). It finds shortest paths over links to
// symmetric neighbours, the 2-Hop Set and the Router Topology Set; then attached networks.
func (r *router) calculate(now time.Duration) {
	r.dirty = false
	r.counters.RouteCalculations++
	r.reserve(2*len(r.neighbours) + r.twoHops)
	r.numberTwoHops()
	first, via := r.firstEdges()
	count := len(r.index.Addrs)
	r.secondEdges(via)
	routable := append(r.routable[:0], make([]bool, count)...)
	r.routable = routable
	for _, e := range first {
		routable[e.To] = true
	}
	r.paths.Find(count, first, func(node int32, visit func(core.Edge)) {
		for _, e := range r.extra[node] {
			routable[e.To] = true
			visit(e)
		}
		if int(node) >= len(r.topology) || r.topology[node] == nil {
			return
		}
		for _, e := range r.topology[node].edges {
			if e.until > now {
				routable[e.To] = routable[e.To] || e.routable
				visit(e.Edge)
			}
		}
	})
	routes := r.unsorted[:0]
	for i, path := range r.paths.To {
		if a := r.index.Addrs[i]; path.First >= 0 && routable[i] && !r.own[a] {
			l := via[path.First].best
			routes = append(routes, Route{Destination: r.whole(a), NextHop: l.address, Interface: l.iface.number, Hops: int(path.Hops), Metric: path.Metric})
		}
	}
	r.replace(r.attachedRoutes(now, routes, via))
}

func (r *router) replace(routes []Route) {
	r.unsorted = routes
	slices.SortFunc(routes, func(a, b Route) int { return CompareDestinations(&a, &b) })
	if slices.Equal(routes, r.routes) {
		return
	}
	r.routes, r.unsorted = routes, r.routes
	r.generation++
	r.counters.RouteChanges++
}

// firstEdges lead to the addresses of symmetric neighbours, each over its best link.
func (r *router) firstEdges() (first []core.Edge, via []*neighbour) {
	for _, n := range r.sortedNeighbours() {
		if n.best == nil {
			continue
		}
		for _, a := range n.addresses {
			first, via = append(first, core.Edge{To: r.index.Of(a), Metric: n.outMetric}), append(via, n)
		}
		if !slices.Contains(n.addresses, n.origin) {
			first, via = append(first, core.Edge{To: r.index.Of(n.origin), Metric: n.outMetric}), append(via, n)
		}
	}
	return first, via
}

// secondEdges fills extra: the edges from neighbours, by the number of their originator, to the addresses in
// their 2-Hop Set.
func (r *router) secondEdges(via []*neighbour) {
	r.extra = append(r.extra[:0], make([][]core.Edge, len(r.index.Addrs))...)
	r.extraEdges = r.extraEdges[:0]
	for i, n := range via {
		if i > 0 && via[i-1] == n {
			continue
		}
		begin := len(r.extraEdges)
		for _, l := range n.links {
			if !l.usable() {
				continue
			}
			for k := range l.twoHops {
				if two := &l.twoHops[k]; two.outMetric != 0 {
					r.extraEdges = append(r.extraEdges, core.Edge{To: r.numberOf(two), Metric: two.outMetric})
				}
			}
		}
		r.extra[r.index.Of(n.origin)] = r.extraEdges[begin:]
	}
}

// attachedRoutes to networks by the nearest gateway (RFC 7181 appendix C.5).
func (r *router) attachedRoutes(now time.Duration, routes []Route, via []*neighbour) []Route {
	best := map[netip.Prefix]Route{}
	for i, origin := range r.topology {
		if origin == nil || len(origin.networks) == 0 || r.paths.To[i].First < 0 {
			continue
		}
		path := r.paths.To[i]
		l := via[path.First].best
		for _, n := range origin.networks {
			if n.until <= now || slices.ContainsFunc(r.c.Attached, func(a Attached) bool { return a.Prefix == n.prefix }) {
				continue
			}
			route := Route{Destination: n.prefix, NextHop: l.address, Interface: l.iface.number, Hops: int(path.Hops) + n.hops, Metric: path.Metric + n.metric}
			known, there := best[n.prefix]
			if !there || cmp.Or(cmp.Compare(route.Metric, known.Metric), cmp.Compare(route.Hops, known.Hops), route.NextHop.Compare(known.NextHop)) < 0 {
				best[n.prefix] = route
			}
		}
	}
	if len(best) == 0 {
		return routes
	}
	// An attached network of a single address may be a node's, which is then nearer by itself.
	for _, route := range routes {
		delete(best, route.Destination)
	}
	for _, route := range best {
		routes = append(routes, route)
	}
	return routes
}
