package olsr

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"vignette.dev/vignette/internal/olsr/internal/core"
)

// calculate the Routing Set of each topology (RFC 7181 section 17 and appendix C).
func (r *router) calculate(now time.Duration) {
	r.dirty = false
	r.counters.RouteCalculations++
	r.reserve(2*len(r.neighbours) + r.twoHops)
	r.numberTwoHops()
	routes := r.unsorted[:0]
	for t := range r.topologies {
		routes = r.calculateTopology(now, t, routes)
	}
	r.replace(routes)
}

// calculateTopology finds a topology's shortest paths over links to symmetric neighbours, the 2-Hop Set and the Router
// Topology Set; then attached networks. It appends the routes.
func (r *router) calculateTopology(now time.Duration, t int, routes []Route) []Route {
	first, via := r.firstEdges(t)
	count := len(r.index.Addrs)
	r.secondEdges(via, t)
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
			if e.until > now && e.metric[t] != 0 {
				routable[e.to] = routable[e.to] || e.routable
				visit(core.Edge{To: e.to, Metric: e.metric[t]})
			}
		}
	})
	begin := len(routes)
	for i, path := range r.paths.To {
		if a := r.index.Addrs[i]; path.First >= 0 && routable[i] && !r.own[a] {
			l := via[path.First].best[t]
			routes = append(routes, Route{Destination: r.whole(a), NextHop: l.address, Interface: l.iface.number, Topology: t, Hops: int(path.Hops), Metric: path.Metric})
		}
	}
	return append(routes, r.attachedRoutes(now, t, routes[begin:], via)...)
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
func (r *router) firstEdges(t int) (first []core.Edge, via []*neighbour) {
	for _, n := range r.sortedNeighbours() {
		if n.best[t] == nil {
			continue
		}
		for _, a := range n.addresses {
			first, via = append(first, core.Edge{To: r.index.Of(a), Metric: n.outMetric[t]}), append(via, n)
		}
		if !slices.Contains(n.addresses, n.origin) {
			first, via = append(first, core.Edge{To: r.index.Of(n.origin), Metric: n.outMetric[t]}), append(via, n)
		}
	}
	return first, via
}

// secondEdges fills extra: the edges from neighbours, by the number of their originator, to the addresses in
// their 2-Hop Set.
func (r *router) secondEdges(via []*neighbour, t int) {
	r.extra = append(r.extra[:0], make([][]core.Edge, len(r.index.Addrs))...)
	r.extraEdges = r.extraEdges[:0]
	for i, n := range via {
		if i > 0 && via[i-1] == n {
			continue
		}
		begin := len(r.extraEdges)
		for _, l := range n.links {
			if !l.usable(t) {
				continue
			}
			for k := range l.twoHops {
				if two := &l.twoHops[k]; two.outMetric[t] != 0 {
					r.extraEdges = append(r.extraEdges, core.Edge{To: r.numberOf(two), Metric: two.outMetric[t]})
				}
			}
		}
		r.extra[r.index.Of(n.origin)] = r.extraEdges[begin:]
	}
}

// attachedRoutes are a topology's routes to networks by the nearest gateway (RFC 7181 appendix C.5), beside its routes to
// nodes.
func (r *router) attachedRoutes(now time.Duration, t int, toNodes []Route, via []*neighbour) (routes []Route) {
	best := map[netip.Prefix]Route{}
	for i, origin := range r.topology {
		if origin == nil || len(origin.networks) == 0 || r.paths.To[i].First < 0 {
			continue
		}
		path := r.paths.To[i]
		l := via[path.First].best[t]
		for _, n := range origin.networks {
			if n.until <= now || n.metric[t] == 0 || slices.ContainsFunc(r.c.Attached, func(a Attached) bool { return a.Prefix == n.prefix }) {
				continue
			}
			route := Route{Destination: n.prefix, NextHop: l.address, Interface: l.iface.number, Topology: t,
				Hops: int(path.Hops) + int(n.hops[t]), Metric: path.Metric + n.metric[t]}
			known, there := best[n.prefix]
			if !there || cmp.Or(cmp.Compare(route.Metric, known.Metric), cmp.Compare(route.Hops, known.Hops), route.NextHop.Compare(known.NextHop)) < 0 {
				best[n.prefix] = route
			}
		}
	}
	// An attached network of a single address may be a node's, which is then nearer by itself.
	for _, route := range toNodes {
		delete(best, route.Destination)
	}
	for _, route := range best {
		routes = append(routes, route)
	}
	return routes
}
