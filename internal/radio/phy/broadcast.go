package phy

import (
	"slices"

	"vignette.dev/vignette/internal/radio"
)

// broadcastOutcomes has the outcomes of a sender's similar broadcasts without interference, until something changes.
// In a large network most receivers are out of range, and many of the others always receive. Finding and
// counting all outcomes for each transmission would dominate its cost, so both are done for many
// together.
type broadcastOutcomes struct {
	outcomeConditions
	certain   []*radio.Port
	undecided []undecidedReceiver
	decided   []decidedReceiver
	// uncounted is the number of transmissions not counted yet.
	uncounted uint32
}

// outcomeConditions under which outcomes stay the same.
type outcomeConditions struct {
	radios      uint64 // Medium.radios
	signal      signalParameters
	version     uint64 // of the environment
	maxPowerDBm float64
}

// signalParameters of a transmission decide its outcome at a receiver, together with its size and the draw.
type signalParameters struct {
	frequencyHertz, bandwidthHertz, powerDBm, rateBitsPerSecond float64
	subID                                                       int
}

// decidedReceiver is a receiver at which all such transmissions have the same outcome.
type decidedReceiver struct {
	sinr   float32
	slot   int
	arrive bool
	reason radio.Reason
}

// undecidedReceiver is a receiver for which a draw decides.
type undecidedReceiver struct {
	sinr             float32
	slot             int
	port             *radio.Port
	completion       float64 // of frames of the curve's size
	received, missed uint32  // uncounted
}

func (t *Transmission) parameters() signalParameters {
	return signalParameters{t.FrequencyHertz, t.bandwidthHertz, t.PowerDBm, t.RateBitsPerSecond, t.subID}
}

// Broadcast ends a transmission to all receivers that listen on its frequency. It appends the local ones that
// receive it to reached. All local Neighbours are counted as by Receive. Config.Missed is called for those
// that miss it, for some of them not before Tally.
func (m *Medium) Broadcast(now int64, t *Transmission, reached []*radio.Port) []*radio.Port {
	s := m.member(t.Source)
	switch {
	case s == nil:
		return reached
	case m.isInterferenceFree():
		return m.broadcast(now, t, s, reached)
	}
	all := m.neighbours(now, s, t.PowerDBm)
	for i := range all {
		to := &all[i]
		e := &m.receivers[to.slot]
		if !e.local {
			continue
		}
		if c := m.Receive(now, t, to, e.frequencyHertz, true); c.Received {
			reached = append(reached, to.Port)
		} else {
			m.config.Missed(to.Port, c.Reason, 1)
		}
	}
	return reached
}

// broadcast is Broadcast without interference.
func (m *Medium) broadcast(now int64, t *Transmission, s *member, reached []*radio.Port) []*radio.Port {
	a, holds := &s.broadcasts, outcomeConditions{m.radios, t.parameters(), m.version(now), s.raiseMaxPower(t.PowerDBm)}
	if a.outcomeConditions != holds {
		m.tallySender(s)
		a.outcomeConditions = holds
		m.classify(now, t, s)
	}
	if a.uncounted == 0 {
		m.untallied = append(m.untallied, s)
	}
	a.uncounted++
	reached = append(reached, a.certain...)
	for i := range a.undecided {
		to := &a.undecided[i]
		if m.draws.uniform(t.Source.NEM, to.port.NEM, t.Index) < m.config.PCR.scaleToSize(to.completion, t.Bytes) {
			to.received++
			reached = append(reached, to.port)
		} else {
			to.missed++
		}
	}
	return reached
}

// classify sorts the receivers near or in range by whether their outcome is always the same.
func (m *Medium) classify(now int64, t *Transmission, s *member) {
	a := &s.broadcasts
	a.certain, a.undecided, a.decided = a.certain[:0], a.undecided[:0], a.decided[:0]
	m.lossesFrom(s.port.Slot, now, m.losses)
	for slot, loss := range m.losses {
		e := &m.receivers[slot]
		gain := s.radio.AntennaGainDBi + e.antennaGainDBi - loss
		if !e.inRange(a.maxPowerDBm+gain) || slot == s.port.Slot || !e.local {
			continue
		}
		c, heard := receivedSignal(t, gain, e, e.frequencyHertz)
		completion := 0.0
		if heard {
			c.Reason = radio.LowSINR
			completion = m.config.PCR.unscaledCompletion(c.SINRDB, t.RateBitsPerSecond)
		}
		if completion > 0 && completion < 1 {
			a.undecided = append(a.undecided, undecidedReceiver{sinr: float32(c.SINRDB), slot: slot, port: m.ports[slot], completion: completion})
			continue
		}
		if completion >= 1 {
			a.certain = append(a.certain, m.ports[slot])
		}
		a.decided = append(a.decided, decidedReceiver{float32(c.SINRDB), slot, completion >= 1, c.Reason})
	}
}

// Tally counts the outcomes of up to that many senders' broadcasts, and reports whether all are counted.
func (m *Medium) Tally(senders int) (all bool) {
	m.tallySenders(senders)
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

// tallySenders counts on links only, without calling Config.Missed.
func (m *Medium) tallySenders(senders int) {
	for range min(senders, len(m.untallied)) {
		m.tallySender(m.untallied[len(m.untallied)-1])
	}
}

// tallySender counts one sender's broadcasts on links only.
func (m *Medium) tallySender(s *member) {
	a := &s.broadcasts
	if a.uncounted == 0 {
		return
	}
	for i := range a.decided {
		to := &a.decided[i]
		l := s.updateLink(to.slot, to.sinr)
		if to.arrive {
			l.received += uint64(a.uncounted)
		} else {
			m.countMissed(l, to.slot, to.reason, a.uncounted)
		}
	}
	for i := range a.undecided {
		to := &a.undecided[i]
		l := s.updateLink(to.slot, to.sinr)
		l.received += uint64(to.received)
		m.countMissed(l, to.slot, radio.LowSINR, to.missed)
		to.received, to.missed = 0, 0
	}
	a.uncounted = 0
	i := slices.Index(m.untallied, s)
	m.untallied = slices.Delete(m.untallied, i, i+1)
}

// countMissed counts missed transmissions on a link and at its receiver.
func (m *Medium) countMissed(l *link, slot int, reason radio.Reason, transmissions uint32) {
	l.missed[reason-radio.BelowSensitivity] += transmissions
	m.missed[slot][reason-radio.BelowSensitivity] += uint64(transmissions)
}
