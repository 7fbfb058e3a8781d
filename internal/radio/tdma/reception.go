package tdma

import (
	"slices"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
)

// outcome is a frame's outcome at one receiver.
type outcome uint8

// The outcomes. arrived: all parts so far. absent: the receiver was not there for all parts. outOfRange: too
// far away to be counted. Values from missed on add the radio.Reason why a part was missed.
const (
	arrived outcome = iota
	absent
	outOfRange
	missed
)

// burstOutcome is a burst's outcome at one receiver.
type burstOutcome struct {
	burst   uint64 // number of the burst
	outcome outcome
}

// burstsInRange has, for one receiver, the number of bursts of a slot in range, and the station that it follows.
type burstsInRange struct {
	count    uint64
	followed *station
}

// purposeLock separates the draws that decide which of several bursts a receiver follows.
const purposeLock = 0x74646d61

// finishSlot delivers the frames of the slot that ends.
func (m *Model) finishSlot(now int64, u *slotInUse) {
	m.current = u
	if len(u.bursts) > 1 {
		m.chooseFollowed(now)
	}
	for _, b := range u.bursts {
		m.burstNumber++
		for i := range b.parts {
			if p := b.parts[i]; p.entry != nil {
				m.finishPart(now, b, &p)
			}
		}
		m.recycle(b)
	}
	clear(u.bursts)
}

// recycle keeps the memory of a finished burst.
func (m *Model) recycle(b *burst) {
	b.filling.reset()
	if !b.isLocal() {
		b.station = nil
		m.bursts.Keep(b)
	}
}

// chooseFollowed makes each receiver follow one of the bursts in range in a slot. EMANE follows the first to arrive;
// with equal propagation delays that is any of them.
func (m *Model) chooseFollowed(now int64) {
	clear(m.inRange)
	for _, b := range m.current.bursts {
		from := b.station.port
		all := m.medium.Neighbours(now, from, b.air.PowerDBm)
		for i := range all {
			to := all[i].Port
			if !to.IsLocal() || m.current.listensOn[to.Slot] != b.air.FrequencyHertz || b.air.PowerDBm+all[i].GainDB < all[i].Radio().SensitivityDBm() {
				continue
			}
			h := &m.inRange[to.Slot]
			h.count++
			if phy.Uniform(m.config.Seed, purposeLock, from.NEM<<16|to.NEM, b.air.Index)*float64(h.count) < 1 {
				h.followed = b.station
			}
		}
	}
}

// finishPart ends a part of a frame at its receivers, and the frame with its last part.
func (m *Model) finishPart(now int64, b *burst, p *part) {
	e := p.entry
	var to *radio.Port
	if e.nem != BroadcastNEM {
		to = m.network.Find(e.to)
	}
	m.receivers = m.receivers[:0]
	if p.offset > 0 || !p.last {
		m.receivePart(now, b, p, to)
		if !p.last {
			return
		}
		m.completeFrame(b, e, to)
	} else {
		m.receiveFrame(now, b, e, to)
	}
	e.frame.Due, e.frame.Receivers = m.current.end, m.receivers
	switch {
	case e.incomplete:
		m.network.Drop(e.frame, radio.EmissionControl)
	case to == nil && e.nem != BroadcastNEM:
		m.network.Deliver(now, e.frame) // without receivers, so it is dropped as NoReceiver
	default:
		m.network.Radiate(now, e.frame)
	}
	m.freeEntry(e)
}

// receiveFrame receives a frame that was sent whole.
func (m *Model) receiveFrame(now int64, b *burst, e *entry, to *radio.Port) {
	from := b.station.port
	if e.nem == BroadcastNEM {
		all := m.medium.Neighbours(now, from, b.air.PowerDBm)
		for i := range all {
			if all[i].Port.IsLocal() {
				m.recordOutcome(all[i].Port, m.receiveBurst(now, b, &all[i]))
			}
		}
	} else if decidedHere(to, from) {
		m.recordOutcome(to, m.outcomeAtAddressee(m.receiveBurst(now, b, m.medium.Neighbour(now, from, to, b.air.PowerDBm))))
	}
}

// decidedHere reports whether this host decides what the addressee receives.
func decidedHere(to, from *radio.Port) bool { return to != nil && to != from && to.IsLocal() }

// outcomeAtAddressee makes an outcome countable that is only counted at a frame's addressee.
func (m *Model) outcomeAtAddressee(f outcome) outcome {
	switch f {
	case outOfRange:
		return missed + outcome(radio.BelowSensitivity)
	case absent:
		return missed + outcome(radio.NotListening)
	default:
		return f
	}
}

// recordOutcome records a frame's outcome at a receiver.
func (m *Model) recordOutcome(to *radio.Port, f outcome) {
	switch {
	case f == arrived:
		m.receivers = append(m.receivers, to)
	case f >= missed:
		to.AddMissed(radio.Reason(f-missed), 1)
	}
}

