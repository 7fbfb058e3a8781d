package olsr

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"net/netip"
	"slices"
	"time"

	"vignette.dev/vignette/internal/olsr/internal/core"
	"vignette.dev/vignette/internal/olsr/rfc5444"
)

const (
	packetHeader = 3 // bytes of a packet header with a sequence number
	hopLimit     = 255
	maxAllEdges  = 1 << 18
)

// receiveFlooded handles a message that is flooded over the domain: whether it is new, its content, and whether to
// forward it (RFC 7181 section 14).
func (r *router) receiveFlooded(now time.Duration, i *iface, from netip.Addr, raw *rfc5444.RawMessage) error {
	switch {
	case !raw.Originator.IsValid() || !raw.HasSequence:
		return fmt.Errorf("message of type %d from %v has no originator or no sequence number", raw.Type, from)
	case r.own[raw.Originator]:
		return nil
	}
	r.reserve(min(len(raw.Body), maxEdges) + 1)
	origin := r.remoteOf(r.index.Of(raw.Originator))
	var err error
	if origin.processed.Add(raw.Sequence, now, duplicateHold) {
		if raw.Type == messageTC {
			err = r.receiveTC(now, origin, raw)
		}
	} else {
		r.counters.Duplicates++
	}
	if err == nil {
		r.forward(now, i, origin, from, raw)
	}
	return err
}

// forward a message that an MPR selector sent (RFC 7181 section 14.3). The first copy over each interface decides.
func (r *router) forward(now time.Duration, i *iface, origin *remote, from netip.Addr, raw *rfc5444.RawMessage) {
	for len(origin.received) <= i.number {
		origin.received = append(origin.received, core.Window{})
	}
	if origin.received[i.number].Has(raw.Sequence, now, duplicateHold) {
		return // as most are; before any lookup
	}
	l := i.links.of(from)
	if l == nil || !l.symmetric {
		return
	}
	origin.received[i.number].Add(raw.Sequence, now, duplicateHold)
	if !l.selector {
		return
	}
	if !raw.HasHopLimit || raw.HopLimit <= 1 || raw.HasHopCount && raw.HopCount == hopLimit {
		return
	}
	if !origin.forwarded.Add(raw.Sequence, now, duplicateHold) {
		return
	}
	message := raw.Forwarded()
	due := now + core.Jitter(r.random, r.maxJitter())
	r.counters.Forwarded++
	for _, out := range r.ifaces {
		if raw.Type != messageTC || r.passes(now, i, out, origin) {
			r.enqueue(out, due, message)
		}
	}
}

// passes reports whether an originator's TC that came over an interface goes on over another now. An interface with a
// longer interval would otherwise carry TCs of all nodes at the shorter one.
func (r *router) passes(now time.Duration, in, out *iface, origin *remote) bool {
	if out.TC <= in.TC {
		return true
	}
	if origin.thinnings == nil {
		origin.thinnings = make([]core.Thinning, len(r.ifaces))
	}
	return origin.thinnings[out.number].Pass(now, in.TC, out.TC)
}

// enqueue a message for an interface, unless it is silent.
func (r *router) enqueue(i *iface, due time.Duration, message []byte) {
	switch {
	case i.silent:
		r.counters.Silenced++
	case !i.queue.Add(due, message):
		r.counters.Overflows++
	}
}

