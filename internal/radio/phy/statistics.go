package phy

import (
	"vignette.dev/vignette/internal/radio"
)

// LinkStatistics are a port's statistics of another port's transmissions, including those that it did not
// receive. Unicasts to other ports are not included.
type LinkStatistics struct {
	// From is the sender's name, FromNEM its NEM id.
	From    string
	FromNEM int
	// SINRDB of the last transmission.
	SINRDB float64
	// Received counts those that arrived. Missed counts the others by radio.Reason - radio.BelowSensitivity.
	Received uint64
	Missed   [reasons]uint64
}

// reasons why a receiver misses a transmission, from radio.BelowSensitivity on.
const reasons = radio.NotListening - radio.BelowSensitivity + 1

// link is the compact form of LinkStatistics: a network has one for every ordered pair of members.
type link struct {
	heard    bool // something was sent on it
	sinr     float32
	missed   [reasons]uint32
	received uint64
}

// updateLink records the SINR of the member's last transmission at the receiver in a slot. The caller counts the
// outcomes.
func (r *member) updateLink(slot int, sinr float32) *link {
	l := &r.links[slot]
	if !l.heard {
		r.heardLinks++
	}
	l.heard, l.sinr = true, sinr
	return l
}

// moveLinks moves the links to the receivers' new slots. from has their previous slots, -1 for new ones.
func (r *member) moveLinks(from []int) {
	if len(from) == len(r.links)+1 && from[len(r.links)] == -1 && inOrder(from[:len(r.links)]) {
		r.links = append(r.links, link{})
		return
	}
	moved := make([]link, len(from))
	r.heardLinks = 0
	for slot, before := range from {
		if before < 0 || before >= len(r.links) {
			continue
		}
		if moved[slot] = r.links[before]; moved[slot].heard {
			r.heardLinks++
		}
	}
	r.links = moved
}

func inOrder(from []int) bool {
	for slot, before := range from {
		if before != slot {
			return false
		}
	}
	return true
}

// LinksHeard is the number of links, of all ports, on which something was sent.
func (m *Medium) LinksHeard() (links int) {
	m.tallySenders(len(m.untallied))
	for _, r := range m.members {
		links += r.heardLinks
	}
	return links
}

// AppendLinks appends the links of a port from all ports of which something reached it, or nearly. The slice may have
// room already, for callers that must not make the loop wait for memory.
func (m *Medium) AppendLinks(all []LinkStatistics, to *radio.Port) []LinkStatistics {
	if m.member(to) == nil {
		return all
	}
	m.tallySenders(len(m.untallied))
	for _, sender := range m.members {
		l := &sender.links[to.Slot]
		if !l.heard {
			continue
		}
		s := LinkStatistics{From: sender.port.Name, FromNEM: sender.port.NEM, SINRDB: float64(l.sinr), Received: l.received}
		for i, n := range l.missed {
			s.Missed[i] = uint64(n)
		}
		all = append(all, s)
	}
	return all
}
