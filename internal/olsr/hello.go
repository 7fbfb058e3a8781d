package olsr

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"vignette.dev/vignette/internal/olsr/internal/core"
	"vignette.dev/vignette/internal/olsr/rfc5444"
)

// addressStatements is what a message says of one address; -1, nil and a metric of 0 mean nothing.
type addressStatements struct {
	localIf, linkStatus, otherNeighb, nbrType  int
	mpr, gateway                               []byte // values, in the message's memory
	inLink, outLink, inNeighbour, outNeighbour metrics
	statesFirst, statesOther                   bool // a metric of the first topology, of another type
}

// readStatement reads a TLV of an address.
func (r *router) readStatement(a *addressStatements, t *rfc5444.AddressTLV, value []byte) {
	number := -1
	if len(value) == 1 {
		number = int(value[0])
	}
	switch {
	case t.Type == addressLinkMetric:
		n := r.topologyOf(t.Extension)
		a.statesFirst, a.statesOther = a.statesFirst || n == 0, a.statesOther || n != 0
		if n >= 0 {
			kinds, metric, _ := rfc5444.ReadMetric(value)
			a.readMetric(n, kinds, metric)
		}
	case t.Extension != 0:
	case t.Type == addressLocalIf:
		a.localIf = number
	case t.Type == addressLinkStatus:
		a.linkStatus = number
	case t.Type == addressOtherNeighb:
		a.otherNeighb = number
	case t.Type == addressMPR:
		a.mpr = value
	case t.Type == addressNbrType:
		a.nbrType = number
	case t.Type == addressGateway:
		a.gateway = value
	}
}

func (a *addressStatements) readMetric(topology int, kinds uint8, metric uint32) {
	if kinds&rfc5444.IncomingLink != 0 {
		a.inLink[topology] = metric
	}
	if kinds&rfc5444.OutgoingLink != 0 {
		a.outLink[topology] = metric
	}
	if kinds&rfc5444.IncomingNeighbour != 0 {
		a.inNeighbour[topology] = metric
	}
	if kinds&rfc5444.OutgoingNeighbour != 0 {
		a.outNeighbour[topology] = metric
	}
}

// countHops has the metrics of the first topology count hops. An address without any metric is in that topology:
// routers that count hops may leave metrics out. An address that only has metrics of other topologies is not in it.
func (a *addressStatements) countHops() {
	if a.statesOther && !a.statesFirst {
		return
	}
	for _, m := range []*metrics{&a.inLink, &a.outLink, &a.inNeighbour, &a.outNeighbour} {
		m[0] = rfc5444.MinimumMetric
	}
}

// scan visits a message's addresses. The argument of visit is only valid during the call.
func (r *router) scan(m *rfc5444.Message, visit func(netip.Prefix, *addressStatements)) {
	for b := range m.Blocks {
		block := &m.Blocks[b]
		for i, address := range block.Addresses {
			a := &r.statements
			*a = addressStatements{localIf: -1, linkStatus: -1, otherNeighb: -1, nbrType: -1}
			for t := range block.TLVs {
				if value, covered := block.TLVs[t].At(i); covered {
					r.readStatement(a, &block.TLVs[t], value)
				}
			}
			if r.c.Metric == HopCount {
				a.countHops()
			}
			visit(address, a)
		}
	}
}

// receiveHello processes a HELLO (RFC 6130 section 12, RFC 7181 section 15.3).
func (r *router) receiveHello(now time.Duration, i *iface, from netip.Addr, m *rfc5444.Message) error {
	if m.HasHopLimit && m.HopLimit != 1 {
		return fmt.Errorf("HELLO of %v: hop limit %d is not 1", from, m.HopLimit)
	}
	validity, interval, err := times(m)
	if err != nil {
		return fmt.Errorf("HELLO of %v: %w", from, err)
	}
	var sending, others []netip.Addr
	mine := false
	r.scan(m, func(p netip.Prefix, a *addressStatements) {
		switch {
		case a.localIf < 0:
		case r.own[p.Addr()]:
			mine = true
		case a.localIf == thisIf:
			sending = append(sending, p.Addr())
		default:
			others = append(others, p.Addr())
		}
	})
	if mine || r.own[m.Originator] || r.own[from] {
		return nil // one of its own packets came back
	}
	if len(sending) == 0 {
		sending = append(sending, from)
	}
	n := r.neighbour(now, append(slices.Clone(sending), others...), m.Originator)
	if n == nil {
		return fmt.Errorf("HELLO of %v: there are %d neighbours already", from, len(r.neighbours))
	}
	r.readPositions(m)
	r.readWillingness(m, n)
	l := r.link(i, n, sending[0])
	r.updateLink(now, l, m, validity, interval)
	if l.symmetric {
		r.learnTwoHops(now, l, m, validity)
	}
	return nil
}