// receiveTC processes a TC (RFC 7181 section 16.3).
func (r *router) receiveTC(now time.Duration, origin *remote, raw *rfc5444.RawMessage) error {
	digest := maphash.Bytes(r.hash, raw.Body)
	if digest == origin.contentDigest && origin.until > now {
		origin.extendValidity(now + origin.validity)
		return nil
	}
	m := &r.message
	if err := raw.Decode(m); err != nil {
		return fmt.Errorf("TC of %v: %w", raw.Originator, err)
	}
	validity, _, err := times(m)
	if err != nil {
		return fmt.Errorf("TC of %v: %w", raw.Originator, err)
	}
	number, complete := m.TLV(messageContSeqNum, completeTC)
	if !complete {
		number, _ = m.TLV(messageContSeqNum, incompleteTC)
	}
	if len(number) != 2 {
		return fmt.Errorf("TC of %v: no ANSN", raw.Originator)
	}
	ansn := binary.BigEndian.Uint16(number)
	if origin.until > now && core.Newer(origin.ansn, ansn) {
		return nil // overtaken by a later one
	}
	origin.ansn, origin.until, origin.validity = ansn, max(origin.until, now+validity), validity
	origin.contentDigest = 0
	if value, _ := m.TLV(rfc5444.ValidityTime, 0); complete && len(value) == 1 {
		origin.contentDigest = digest
	}
	r.readPositions(m)
	r.learnTopology(now+validity, origin, m, complete)
	r.expireBy(now + validity)
	return nil
}

// extendValidity extends the validity of all that an originator advertises.
func (o *remote) extendValidity(until time.Duration) {
	o.until = until
	for e := range o.edges {
		o.edges[e].until = until
	}
	for n := range o.networks {
		o.networks[n].until = until
	}
}

// learnTopology takes a TC's content. A complete one replaces the previous content. An incomplete one adds to
// it, and entries that are not repeated expire (RFC 7181 sections 16.3.2 to 16.4).
func (r *router) learnTopology(until time.Duration, origin *remote, m *rfc5444.Message, complete bool) {
	edges, networks := r.scratchEdges[:0], r.scratchNetworks[:0]
	r.scan(m, func(p netip.Prefix, a *addressStatements) {
		switch {
		case a.outNeighbour == metrics{} || len(edges) >= maxEdges:
		case len(a.gateway) > 0:
			networks = append(networks, remoteNetwork{prefix: p.Masked(), hops: r.hops(a.gateway), metric: a.outNeighbour, until: until})
		case a.nbrType > 0 && p.IsSingleIP() && !r.own[p.Addr()]:
			edges = append(edges, remoteEdge{to: r.index.Of(p.Addr()), metric: a.outNeighbour, routable: a.nbrType&nbrRoutable != 0, until: until})
		}
	})
	r.scratchEdges, r.scratchNetworks = edges, networks
	if !complete {
		for _, e := range origin.edges {
			if !slices.ContainsFunc(edges, func(other remoteEdge) bool { return other.to == e.to }) {
				edges = append(edges, e)
			}
		}
		for _, n := range origin.networks {
			if !slices.ContainsFunc(networks, func(other remoteNetwork) bool { return other.prefix == n.prefix }) {
				networks = append(networks, n)
			}
		}
	}
	if len(edges)+len(networks) > maxEdges || r.allEdges+len(edges)+len(networks) > maxAllEdges {
		r.counters.Overflows += uint64(len(edges) + len(networks))
		return
	}
	same := slices.EqualFunc(edges, origin.edges, func(a, b remoteEdge) bool { return a.to == b.to && a.metric == b.metric && a.routable == b.routable }) &&
		slices.EqualFunc(networks, origin.networks, func(a, b remoteNetwork) bool {
			return a.prefix == b.prefix && a.hops == b.hops && a.metric == b.metric
		})
	r.allEdges += len(edges) + len(networks) - len(origin.edges) - len(origin.networks)
	origin.edges = append(origin.edges[:0], edges...)
	origin.networks = append(origin.networks[:0], networks...)
	r.dirty = r.dirty || !same
}

