package phy

import (
	"vignette.dev/vignette/internal/radio"
)

// PortStatistics are what a radio model tells of one port.
type PortStatistics struct {
	Port *radio.Port
	// QueueDepth is the number of frames that wait to be sent.
	QueueDepth int
	// Transmissions over the air since the port was attached.
	Transmissions uint64
	// SlotsUsed and SlotsMissed since the port was attached, of models with time slots.
	SlotsUsed, SlotsMissed uint64
	// Links to those who were heard by the port, or nearly.
	Links []LinkStatistics
}

// LinkStatistics are what a port has of another one's transmissions, those that it did not receive included. Frames to others
// alone are not among them.
type LinkStatistics struct {
	From *radio.Port
	// Last is the time of the last one, nanoseconds of CLOCK_MONOTONIC, and PowerDBm, NoiseDBm and SINRDB are its own.
	Last                       int64
	PowerDBm, NoiseDBm, SINRDB float64
	// Received counts those that arrived, Missed those that did not by radio.Reason - radio.BelowSensitivity.
	Received uint64
	Missed   [reasons]uint64
}

// reasons why a receiver misses a transmission, from radio.BelowSensitivity on.
const reasons = radio.NotListening - radio.BelowSensitivity + 1

// link is the bounded form of LinkStatistics: a network has one for every ordered pair of members.
type link struct {
	last int64
	sounding
	missed   [reasons]uint32
	received uint64
}

// sounding is how well a receiver has heard a transmission, in dBm and dB.
type sounding struct{ power, noise, ratio float32 }

func (c *Reception) sounding() sounding {
	return sounding{float32(c.PowerDBm), float32(c.NoiseDBm), float32(c.SINRDB)}
}

// hears tells that the receiver in a slot has heard or missed transmissions of the member, the last of them at a time; the caller counts them.
func (r *member) hears(slot int, last int64, at sounding) *link {
	l := &r.links[slot]
	if l.last == 0 {
		r.heard++
	}
	l.last, l.sounding = last, at
	return l
}

// moveLinks puts what was heard into the slots that receivers have from now on; from has their slots until now, -1 for new ones.
func (r *member) moveLinks(from []int) {
	if len(from) == len(r.links)+1 && from[len(r.links)] == -1 && inOrder(from[:len(r.links)]) {
		r.links = append(r.links, link{})
		return
	}
	moved := make([]link, len(from))
	r.heard = 0
	for slot, before := range from {
		if before < 0 || before >= len(r.links) {
			continue
		}
		if moved[slot] = r.links[before]; moved[slot].last != 0 {
			r.heard++
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

// LinksHeard is on how many links, of all ports, something was sent.
func (m *Medium) LinksHeard() (links int) {
	m.tallySome(len(m.untallied))
	for _, r := range m.members {
		links += r.heard
	}
	return links
}

// Links of a port to those of which it has heard anything.
func (m *Medium) Links(to *radio.Port) []LinkStatistics { return m.AppendLinks(nil, to) }

// AppendLinks appends Links to a slice, for callers that must not have the loop wait for memory.
func (m *Medium) AppendLinks(all []LinkStatistics, to *radio.Port) []LinkStatistics {
	if m.member(to) == nil {
		return all
	}
	m.tallySome(len(m.untallied))
	for _, sender := range m.members {
		l := &sender.links[to.Slot]
		if l.last == 0 {
			continue
		}
		s := LinkStatistics{From: sender.port, Last: l.last, Received: l.received,
			PowerDBm: float64(l.power), NoiseDBm: float64(l.noise), SINRDB: float64(l.ratio)}
		for i, n := range l.missed {
			s.Missed[i] = uint64(n)
		}
		all = append(all, s)
	}
	return all
}
