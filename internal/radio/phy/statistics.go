package phy

import (
	"vignette.dev/vignette/internal/radio"
)

// PortStatistics are a radio model's statistics of one port.
type PortStatistics struct {
	Port *radio.Port
	// QueueDepth is the number of frames that wait to be sent.
	QueueDepth int
	// Transmissions over the air since the port was attached.
	Transmissions uint64
	// SlotsUsed and SlotsMissed since the port was attached, of models with time slots.
	SlotsUsed, SlotsMissed uint64
	// Links from the ports that were received, or nearly.
	Links []LinkStatistics
}

// LinkStatistics are a port's statistics of another port's transmissions, including those that it did not
// receive. Unicasts to other ports are not included.
type LinkStatistics struct {
	From *radio.Port
	// Last is the time of the last transmission, nanoseconds of the engine's clock. PowerDBm, NoiseDBm and
	// SINRDB belong to it.
	Last                       int64
	PowerDBm, NoiseDBm, SINRDB float64
	// Received counts those that arrived. Missed counts the others by radio.Reason - radio.BelowSensitivity.
	Received uint64
	Missed   [reasons]uint64
}

// reasons why a receiver misses a transmission, from radio.BelowSensitivity on.
const reasons = radio.NotListening - radio.BelowSensitivity + 1

// link is the compact form of LinkStatistics: a network has one for every ordered pair of members.
type link struct {
	last int64
	signalQuality
	missed   [reasons]uint32
	received uint64
}

// signalQuality is the power, noise and SINR of a transmission at a receiver, in dBm and dB.
type signalQuality struct{ power, noise, sinr float32 }

func (c *Reception) quality() signalQuality {
	return signalQuality{float32(c.PowerDBm), float32(c.NoiseDBm), float32(c.SINRDB)}
}

// updateLink records the time and quality of the member's last transmission at the receiver in a slot. The caller
// counts the outcomes.
func (r *member) updateLink(slot int, last int64, at signalQuality) *link {
	l := &r.links[slot]
	if l.last == 0 {
		r.heardLinks++
	}
	l.last, l.signalQuality = last, at
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
		if moved[slot] = r.links[before]; moved[slot].last != 0 {
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

// Links of a port from all ports of which something reached it, or nearly.
func (m *Medium) Links(to *radio.Port) []LinkStatistics { return m.AppendLinks(nil, to) }

// AppendLinks appends Links to a slice, for callers that must not make the loop wait for memory.
func (m *Medium) AppendLinks(all []LinkStatistics, to *radio.Port) []LinkStatistics {
	if m.member(to) == nil {
		return all
	}
	m.tallySenders(len(m.untallied))
	for _, sender := range m.members {
		l := &sender.links[to.Slot]
		if l.last == 0 {
			continue
		}
		s := LinkStatistics{From: sender.port, Last: l.last, Received: l.received,
			PowerDBm: float64(l.power), NoiseDBm: float64(l.noise), SINRDB: float64(l.sinr)}
		for i, n := range l.missed {
			s.Missed[i] = uint64(n)
		}
		all = append(all, s)
	}
	return all
}