// receiveBurst decides a burst's outcome at a neighbour, once; nil is a port far away.
func (m *Model) receiveBurst(now int64, b *burst, to *phy.Neighbour) outcome {
	if to == nil {
		return outOfRange
	}
	v := &m.outcomes[to.Port.Slot]
	if v.burst == m.burstNumber {
		return v.outcome
	}
	*v = burstOutcome{m.burstNumber, arrived}
	followed := len(m.current.bursts) <= 1 || m.inRange[to.Port.Slot].followed == b.station
	reception := m.medium.Receive(now, &b.air, to, m.current.listensOn[to.Port.Slot], followed)
	if reception.Received {
		m.stations[to.Port.Slot].checkFragments(m)
	} else {
		v.outcome = missed + outcome(reception.Reason)
	}
	return v.outcome
}

// checkFragments looks for expired fragments to a station after the current burst, as EMANE does.
func (s *station) checkFragments(m *Model) {
	if ends := m.current.end; ends-s.lastCheck >= int64(m.config.Queue.FragmentCheck) {
		s.previousCheck, s.lastCheck, s.checkBurst = s.lastCheck, ends, m.burstNumber
	}
}

// hasGivenUp reports whether a station has given up a frame whose last part came at partAt.
func (m *Model) hasGivenUp(s *station, partAt int64) bool {
	checked := s.lastCheck
	if s.checkBurst == m.burstNumber {
		checked = s.previousCheck
	}
	return checked-partAt >= int64(m.config.Queue.FragmentTimeout)
}

// receivePart keeps the outcome of a part of a frame at each receiver.
func (m *Model) receivePart(now int64, b *burst, p *part, to *radio.Port) {
	e, from := p.entry, b.station.port
	if p.offset == 0 {
		e.outcomes = append(e.outcomes[:0], make([]outcome, len(m.stations))...)
	}
	switch {
	case e.incomplete: // it arrives nowhere
	case e.nem == BroadcastNEM:
		m.receiveBroadcastPart(now, b, p)
	case decidedHere(to, from):
		m.addOutcome(p, to.Slot, m.receiveBurst(now, b, m.medium.Neighbour(now, from, to, b.air.PowerDBm)))
	}
	e.partAt = m.current.end
}

func (m *Model) receiveBroadcastPart(now int64, b *burst, p *part) {
	all, next := m.medium.Neighbours(now, b.station.port, b.air.PowerDBm), 0
	for slot, s := range m.stations {
		var neighbour *phy.Neighbour
		if next < len(all) && all[next].Port.Slot == slot {
			neighbour = &all[next]
			next++
		}
		if s.port.IsLocal() {
			m.addOutcome(p, slot, m.receiveBurst(now, b, neighbour))
		}
	}
}

// addOutcome combines a part's outcome with that of the parts before it.
func (m *Model) addOutcome(p *part, slot int, f outcome) {
	whole := &p.outcomes[slot]
	switch {
	case p.offset == 0:
		*whole = f
	case *whole == arrived && m.hasGivenUp(m.stations[slot], p.partAt):
		*whole = missed + outcome(radio.FragmentTimeout)
	case *whole == arrived && f == outOfRange, *whole == outOfRange && f != outOfRange:
		*whole = missed + outcome(radio.BelowSensitivity)
	case *whole == arrived:
		*whole = f
	}
}

// completeFrame delivers a frame that was sent in parts to those who got all of them.
func (m *Model) completeFrame(b *burst, e *entry, to *radio.Port) {
	switch {
	case e.incomplete:
	case e.nem == BroadcastNEM:
		for slot, f := range e.outcomes {
			if s := m.stations[slot]; s.port.IsLocal() {
				m.recordOutcome(s.port, f)
			}
		}
	case decidedHere(to, b.station.port):
		m.recordOutcome(to, m.outcomeAtAddressee(e.outcomes[to.Slot]))
	}
}

// moveOutcomes moves the outcomes of frames under way to the receivers' new slots. from has their previous
// slots, -1 for new ones.
func (s *station) moveOutcomes(from []int) {
	for class := range s.classes {
		for e := s.classes[class].first; e != nil; e = e.next {
			e.moveOutcomes(from)
		}
	}
	for _, e := range s.incoming {
		e.moveOutcomes(from)
	}
}

// moveOutcomes does the same for frames that end with the burst, which are in no queue.
func (b *burst) moveOutcomes(from []int) {
	for _, p := range b.parts {
		if p.entry != nil && p.last {
			p.moveOutcomes(from)
		}
	}
}

func (e *entry) moveOutcomes(from []int) {
	if len(e.outcomes) == 0 {
		return
	}
	before := slices.Clone(e.outcomes)
	e.outcomes = e.outcomes[:0]
	for _, slot := range from {
		if slot < 0 {
			e.outcomes = append(e.outcomes, absent)
		} else {
			e.outcomes = append(e.outcomes, before[slot])
		}
	}
}