// times returns a message's validity, and the interval until the next (0 if not given).
func times(m *rfc5444.Message) (validity, interval time.Duration, err error) {
	value, there := m.TLV(rfc5444.ValidityTime, 0)
	validity, ok := rfc5444.TimeAt(value, m.HopCount)
	if !there || !ok {
		return 0, 0, errors.New("no validity time")
	}
	if value, there := m.TLV(rfc5444.IntervalTime, 0); there {
		interval, _ = rfc5444.TimeAt(value, m.HopCount)
	}
	return min(validity, maxInterval), min(interval, maxInterval), nil
}

// readWillingness reads a neighbour's willingness (RFC 7181 section 13.2.1): flooding in the high four bits, routing in
// the low, and in further octets that of further topologies.
func (r *router) readWillingness(m *rfc5444.Message, n *neighbour) {
	value, _ := m.TLV(messageMPRWilling, 0)
	if len(value) == 0 {
		value = defaultWillingness
	}
	flooding, routing := int(value[0]>>4), r.routingWillingness(value)
	if flooding != n.willFlooding || routing != n.willRouting {
		r.mprDirty = true
	}
	n.willFlooding, n.willRouting = flooding, routing
}

var defaultWillingness = []byte{WillDefault<<4 | WillDefault}

// neighbour returns the neighbour with these addresses, made or updated (RFC 6130 section 12.3); nil if there
// is no room.
func (r *router) neighbour(now time.Duration, addresses []netip.Addr, origin netip.Addr) *neighbour {
	slices.SortFunc(addresses, netip.Addr.Compare)
	addresses = slices.Compact(addresses)
	if !origin.IsValid() {
		origin = addresses[0]
	}
	var n *neighbour
	for _, a := range addresses {
		switch known := r.neighbours[a]; {
		case known == nil || known == n:
		case n == nil:
			n = known
		default: // two neighbours turn out to be one
			r.forget(now, known)
		}
	}
	if n == nil {
		if len(r.neighbours)+len(addresses) > maxNeighbours {
			r.counters.Overflows++
			return nil
		}
		n = &neighbour{}
	}
	if n.origin == origin && slices.Equal(n.addresses, addresses) {
		return n
	}
	for _, a := range n.addresses {
		delete(r.neighbours, a)
		if !slices.Contains(addresses, a) && n.symmetric {
			r.lost[a] = now + r.lostHold
		}
	}
	for _, l := range slices.Clone(n.links) {
		if !slices.Contains(addresses, l.address) {
			r.removeLink(now, l)
		}
	}
	n.origin, n.addresses = origin, addresses
	for _, a := range addresses {
		r.neighbours[a] = n
	}
	r.dirty, r.mprDirty = true, true
	return n
}

func (r *router) forget(now time.Duration, n *neighbour) {
	for _, l := range slices.Clone(n.links) {
		r.removeLink(now, l)
	}
	for _, a := range n.addresses {
		delete(r.neighbours, a)
	}
	r.dirty, r.mprDirty = true, true
}

func (r *router) link(i *iface, n *neighbour, address netip.Addr) *link {
	if l := i.links.of(address); l != nil {
		return l
	}
	l := &link{iface: i, address: address, neighbour: n}
	i.links.add(l)
	n.links = append(n.links, l)
	return l
}

// updateLink updates a link by a HELLO of its neighbour (RFC 6130 section 12.5, RFC 7181 section 15.3.2).
func (r *router) updateLink(now time.Duration, l *link, m *rfc5444.Message, validity, interval time.Duration) {
	if r.measures {
		l.loss.hello(interval, validity, now)
	}
	n := l.neighbour
	out := l.outMetric
	listed := false
	r.scan(m, func(p netip.Prefix, a *addressStatements) {
		if p.Addr() != l.iface.Address || a.linkStatus < 0 {
			return
		}
		listed = true
		switch a.linkStatus {
		case statusHeard, statusSymmetric:
			l.symmetricUntil = now + validity
		case statusLost:
			l.symmetricUntil = min(l.symmetricUntil, now)
		}
		out = a.inLink
		if a.linkStatus == statusSymmetric {
			l.selector = hasBit(a.mpr, 0)
			n.selector = r.chosenBy(a.mpr)
		}
	})
	l.heardUntil = max(now+validity, l.symmetricUntil)
	l.until = max(l.until, l.heardUntil+l.iface.HelloValidity)
	if listed && out != l.outMetric {
		l.outMetric = out
		r.dirty, r.mprDirty = true, true
	}
	r.updateMetric(l, now)
	r.updateDependents(now, l)
	for _, until := range []time.Duration{l.symmetricUntil, l.heardUntil, l.until} {
		r.expireBy(until)
	}
}

