package olsr

import (
	"net/netip"
	"slices"
	"time"
)

func (r *router) Tables() Tables {
	t := Tables{Originator: r.origin, ANSN: r.ansn, SequenceNumber: r.seq}
	for _, i := range r.ifaces {
		if i.silent {
			t.Silent = append(t.Silent, i.number)
		}
		for _, l := range i.links.order {
			r.linkTables(r.last, &t, l)
		}
	}
	for _, n := range r.sortedNeighbours() {
		if n.routingMPR[0] {
			t.RoutingMPRs = append(t.RoutingMPRs, n.origin)
		}
		if n.selector[0] {
			t.RoutingSelectors = append(t.RoutingSelectors, n.origin)
		}
	}
	for _, all := range []*[]netip.Addr{&t.FloodingMPRs, &t.FloodingSelectors} {
		slices.SortFunc(*all, netip.Addr.Compare)
		*all = slices.Compact(*all)
	}
	r.topologyTables(&t)
	return t
}

func (r *router) linkTables(now time.Duration, t *Tables, l *link) {
	t.Links = append(t.Links, Link{
		Interface: l.iface.number, Neighbour: l.address, Originator: l.neighbour.origin, Status: l.status(now),
		InMetric: l.inMetric[0], OutMetric: l.outMetric[0], Expires: r.clock.Time(l.until),
	})
	if l.floodingMPR {
		t.FloodingMPRs = append(t.FloodingMPRs, l.neighbour.origin)
	}
	if l.selector {
		t.FloodingSelectors = append(t.FloodingSelectors, l.neighbour.origin)
	}
	for _, two := range l.twoHops {
		t.TwoHops = append(t.TwoHops, TwoHop{
			Interface: l.iface.number, Neighbour: l.address, Address: two.address, Metric: two.outMetric[0], Expires: r.clock.Time(two.until),
		})
	}
}

func (r *router) topologyTables(t *Tables) {
	for i, o := range r.topology {
		if o == nil {
			continue
		}
		for _, e := range o.edges {
			if e.metric[0] == 0 {
				continue // of other topologies only
			}
			t.Topology = append(t.Topology, Edge{From: r.index.Addrs[i], To: r.index.Addrs[e.to], Metric: e.metric[0], Expires: r.clock.Time(e.until)})
		}
		for _, n := range o.networks {
			t.Attached = append(t.Attached, AttachedNetwork{
				Gateway: r.index.Addrs[i], Prefix: n.prefix, Hops: int(n.hops[0]), Metric: n.metric[0], Expires: r.clock.Time(n.until),
			})
		}
	}
	SortTables(t)
}
