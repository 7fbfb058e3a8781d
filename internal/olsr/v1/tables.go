package v1

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/olsr/internal/core"
)

func (r *router) Tables() olsr.Tables {
	t := olsr.Tables{Originator: r.origin, ANSN: r.ANSN, SequenceNumber: r.Sequence}
	for _, i := range r.ifaces {
		if i.silent {
			t.Silent = append(t.Silent, i.number)
		}
	}
	for _, key := range r.sortedLinks() {
		l := r.Links[key]
		t.Links = append(t.Links, olsr.Link{
			Interface: key.Interface, Neighbour: key.Address, Originator: l.Main, Status: l.status(r.last), InMetric: 1, OutMetric: 1,
			Expires: r.clock.Time(l.End),
		})
		if n := r.Neighbours[l.Main]; n != nil && l.Main == r.main(key.Address) {
			for _, z := range core.Sorted(n.TwoHops) {
				t.TwoHops = append(t.TwoHops, olsr.TwoHop{Interface: key.Interface, Neighbour: key.Address, Address: z, Metric: 1, Expires: r.clock.Time(n.TwoHops[z])})
			}
		}
	}
	for _, main := range core.Sorted(r.Neighbours) {
		n := r.Neighbours[main]
		if n.MPR {
			t.FloodingMPRs, t.RoutingMPRs = append(t.FloodingMPRs, main), append(t.RoutingMPRs, main)
		}
		if n.Selector > r.last {
			t.FloodingSelectors, t.RoutingSelectors = append(t.FloodingSelectors, main), append(t.RoutingSelectors, main)
		}
	}
	for from, o := range r.Origins {
		for _, to := range o.Edges {
			t.Topology = append(t.Topology, olsr.Edge{From: from, To: to, Metric: 1, Expires: r.clock.Time(o.End)})
		}
		for p, end := range o.Networks {
			t.Attached = append(t.Attached, olsr.AttachedNetwork{Gateway: from, Prefix: p, Hops: 1, Metric: 1, Expires: r.clock.Time(end)})
		}
	}
	olsr.SortTables(&t)
	return t
}

// snapshot of a router; Moment is its own when it was taken.
type snapshot struct {
	Version    int
	Taken      time.Time
	Moment     time.Duration
	Interfaces []netip.Addr
	Packets    []uint16
	Tables     *tables
}

const snapshotVersion = 1

func (r *router) Snapshot(at time.Time) ([]byte, error) {
	s := snapshot{Version: snapshotVersion, Taken: at, Moment: r.moment(at), Tables: &r.tables}
	for _, i := range r.ifaces {
		s.Interfaces, s.Packets = append(s.Interfaces, i.Address), append(s.Packets, i.packetSeq)
	}
	return json.Marshal(s)
}

func (r *router) Restore(at time.Time, text []byte) error {
	var s snapshot
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	if err := r.fits(&s); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	now := r.moment(at)
	age := max(at.Round(0).Sub(s.Taken), 0)
	r.tables = *s.Tables
	r.shift(now - age - s.Moment)
	for n, i := range r.ifaces {
		i.packetSeq = s.Packets[n]
		i.nextHello = now + core.Jitter(r.random, i.Hello/4)
	}
	r.twoHops, r.allEdges = 0, 0
	for _, n := range r.Neighbours {
		r.twoHops += len(n.TwoHops)
	}
	for _, o := range r.Origins {
		r.allEdges += len(o.Edges) + len(o.Networks)
	}
	// Messages sent between snapshot and now must not be sent again with the same numbers.
	for _, i := range r.ifaces {
		r.Sequence += uint16(min(age/i.Hello, 1<<12)) + 1
	}
	r.Sequence += 4 * r.c.TCsWithin(age)
	r.ANSN += r.c.TCsWithin(age)
	r.dirty, r.mprDirty = true, true
	r.nextSweep = now
	for _, s := range r.schedules {
		s.nextTC, s.nextHNA = now+core.Jitter(r.random, s.Interval), now+core.Jitter(r.random, s.Interval)
	}
	return nil
}

func (r *router) fits(s *snapshot) error {
	if s.Version != snapshotVersion {
		return fmt.Errorf("version %d, not %d", s.Version, snapshotVersion)
	}
	if len(s.Interfaces) != len(r.ifaces) || len(s.Packets) != len(r.ifaces) || s.Tables == nil {
		return fmt.Errorf("of %d interfaces, not %d", len(s.Interfaces), len(r.ifaces))
	}
	for n, a := range s.Interfaces {
		if a != r.ifaces[n].Address {
			return fmt.Errorf("interface %d is %v, not %v", n, a, r.ifaces[n].Address)
		}
	}
	t := s.Tables
	if t.Links == nil || t.Neighbours == nil || t.Mains == nil || t.Origins == nil {
		return fmt.Errorf("a table is missing")
	}
	if err := r.linksFit(t); err != nil {
		return err
	}
	for a, m := range t.Mains {
		if m == nil || !a.Is4() || !m.Main.Is4() {
			return fmt.Errorf("interface %v is of nobody", a)
		}
	}
	for a, o := range t.Origins {
		if o == nil || !a.Is4() || slices.ContainsFunc(o.Edges, isNot4) {
			return fmt.Errorf("originator %v is not whole", a)
		}
		for p := range o.Networks {
			if isNot4(p.Masked().Addr()) {
				return fmt.Errorf("originator %v is not whole", a)
			}
		}
	}
	return nil
}

func (r *router) linksFit(t *tables) error {
	for key, l := range t.Links {
		if l == nil || key.Interface < 0 || key.Interface >= len(r.ifaces) || !key.Address.Is4() || !l.Main.Is4() {
			return fmt.Errorf("link %v is not one of this node", key)
		}
	}
	for a, n := range t.Neighbours {
		if n == nil || n.TwoHops == nil || !a.Is4() || slices.ContainsFunc(core.Sorted(n.TwoHops), isNot4) {
			return fmt.Errorf("neighbour %v is not whole", a)
		}
	}
	return nil
}

func isNot4(a netip.Addr) bool { return !a.Is4() }

// shift all moments of a snapshot to this Router's.
func (r *router) shift(by time.Duration) {
	r.EmptyTCs += by
	for _, l := range r.Links {
		l.Symmetric, l.Asymmetric, l.End = l.Symmetric+by, l.Asymmetric+by, l.End+by
	}
	for _, n := range r.Neighbours {
		if n.Selector > 0 {
			n.Selector += by
		}
		for z, end := range n.TwoHops {
			n.TwoHops[z] = end + by
		}
	}
	for _, m := range r.Mains {
		m.End += by
	}
	for _, o := range r.Origins {
		o.End += by
		for p, end := range o.Networks {
			o.Networks[p] = end + by
		}
		o.Processed.At, o.Forwarded.At = o.Processed.At+by, o.Forwarded.At+by
		for i := range o.Received {
			o.Received[i].At += by
		}
	}
}