// updateDependents updates what depends on a link's status.
func (r *router) updateDependents(now time.Duration, l *link) {
	n := l.neighbour
	if symmetric := l.status(now) == Symmetric; symmetric != l.symmetric {
		l.symmetric = symmetric
		r.dirty, r.mprDirty = true, true
		if !symmetric {
			r.twoHops -= len(l.twoHops)
			l.twoHops = nil
			l.selector, l.floodingMPR = false, false
		}
	}
	was := n.symmetric
	n.symmetric = false
	in, out := n.inMetric, n.outMetric
	n.inMetric, n.outMetric, n.best = metrics{}, metrics{}, [MaxTopologies]*link{}
	for _, l := range n.links {
		n.symmetric = n.symmetric || l.symmetric
		for t := range r.topologies {
			if l.usable(t) {
				n.useLink(l, t)
			}
		}
	}
	if in != n.inMetric || out != n.outMetric {
		r.dirty, r.mprDirty = true, true
	}
	switch {
	case was && !n.symmetric:
		n.selector, n.routingMPR = [MaxTopologies]bool{}, [MaxTopologies]bool{}
		for _, a := range n.addresses {
			r.lost[a] = now + r.lostHold
		}
		r.expireBy(now + r.lostHold)
	case n.symmetric && !was:
		for _, a := range n.addresses {
			delete(r.lost, a)
		}
	}
}

// useLink has a neighbour's metrics and best link of a topology allow for a usable link.
func (n *neighbour) useLink(l *link, t int) {
	if in := l.inMetric[t]; n.inMetric[t] == 0 || in < n.inMetric[t] {
		n.inMetric[t] = in
	}
	out, best := l.outMetric[t], n.best[t]
	if best == nil || out < n.outMetric[t] || out == n.outMetric[t] && l.iface.number < best.iface.number {
		n.outMetric[t], n.best[t] = out, l
	}
}

// removeLink removes a link and, with the last one, its neighbour.
func (r *router) removeLink(now time.Duration, l *link) {
	l.symmetricUntil, l.heardUntil = 0, 0
	r.updateDependents(now, l)
	n := l.neighbour
	l.iface.links.remove(l)
	n.links = slices.DeleteFunc(n.links, func(other *link) bool { return other == l })
	if len(n.links) == 0 {
		for _, a := range n.addresses {
			delete(r.neighbours, a)
		}
	}
}

// learnTwoHops updates the 2-Hop Set by a HELLO over a symmetric link (RFC 6130 section 12.6, RFC 7181 section 15.3.3).
func (r *router) learnTwoHops(now time.Duration, l *link, m *rfc5444.Message, validity time.Duration) {
	r.scan(m, func(p netip.Prefix, a *addressStatements) {
		address := p.Addr()
		if a.localIf >= 0 || r.own[address] || a.linkStatus < 0 && a.otherNeighb < 0 || slices.Contains(l.neighbour.addresses, address) {
			return
		}
		known := l.twoHops.of(address)
		if a.linkStatus != statusSymmetric && a.otherNeighb != statusSymmetric {
			if known != nil {
				l.twoHops.remove(address)
				r.twoHops--
				r.dirty, r.mprDirty = true, true
			}
			return
		}
		if known == nil {
			if r.twoHops >= maxTwoHops {
				r.counters.Overflows++
				return
			}
			known = l.twoHops.add(address)
			r.twoHops++
			r.dirty, r.mprDirty = true, true
		}
		known.until = now + validity
		if known.inMetric != a.inNeighbour || known.outMetric != a.outNeighbour {
			known.inMetric, known.outMetric = a.inNeighbour, a.outNeighbour
			r.dirty, r.mprDirty = true, true
		}
	})
	r.expireBy(now + validity)
}

