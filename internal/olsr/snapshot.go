package olsr

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"

	"vignette.dev/vignette/internal/olsr/internal/core"
)

// snapshot of a router, in CBOR (RFC 8949). That of a domain of hundreds takes a millisecond, in which no
// other router of the host runs. Times are the remaining ones when it was taken.
type snapshot struct {
	_        struct{} `cbor:",toarray"`
	Version  int
	Taken    int64 // nanoseconds since 1970
	Origin   netip.Addr
	Metric   Metric
	Further  []Topology
	Sequence uint16
	ANSN     uint16
	Content  []byte

	Interfaces []savedInterface
	Neighbours []savedNeighbour
	Lost       []savedLost
	Remotes    []savedRemote
}

type savedInterface struct {
	_              struct{} `cbor:",toarray"`
	Address        netip.Addr
	PacketSequence uint16
	Links          []savedLink
}

type savedLink struct {
	_                      struct{} `cbor:",toarray"`
	Address                netip.Addr
	Heard, Symmetric, Left time.Duration
	In, Out                metrics
	FloodingMPR, Selector  bool
	TwoHops                []savedTwoHop
	Loss                   *loss
}

type savedTwoHop struct {
	_       struct{} `cbor:",toarray"`
	Address netip.Addr
	Left    time.Duration
	In, Out metrics
}

type savedNeighbour struct {
	_                    struct{} `cbor:",toarray"`
	Addresses            []netip.Addr
	Origin               netip.Addr
	Flooding             int
	Routing              [MaxTopologies]int
	RoutingMPR, Selector [MaxTopologies]bool
}

type savedLost struct {
	_       struct{} `cbor:",toarray"`
	Address netip.Addr
	Left    time.Duration
}

type savedRemote struct {
	_        struct{} `cbor:",toarray"`
	Origin   netip.Addr
	ANSN     uint16
	Left     time.Duration
	Sequence uint16
	Seen     uint64
	Edges    []savedEdge
	Networks []savedRemoteNetwork
}

type savedEdge struct {
	_        struct{} `cbor:",toarray"`
	To       netip.Addr
	Metric   metrics
	Routable bool
	Left     time.Duration
}

type savedRemoteNetwork struct {
	_      struct{} `cbor:",toarray"`
	Prefix netip.Prefix
	Hops   [MaxTopologies]uint8
	Metric metrics
	Left   time.Duration
}

const snapshotVersion = 4

// savedEdges keeps memory for a snapshot's thousands of edges between snapshots of any router.
var savedEdges = sync.Pool{New: func() any { return new([]savedEdge) }}

func (r *router) Snapshot(at time.Time) ([]byte, error) {
	now := r.moment(at)
	s := snapshot{
		Version: snapshotVersion, Taken: at.UnixNano(), Origin: r.origin, Metric: r.c.Metric, Further: r.c.Topologies, Sequence: r.seq, ANSN: r.ansn, Content: r.advertised,
	}
	for _, i := range r.ifaces {
		saved := savedInterface{Address: i.Address, PacketSequence: i.packetSeq}
		for _, l := range i.links.order {
			saved.Links = append(saved.Links, r.saveLink(now, l))
		}
		s.Interfaces = append(s.Interfaces, saved)
	}
	for _, n := range r.sortedNeighbours() {
		s.Neighbours = append(s.Neighbours, savedNeighbour{
			Addresses: n.addresses, Origin: n.origin, Flooding: n.willFlooding, Routing: n.willRouting, RoutingMPR: n.routingMPR, Selector: n.selector,
		})
	}
	for _, a := range core.Sorted(r.lost) {
		s.Lost = append(s.Lost, savedLost{Address: a, Left: r.lost[a] - now})
	}
	edges := savedEdges.Get().(*[]savedEdge)
	defer savedEdges.Put(edges)
	*edges = slices.Grow((*edges)[:0], r.allEdges)
	for i, o := range r.topology {
		if o != nil && (o.until > now || o.processed.Used) {
			s.Remotes = append(s.Remotes, r.saveRemote(now, r.index.Addrs[i], o, edges))
		}
	}
	return cbor.Marshal(&s)
}

