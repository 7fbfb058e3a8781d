package phy

import (
	"slices"

	"vignette.dev/vignette/internal/radio"
)

// audience is what becomes of a sender's transmissions to everybody where nothing interferes, as long as they are alike and nothing changes. In a large
// network most receivers have no chance, and many of the others are certain to receive. To find that anew for each transmission would be most of
// what it costs, and so would be to count it at each receiver: both is done for many together.
type audience struct {
	condition
	certain []*radio.Port
	open    []open
	settled []settled
	// uncounted transmissions, the last of them at a time.
	uncounted uint32
	last      int64
}

// condition under which an audience holds.
type condition struct {
	radios   uint64 // Medium.radios
	of       terms
	version  uint64 // of the environment
	reachDBm float64
}

// terms of a transmission decide what becomes of it at a receiver, but for its size and the draw.
type terms struct {
	frequencyHertz, bandwidthHertz, powerDBm, rateBitsPerSecond float64
	subID                                                       int
}

// settled is a receiver that every such transmission reaches, or none does.
type settled struct {
	at     sounding
	slot   int
	arrive bool
	reason radio.Reason
}

// open is a receiver for which a draw decides.
type open struct {
	at               sounding
	slot             int
	port             *radio.Port
	completion       float64 // of frames of the curve's size
	received, missed uint32  // uncounted
}

func (t *Transmission) terms() terms {
	return terms{t.FrequencyHertz, t.bandwidthHertz, t.PowerDBm, t.RateBitsPerSecond, t.subID}
}

// Broadcast ends a transmission to everybody, if each listens on its radio's frequency: it appends those to reached that this host serves and that receive it.
// All its Neighbours here are counted as Receive does, and those that miss it by Config.Missed, some of them by Tally only.
func (m *Medium) Broadcast(now int64, t *Transmission, reached []*radio.Port) []*radio.Port {
	s := m.member(t.Source)
	switch {
	case s == nil:
		return reached
	case m.quiet():
		return m.broadcast(now, t, s, reached)
	}
	all := m.neighbours(now, s, t.PowerDBm)
	for i := range all {
		to := &all[i]
		e := &m.ears[to.slot]
		if !e.here {
			continue
		}
		if c := m.Receive(now, t, to, e.frequencyHertz); c.Received {
			reached = append(reached, to.Port)
		} else {
			m.config.Missed(to.Port, c.Reason, 1)
		}
	}
	return reached
}

// broadcast of a member, where nothing interferes.
func (m *Medium) broadcast(now int64, t *Transmission, s *member, reached []*radio.Port) []*radio.Port {
	a, holds := &s.audience, condition{m.radios, t.terms(), m.version(now), s.reach(t.PowerDBm)}
	if a.condition != holds {
		m.tally(s)
		a.condition = holds
		m.divide(now, t, s)
	}
	if a.uncounted == 0 {
		m.untallied = append(m.untallied, s)
	}
	a.uncounted++
	a.last = now
	reached = append(reached, a.certain...)
	for i := range a.open {
		to := &a.open[i]
		if m.draws.uniform(t.Source.NEM, to.port.NEM, t.Index) < m.config.PCR.sized(to.completion, t.Bytes) {
			to.received++
			reached = append(reached, to.port)
		} else {
			to.missed++
		}
	}
	return reached
}

// divide those within a sender's reach, or nearly, by whether their fate is settled.
func (m *Medium) divide(now int64, t *Transmission, s *member) {
	a := &s.audience
	a.certain, a.open, a.settled = a.certain[:0], a.open[:0], a.settled[:0]
	m.lossesFrom(s.port.Slot, now, m.losses)
	for slot, loss := range m.losses {
		e := &m.ears[slot]
		gain := s.radio.AntennaGainDBi + e.antennaGainDBi - loss
		if !e.within(a.reachDBm+gain) || slot == s.port.Slot || !e.here {
			continue
		}
		c, heard := arrival(t, gain, e, e.frequencyHertz)
		completion := 0.0
		if heard {
			c.Reason = radio.LowSINR
			completion = m.config.PCR.unsized(c.SINRDB, t.RateBitsPerSecond)
		}
		if completion > 0 && completion < 1 {
			a.open = append(a.open, open{at: c.sounding(), slot: slot, port: m.ports[slot], completion: completion})
			continue
		}
		if completion >= 1 {
			a.certain = append(a.certain, m.ports[slot])
		}
		a.settled = append(a.settled, settled{c.sounding(), slot, completion >= 1, c.Reason})
	}
}

// Tally counts what became of broadcasts of so many senders as far as that has not been done yet, and tells whether that is all.
func (m *Medium) Tally(senders int) (all bool) {
	m.tallySome(senders)
	for slot := range m.missed {
		for i, transmissions := range m.missed[slot] {
			if transmissions > 0 {
				m.config.Missed(m.members[slot].port, radio.BelowSensitivity+radio.Reason(i), transmissions)
			}
		}
	}
	clear(m.missed)
	return len(m.untallied) == 0
}

// tallySome senders, but for Config.Missed, of which links know nothing.
func (m *Medium) tallySome(senders int) {
	for range min(senders, len(m.untallied)) {
		m.tally(m.untallied[len(m.untallied)-1])
	}
}

// tally a sender, likewise.
func (m *Medium) tally(s *member) {
	a := &s.audience
	if a.uncounted == 0 {
		return
	}
	for i := range a.settled {
		to := &a.settled[i]
		l := s.hears(to.slot, a.last, to.at)
		if to.arrive {
			l.received += uint64(a.uncounted)
		} else {
			m.miss(l, to.slot, to.reason, a.uncounted)
		}
	}
	for i := range a.open {
		to := &a.open[i]
		l := s.hears(to.slot, a.last, to.at)
		l.received += uint64(to.received)
		m.miss(l, to.slot, radio.LowSINR, to.missed)
		to.received, to.missed = 0, 0
	}
	a.uncounted = 0
	i := slices.Index(m.untallied, s)
	m.untallied = slices.Delete(m.untallied, i, i+1)
}

// miss counts transmissions on a link that its receiver, in a slot, has missed.
func (m *Medium) miss(l *link, slot int, reason radio.Reason, transmissions uint32) {
	l.missed[reason-radio.BelowSensitivity] += transmissions
	m.missed[slot][reason-radio.BelowSensitivity] += uint64(transmissions)
}