// sendHello generates HELLOs for an interface (RFC 6130 section 11, RFC 7181 section 15.1), as many as the
// MTU requires. Each address is in one of them, as RFC 6130 section 11 allows.
func (r *router) sendHello(now time.Duration, i *iface) {
	for _, l := range i.links.order {
		r.updateMetric(l, now)
		r.updateDependents(now, l)
	}
	r.chooseMPRs()
	local := []rfc5444.Entry{{Address: r.whole(i.Address), Attributes: []rfc5444.Attribute{{Type: addressLocalIf, Value: []byte{thisIf}}}}}
	for _, other := range r.ifaces {
		if other != i {
			local = append(local, rfc5444.Entry{Address: r.whole(other.Address), Attributes: []rfc5444.Attribute{{Type: addressLocalIf, Value: []byte{otherIf}}}})
		}
	}
	m := rfc5444.Message{
		Header: rfc5444.Header{Type: messageHello, AddressLength: r.length, Originator: r.origin},
		TLVs: []rfc5444.TLV{
			{Type: rfc5444.ValidityTime, Value: []byte{rfc5444.TimeCode(i.HelloValidity)}},
			{Type: rfc5444.IntervalTime, Value: []byte{rfc5444.TimeCode(i.Hello)}},
			{Type: messageMPRWilling, Value: r.ownWillingness()},
		},
	}
	m.TLVs = r.appendTypes(m.TLVs)
	for _, message := range r.splitToMTU(m, local, r.helloEntries(now, i), i.MTU) {
		r.counters.HellosSent++
		r.enqueue(i, now, message)
	}
}

// splitToMTU makes messages of a header, entries for every message, and shared entries, none longer than the MTU
// allows.
func (r *router) splitToMTU(m rfc5444.Message, each, shared []rfc5444.Entry, mtu int) [][]byte {
	m.Blocks = rfc5444.Blocks(slices.Concat(each, shared))
	var err error
	r.encoded, err = m.Append(r.encoded[:0])
	if len(shared) < 2 || err == nil && len(r.encoded) <= mtu-packetHeader {
		if err != nil {
			// One entry with 4 to 16 bytes of address cannot be too long.
			panic(err)
		}
		return [][]byte{slices.Clone(r.encoded)}
	}
	half := len(shared) / 2
	return append(r.splitToMTU(m, each, shared[:half], mtu), r.splitToMTU(m, each, shared[half:], mtu)...)
}

// entryBuilder collects the entries of a message, in memory that is kept between messages.
type entryBuilder struct {
	entries    []rfc5444.Entry
	attributes []rfc5444.Attribute
	values     []byte
}

func (t *entryBuilder) begin() {
	t.entries, t.attributes, t.values = t.entries[:0], t.attributes[:0], t.values[:0]
}

// address begins the attributes of an address.
func (t *entryBuilder) address(p netip.Prefix) {
	t.entries = append(t.entries, rfc5444.Entry{Address: p})
}

// attribute adds an attribute of the last address.
func (t *entryBuilder) attribute(kind, extension uint8, value ...byte) {
	first := len(t.values)
	t.values = append(t.values, value...)
	entry := &t.entries[len(t.entries)-1]
	t.attributes = append(t.attributes, rfc5444.Attribute{Type: kind, Extension: extension, Value: t.values[first:]})
	entry.Attributes = t.attributes[len(t.attributes)-len(entry.Attributes)-1:]
}

// metrics adds LINK_METRIC attributes of all topologies.
func (r *router) metrics(inLink, outLink, inNeighbour, outNeighbour *metrics) {
	for n, t := range r.topologies {
		r.entryBuilder.metrics(t.Type, inLink[n], outLink[n], inNeighbour[n], outNeighbour[n])
	}
}

// unknown is for metrics that a message does not state.
var unknown metrics

// metrics adds LINK_METRIC attributes of a metric type, one for each distinct value; 0 is unknown.
func (t *entryBuilder) metrics(kind uint8, inLink, outLink, inNeighbour, outNeighbour uint32) {
	values := [4]uint32{inLink, outLink, inNeighbour, outNeighbour}
	kinds := [4]uint8{rfc5444.IncomingLink, rfc5444.OutgoingLink, rfc5444.IncomingNeighbour, rfc5444.OutgoingNeighbour}
	for i, value := range values {
		if value == 0 || slices.Contains(values[:i], value) {
			continue
		}
		all := uint8(0)
		for j := i; j < len(values); j++ {
			if values[j] == value {
				all |= kinds[j]
			}
		}
		t.attribute(addressLinkMetric, kind, rfc5444.MetricValue(all, value)...)
	}
}