func (r *router) saveLink(now time.Duration, l *link) savedLink {
	saved := savedLink{
		Address: l.address, Heard: l.heardUntil - now, Symmetric: max(l.symmetricUntil-now, 0), Left: l.until - now, In: l.inMetric, Out: l.outMetric,
		FloodingMPR: l.floodingMPR, Selector: l.selector,
	}
	for _, two := range l.twoHops {
		saved.TwoHops = append(saved.TwoHops, savedTwoHop{Address: two.address, Left: two.until - now, In: two.inMetric, Out: two.outMetric})
	}
	if r.measures {
		copied := l.loss
		copied.At, copied.Heard = 0, 0 // set again by the successor
		saved.Loss = &copied
	}
	return saved
}

// saveRemote saves a remote, with its edges in memory that has room for them.
func (r *router) saveRemote(now time.Duration, origin netip.Addr, o *remote, edges *[]savedEdge) savedRemote {
	saved := savedRemote{Origin: origin, ANSN: o.ansn, Left: o.until - now, Sequence: o.processed.Last, Seen: o.processed.Seen}
	first := len(*edges)
	for _, e := range o.edges {
		*edges = append(*edges, savedEdge{To: r.index.Addrs[e.to], Metric: e.metric, Routable: e.routable, Left: e.until - now})
	}
	saved.Edges = (*edges)[first:]
	for _, n := range o.networks {
		saved.Networks = append(saved.Networks, savedRemoteNetwork{Prefix: n.prefix, Hops: n.hops, Metric: n.metric, Left: n.until - now})
	}
	return saved
}

func (r *router) Restore(at time.Time, saved []byte) error {
	var s snapshot
	if err := cbor.Unmarshal(saved, &s); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	if err := r.fits(&s); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	age := max(time.Duration(at.UnixNano()-s.Taken), 0)
	// Remaining times are shorter by the snapshot's age.
	now := r.moment(at)
	taken := now - age
	r.start(now)
	for _, n := range s.Neighbours {
		r.restoreNeighbour(now, n)
	}
	for n, i := range s.Interfaces {
		r.ifaces[n].packetSeq = i.PacketSequence
		for _, l := range i.Links {
			r.restoreLink(now, taken, r.ifaces[n], l)
		}
	}
	for _, l := range s.Lost {
		if taken+l.Left > now && r.neighbours[l.Address] == nil {
			r.lost[l.Address] = taken + l.Left
		}
	}
	for _, o := range s.Remotes {
		r.restoreRemote(now, taken, o)
	}
	for _, n := range r.sortedNeighbours() {
		if len(n.links) == 0 {
			r.forget(now, n)
		}
	}
	// Messages sent between snapshot and now must not be sent again with the same numbers.
	sent := r.c.TCsWithin(age)
	r.seq, r.ansn, r.advertised = s.Sequence+2*sent, s.ANSN+sent, s.Content
	r.expireBy(now + sweepInterval)
	for _, i := range r.ifaces {
		i.nextHello = now + core.Jitter(r.random, i.Hello/4)
	}
	for _, s := range r.schedules {
		s.next = now + core.Jitter(r.random, s.Interval)
	}
	return nil
}

func (r *router) fits(s *snapshot) error {
	if s.Version != snapshotVersion {
		return fmt.Errorf("version %d, not %d", s.Version, snapshotVersion)
	}
	if s.Origin != r.origin || s.Metric != r.c.Metric || len(s.Interfaces) != len(r.ifaces) {
		return fmt.Errorf("of %v with metric %d and %d interfaces, not %v with %d and %d", s.Origin, s.Metric, len(s.Interfaces), r.origin, r.c.Metric, len(r.ifaces))
	}
	if !slices.Equal(s.Further, r.c.Topologies) {
		return fmt.Errorf("of the topologies %v, not %v", s.Further, r.c.Topologies)
	}
	for n, i := range s.Interfaces {
		if i.Address != r.ifaces[n].Address {
			return fmt.Errorf("interface %d is %v, not %v", n, i.Address, r.ifaces[n].Address)
		}
	}
	for _, n := range s.Neighbours {
		if len(n.Addresses) == 0 || !slices.IsSortedFunc(n.Addresses, netip.Addr.Compare) {
			return fmt.Errorf("neighbour %v: addresses %v are none or out of order", n.Origin, n.Addresses)
		}
	}
	for _, a := range s.addresses() {
		if a.BitLen() != 8*r.length || a.Zone() != "" {
			return fmt.Errorf("%q is not an address of %d bytes", a, r.length)
		}
	}
	return nil
}

