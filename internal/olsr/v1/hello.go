package v1

import (
	"fmt"
	"net/netip"
	"time"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/olsr/internal/core"
)

// receiveHello processes a HELLO (RFC 3626 sections 7.1.1, 8.1.1, 8.2.1, 8.4.1).
func (r *router) receiveHello(now time.Duration, i *iface, from netip.Addr, m *message) error {
	h, err := readHello(m.Body)
	if err != nil {
		return fmt.Errorf("HELLO of %v: %w", from, err)
	}
	n := r.neighbour(m.Originator)
	key := linkKey{i.number, from}
	l := r.Links[key]
	if n == nil || l == nil && len(r.Links) >= maxNeighbours {
		r.counters.Overflows++
		return nil
	}
	if l == nil {
		l = &link{}
		r.Links[key] = l
	}
	if l.Main != m.Originator {
		l.Main = m.Originator
		r.dirty, r.mprDirty = true, true
	}
	if n.Willingness != h.Willingness {
		n.Willingness = h.Willingness
		r.mprDirty = true
	}
	if from != m.Originator {
		r.alias(now, from, m.Originator, m.Validity)
	}
	r.updateLink(now, i, l, n, &h, m.Validity)
	r.updateStatus(now, m.Originator)
	if n.Symmetric && l.status(now) == olsr.Symmetric {
		r.learnTwoHops(now, m.Originator, n, &h, m.Validity)
	}
	for _, at := range []time.Duration{l.Symmetric, l.Asymmetric, n.Selector, now + m.Validity} {
		r.expireBy(at)
	}
	return nil
}

func (r *router) neighbour(main netip.Addr) *neighbour {
	n := r.Neighbours[main]
	if n == nil && len(r.Neighbours) < maxNeighbours {
		n = &neighbour{TwoHops: map[netip.Addr]time.Duration{}}
		r.Neighbours[main] = n
	}
	return n
}

// updateLink updates the link (RFC 3626 section 7.1.1), and whether the neighbour chose this node as MPR (8.4.1).
func (r *router) updateLink(now time.Duration, i *iface, l *link, n *neighbour, h *hello, validity time.Duration) {
	l.Asymmetric = now + validity
	for _, g := range h.Groups {
		for _, a := range g.Addresses {
			if a == i.Address {
				switch g.Link {
				case linkLost:
					l.Symmetric = min(l.Symmetric, now)
				case linkSymmetric, linkAsymmetric:
					l.Symmetric = now + validity
					l.End = l.Symmetric + i.HelloValidity
				}
			}
			if r.own[a] && g.Neighbour == mprNeighbour {
				n.Selector = now + validity
			}
		}
	}
	l.End = max(l.End, l.Asymmetric)
}

// updateStatus updates a neighbour's status by its links' (RFC 3626 section 8.1).
func (r *router) updateStatus(now time.Duration, main netip.Addr) {
	n := r.Neighbours[main]
	if n == nil {
		return
	}
	symmetric := false
	for _, l := range r.Links {
		if l.Main != main {
			continue
		}
		if is := l.status(now) == olsr.Symmetric; is != l.symmetric {
			l.symmetric = is
			r.dirty, r.mprDirty = true, true
		}
		symmetric = symmetric || l.symmetric
	}
	if symmetric == n.Symmetric {
		return
	}
	n.Symmetric = symmetric
	r.dirty, r.mprDirty = true, true
	if !symmetric {
		r.twoHops -= len(n.TwoHops)
		clear(n.TwoHops)
		n.Selector, n.MPR = 0, false
	}
}

// learnTwoHops updates the 2-hop neighbour set (RFC 3626 section 8.2.1).
func (r *router) learnTwoHops(now time.Duration, main netip.Addr, n *neighbour, h *hello, validity time.Duration) {
	for _, g := range h.Groups {
		for _, a := range g.Addresses {
			z := r.main(a)
			if r.own[z] || r.own[a] || z == main {
				continue
			}
			_, known := n.TwoHops[z]
			switch {
			case g.Neighbour == notNeighbour && known:
				delete(n.TwoHops, z)
				r.twoHops--
				r.dirty, r.mprDirty = true, true
			case g.Neighbour == notNeighbour:
			case !known && r.twoHops >= maxTwoHops:
				r.counters.Overflows++
			default:
				n.TwoHops[z] = now + validity
				if !known {
					r.twoHops++
					r.dirty, r.mprDirty = true, true
				}
			}
		}
	}
}