// helloEntries returns entries for the neighbours' addresses, equal ones adjacent so that they share TLVs.
// They are valid until the next message.
func (r *router) helloEntries(now time.Duration, i *iface) []rfc5444.Entry {
	t := &r.entryBuilder
	t.begin()
	for _, l := range i.links.order {
		t.address(r.whole(l.address))
		r.addLink(l, l.advertisedStatus(now))
	}
	for _, a := range core.Sorted(r.neighbours) {
		if n := r.neighbours[a]; n.symmetric && i.links.of(a) == nil {
			t.address(r.whole(a))
			t.attribute(addressOtherNeighb, 0, statusSymmetric)
			r.metrics(&unknown, &unknown, &n.inMetric, &n.outMetric)
		}
	}
	for _, a := range core.Sorted(r.lost) {
		if i.links.of(a) == nil {
			t.address(r.whole(a))
			t.attribute(addressOtherNeighb, 0, statusLost)
		}
	}
	slices.SortStableFunc(t.entries, func(a, b rfc5444.Entry) int {
		return slices.CompareFunc(a.Attributes, b.Attributes, func(a, b rfc5444.Attribute) int {
			return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Extension, b.Extension), slices.Compare(a.Value, b.Value))
		})
	})
	return t.entries
}

// advertisedStatus returns a link's status in HELLOs.
func (l *link) advertisedStatus(now time.Duration) uint8 {
	switch l.status(now) {
	case Heard:
		return statusHeard
	case Symmetric:
		return statusSymmetric
	}
	return statusLost
}

// addLink adds the attributes of a link's address.
func (r *router) addLink(l *link, status uint8) {
	t, n := &r.entryBuilder, l.neighbour
	t.attribute(addressLinkStatus, 0, status)
	mpr := uint8(0)
	if l.floodingMPR {
		mpr |= mprFlooding
	}
	for at := range r.topologies {
		if n.routingMPR[at] {
			mpr |= mprRouting << at
		}
	}
	if l.symmetric && mpr != 0 {
		t.attribute(addressMPR, 0, mpr)
	}
	if !l.symmetric && n.symmetric {
		t.attribute(addressOtherNeighb, 0, statusSymmetric)
	}
	switch {
	case status == statusHeard:
		r.metrics(&l.inMetric, &unknown, &n.inMetric, &n.outMetric)
	case status == statusSymmetric:
		r.metrics(&l.inMetric, &l.outMetric, &n.inMetric, &n.outMetric)
	case n.symmetric:
		r.metrics(&unknown, &unknown, &n.inMetric, &n.outMetric)
	}
}

// chooseMPRs chooses the MPRs again if the neighbourhood has changed (RFC 7181 section 18). It runs just
// before a HELLO, because a choice takes effect with the next one.
func (r *router) chooseMPRs() {
	if !r.mprDirty {
		return
	}
	r.mprDirty = false
	r.reserve(r.twoHops)
	r.numberTwoHops()
	for _, i := range r.ifaces {
		r.chooseFlooding(i)
	}
	for t := range r.topologies {
		r.chooseRouting(t)
	}
}

// chooseFlooding chooses an interface's flooding MPRs, by the metric of the first topology.
func (r *router) chooseFlooding(i *iface) {
	var candidates []core.Candidate
	targets := newCoverage(len(r.index.Addrs))
	links := slices.DeleteFunc(slices.Clone(i.links.order), func(l *link) bool { return !l.usable(0) })
	for at, l := range links {
		candidates = append(candidates, core.Candidate{Willingness: l.neighbour.willFlooding, Distance: l.outMetric[0]})
		for k := range l.twoHops {
			if two := &l.twoHops[k]; two.outMetric[0] != 0 {
				targets.reach(r.numberOf(two), core.Reach{Candidate: at, Distance: two.outMetric[0]})
			}
		}
	}
	for _, l := range links {
		if number, known := r.index.Known(l.address); known {
			targets.direct(number, l.outMetric[0])
		}
	}
	for at, chosen := range targets.choose(candidates) {
		links[at].floodingMPR = chosen
	}
}

// chooseRouting chooses a topology's routing MPRs.
func (r *router) chooseRouting(t int) {
	var candidates []core.Candidate
	targets := newCoverage(len(r.index.Addrs))
	near := slices.DeleteFunc(r.sortedNeighbours(), func(n *neighbour) bool { return n.best[t] == nil })
	for at, n := range near {
		candidates = append(candidates, core.Candidate{Willingness: n.willRouting[t], Distance: n.inMetric[t]})
		for _, l := range n.links {
			for k := range l.twoHops {
				if two := &l.twoHops[k]; two.inMetric[t] != 0 && l.usable(t) {
					targets.reach(r.numberOf(two), core.Reach{Candidate: at, Distance: two.inMetric[t]})
				}
			}
		}
	}
	for _, n := range near {
		for _, a := range n.addresses {
			if number, known := r.index.Known(a); known {
				targets.direct(number, n.inMetric[t])
			}
		}
	}
	for at, chosen := range targets.choose(candidates) {
		near[at].routingMPR[t] = chosen
	}
}