// advertisement returns the entries of this node's TCs: its routing MPR selectors of any topology, with the metrics of
// those topologies, and attached networks (RFC 7181 section 16.1, RFC 7722). They are valid until the next message.
func (r *router) advertisement() []rfc5444.Entry {
	t := &r.entryBuilder
	t.begin()
	add := func(kind uint8, p netip.Prefix, value uint8, metric metrics) {
		t.address(p)
		t.attribute(kind, 0, value)
		r.metrics(&unknown, &unknown, &unknown, &metric)
	}
	near := r.sortedNeighbours()
	for _, n := range near {
		if metric := n.advertised(); metric != unknown {
			kind := uint8(nbrOriginator)
			if slices.Contains(n.addresses, n.origin) {
				kind |= nbrRoutable
			}
			add(addressNbrType, r.whole(n.origin), kind, metric)
		}
	}
	for _, n := range near {
		metric := n.advertised()
		for _, a := range n.addresses {
			if metric != unknown && a != n.origin {
				add(addressNbrType, r.whole(a), nbrRoutable, metric)
			}
		}
	}
	for _, a := range r.c.Attached {
		add(addressGateway, a.Prefix, uint8(max(a.Hops, 1)), r.attachedMetric(&a))
	}
	return t.entries
}

// advertised returns a neighbour's metrics in the topologies in which it has chosen this node.
func (n *neighbour) advertised() (metric metrics) {
	for t := range metric {
		if n.selector[t] && n.best[t] != nil {
			metric[t] = n.outMetric[t]
		}
	}
	return metric
}

// attachedMetric returns the metrics of an attached network: by default those of one link without loss.
func (r *router) attachedMetric(a *Attached) (metric metrics) {
	for n, t := range r.topologies {
		metric[n] = rfc5444.MinimumMetric
		if t.Metric == DAT {
			metric[n] = datConstant
		}
	}
	metric[0] = max(a.Metric, metric[0])
	return metric
}

// sendTC generates TCs (RFC 7181 section 16.1) for the interfaces of a schedule: one, or several incomplete ones if it
// exceeds the smallest MTU. An empty one is repeated until the last content has expired everywhere.
func (r *router) sendTC(now time.Duration, s *schedule) {
	entries := r.advertisement()
	content := encodeEntries(entries, r.length)
	if !bytes.Equal(content, r.advertised) {
		r.ansn++
		if len(entries) == 0 {
			r.emptyTCs = now + r.c.LongestTCValidity()
		}
		r.advertised = content
	}
	if len(entries) == 0 && now >= r.emptyTCs {
		return
	}
	// A TC goes on over the other interfaces as well.
	mtu := r.ifaces[0].MTU
	for _, i := range r.ifaces {
		mtu = min(mtu, i.MTU)
	}
	messages := r.splitToMTU(r.tcHeader(s, completeTC), nil, entries, mtu)
	if len(messages) > 1 {
		messages = r.splitToMTU(r.tcHeader(s, incompleteTC), nil, entries, mtu)
	}
	for _, message := range messages {
		r.seq++
		binary.BigEndian.PutUint16(message[4+r.length+2:], r.seq)
		r.counters.TCsSent++
		for _, number := range s.Interfaces {
			r.enqueue(r.ifaces[number], now, message)
		}
	}
}

func (r *router) tcHeader(s *schedule, completeness uint8) rfc5444.Message {
	m := rfc5444.Message{
		Header: rfc5444.Header{
			Type: messageTC, AddressLength: r.length, Originator: r.origin,
			HasHopLimit: true, HopLimit: hopLimit, HasHopCount: true, HasSequence: true,
		},
		TLVs: []rfc5444.TLV{
			{Type: rfc5444.ValidityTime, Value: []byte{rfc5444.TimeCode(s.Validity)}},
			{Type: rfc5444.IntervalTime, Value: []byte{rfc5444.TimeCode(s.Interval)}},
			{Type: messageContSeqNum, Extension: completeness, Value: binary.BigEndian.AppendUint16(nil, r.ansn)},
		},
	}
	m.TLVs = r.appendTypes(m.TLVs)
	return m
}

func encodeEntries(entries []rfc5444.Entry, length int) []byte {
	m := rfc5444.Message{Header: rfc5444.Header{AddressLength: length}, Blocks: rfc5444.Blocks(entries)}
	b, err := m.Append(nil)
	if err != nil {
		// Too much for one message: several carry it, and each change is still included here.
		half := len(entries) / 2
		return append(encodeEntries(entries[:half], length), encodeEntries(entries[half:], length)...)
	}
	return b
}