// addresses of others in a snapshot; a neighbour whose originator was not known has none.
func (s *snapshot) addresses() (all []netip.Addr) {
	for _, i := range s.Interfaces {
		for _, l := range i.Links {
			all = append(all, l.Address)
			for _, two := range l.TwoHops {
				all = append(all, two.Address)
			}
		}
	}
	for _, n := range s.Neighbours {
		all = append(all, n.Addresses...)
		if n.Origin.IsValid() {
			all = append(all, n.Origin)
		}
	}
	for _, l := range s.Lost {
		all = append(all, l.Address)
	}
	for _, o := range s.Remotes {
		all = append(all, o.Origin)
		for _, e := range o.Edges {
			all = append(all, e.To)
		}
		for _, n := range o.Networks {
			all = append(all, n.Prefix.Masked().Addr()) // no address of an invalid prefix
		}
	}
	return all
}

func (r *router) restoreNeighbour(now time.Duration, saved savedNeighbour) {
	n := r.neighbour(now, saved.Addresses, saved.Origin)
	if n == nil {
		return
	}
	n.willFlooding, n.willRouting, n.routingMPR, n.selector = saved.Flooding, saved.Routing, saved.RoutingMPR, saved.Selector
}

func (r *router) restoreLink(now, taken time.Duration, i *iface, saved savedLink) {
	n := r.neighbours[saved.Address]
	if n == nil || taken+saved.Left <= now {
		return
	}
	selector := n.selector
	l := r.link(i, n, saved.Address)
	l.heardUntil, l.symmetricUntil, l.until = taken+saved.Heard, taken+saved.Symmetric, taken+saved.Left
	l.inMetric, l.outMetric = saved.In, saved.Out
	if saved.Loss != nil {
		l.loss = *saved.Loss
		l.loss.Bucket &= datMemory - 1
		l.loss.At, l.loss.Heard = now, now
	}
	r.updateDependents(now, l)
	if !l.symmetric {
		return
	}
	l.floodingMPR, l.selector, n.selector = saved.FloodingMPR, saved.Selector, selector
	for _, two := range saved.TwoHops {
		if taken+two.Left > now && l.twoHops.of(two.Address) == nil && r.twoHops < maxTwoHops {
			added := l.twoHops.add(two.Address)
			added.until, added.inMetric, added.outMetric = taken+two.Left, two.In, two.Out
			r.twoHops++
		}
	}
}

func (r *router) restoreRemote(now, taken time.Duration, saved savedRemote) {
	r.reserve(len(saved.Edges) + 1)
	o := r.remoteOf(r.index.Of(saved.Origin))
	o.ansn = saved.ANSN
	o.until = max(taken+saved.Left, 0)
	o.processed = core.Window{Last: saved.Sequence, Seen: saved.Seen, At: now, Used: saved.Seen != 0}
	for _, e := range saved.Edges {
		if taken+e.Left > now && r.allEdges < maxAllEdges {
			o.edges = append(o.edges, remoteEdge{to: r.index.Of(e.To), metric: e.Metric, routable: e.Routable, until: taken + e.Left})
			r.allEdges++
		}
	}
	for _, n := range saved.Networks {
		if taken+n.Left > now && r.allEdges < maxAllEdges {
			o.networks = append(o.networks, remoteNetwork{prefix: n.Prefix, hops: n.Hops, metric: n.Metric, until: taken + n.Left})
			r.allEdges++
		}
	}
}