// sendHello generates HELLOs for an interface (RFC 3626 section 6.2), as many as the MTU requires.
func (r *router) sendHello(now time.Duration, i *iface) {
	r.chooseMPRs(now)
	byCode := map[[2]uint8][]netip.Addr{}
	linked := map[netip.Addr]bool{}
	for _, key := range r.sortedLinks() {
		if key.Interface != i.number {
			continue
		}
		l := r.Links[key]
		linked[l.Main] = true
		kind := map[olsr.LinkStatus]uint8{olsr.Symmetric: linkSymmetric, olsr.Heard: linkAsymmetric, olsr.Lost: linkLost}[l.status(now)]
		code := [2]uint8{kind, r.kindOf(l.Main)}
		byCode[code] = append(byCode[code], key.Address)
	}
	for _, main := range core.Sorted(r.Neighbours) {
		if !linked[main] && r.Neighbours[main].Symmetric {
			code := [2]uint8{linkUnspecified, r.kindOf(main)}
			byCode[code] = append(byCode[code], main)
		}
	}
	var groups []group
	room := (i.MTU - packetHeader - messageHeader - 4) / addressSize
	free := room
	flush := func() {
		h := hello{Interval: i.Hello, Willingness: r.willingness(), Groups: groups}
		r.Sequence++
		m := message{Type: typeHello, Validity: i.HelloValidity, Originator: r.origin, TTL: 1, Sequence: r.Sequence, Body: h.append(nil)}
		r.counters.HellosSent++
		r.enqueue(i, now, m.append(nil))
		groups, free = nil, room
	}
	for kind := range uint8(4) {
		for status := range uint8(3) {
			for addresses := byCode[[2]uint8{kind, status}]; len(addresses) > 0; {
				if free < 2 {
					flush()
				}
				n := min(len(addresses), free-1)
				groups = append(groups, group{Link: kind, Neighbour: status, Addresses: addresses[:n]})
				addresses, free = addresses[n:], free-n-1
			}
		}
	}
	flush()
}

// kindOf returns a neighbour's type in HELLOs.
func (r *router) kindOf(main netip.Addr) uint8 {
	switch n := r.Neighbours[main]; {
	case n == nil || !n.Symmetric:
		return notNeighbour
	case n.MPR:
		return mprNeighbour
	}
	return symmetricNeighbour
}

// willingness on the scale of OLSRv1, 0 to 7 (RFC 3626 section 18.8), of which 3 is the default.
func (r *router) willingness() uint8 {
	w := *r.c.RoutingWillingness
	if w == olsr.WillNever {
		return 0
	}
	return uint8(max(w/2, 1))
}

// chooseMPRs chooses the MPRs of all interfaces again if the neighbourhood has changed (RFC 3626 section
// 8.3).
func (r *router) chooseMPRs(now time.Duration) {
	if !r.mprDirty {
		return
	}
	r.mprDirty = false
	chosen := map[netip.Addr]bool{}
	for _, i := range r.ifaces {
		r.chooseOn(now, i, chosen)
	}
	for main, n := range r.Neighbours {
		n.MPR = chosen[main]
	}
}

func (r *router) chooseOn(now time.Duration, i *iface, chosen map[netip.Addr]bool) {
	var candidates []core.Candidate
	var mains []netip.Addr
	on := map[netip.Addr]bool{}
	targets := map[netip.Addr]*core.Target{}
	for _, key := range r.sortedLinks() {
		l := r.Links[key]
		n := r.Neighbours[l.Main]
		if key.Interface != i.number || on[l.Main] || n == nil || l.status(now) != olsr.Symmetric {
			continue
		}
		on[l.Main] = true
		for z := range n.TwoHops {
			if targets[z] == nil {
				targets[z] = &core.Target{}
			}
			targets[z].Reaches = append(targets[z].Reaches, core.Reach{Candidate: len(candidates), Distance: 1})
		}
		candidates = append(candidates, core.Candidate{Willingness: int(n.Willingness), Distance: 1})
		mains = append(mains, l.Main)
	}
	var all []core.Target
	for _, z := range core.Sorted(targets) {
		// A symmetric neighbour is no strict 2-hop neighbour, on whichever interface.
		if n := r.Neighbours[z]; n == nil || !n.Symmetric {
			all = append(all, *targets[z])
		}
	}
	for at, yes := range core.Cover(candidates, all, willAlways) {
		if yes {
			chosen[mains[at]] = true
		}
	}
}
