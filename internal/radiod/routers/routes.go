package routers

import (
	"cmp"
	"slices"

	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Counters of all attachments that route.
func (r *Routers) Counters() map[membership.Key]*figures.Routing {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[membership.Key]*figures.Routing{}
	for key, d := range r.domains {
		if d.instance == nil || !isBuiltIn(key) {
			continue
		}
		counters := make([]*figures.Routing, len(d.attachments))
		for i, a := range d.attachments {
			counters[i] = &figures.Routing{Counters: d.instance.Counters(i)}
			all[a.Key()] = counters[i]
		}
		r.scratch = d.instance.AppendRoutes(r.scratch[:0])
		for i := range r.scratch {
			x := &r.scratch[i]
			if x.Topology > 0 {
				break // they are ordered by topology
			}
			c := counters[x.Interface]
			c.Routes++
			if x.Hops == 1 && x.Destination.Addr() == x.NextHop {
				c.Neighbours++
			}
		}
	}
	return all
}

// isBuiltIn reports whether radiod's own routers find the domain's routes, and so know them and count packets.
func isBuiltIn(k figures.Domain) bool {
	return k.Protocol == v1alpha1.RoutingOLSRv2 || k.Protocol == v1alpha1.RoutingOLSRv1
}

// Routes returns the routes of all nodes with built-in routing, sorted by node.
func (r *Routers) Routes() (all []figures.Routes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, d := range r.domains {
		if d.instance == nil || !isBuiltIn(key) {
			continue
		}
		n := figures.Routes{RunUID: d.attachments[0].RunUID, Node: d.attachments[0].Member.Node, Domain: key, Finder: d.instance}
		for _, a := range d.attachments {
			n.Networks = append(n.Networks, a.Network)
		}
		all = append(all, n)
		for k, t := range d.config.Topologies {
			n.Topology, n.Number = t.Name, 1+k
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b figures.Routes) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Domain.Protocol, b.Domain.Protocol), cmp.Compare(a.Number, b.Number))
	})
	return all
}
