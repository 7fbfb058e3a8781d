package tdma

import (
	"slices"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
)

// fate of a frame at one receiver.
type fate uint8

// The fates: all parts so far have arrived, the receiver was not there for all, it is too far away to be counted; above
// them the radio.Reason why it has missed a part.
const (
	arrived fate = iota
	absent
	beyond
	missed
)

// verdict on a burst at one receiver.
type verdict struct {
	burst uint64 // number of the burst that it is on
	fate  fate
}

// heard tells of one receiver how many bursts of a slot it heard, and which one it follows.
type heard struct {
	bursts uint64
	source *station
}

// purposeLock is the purpose of the draws that decide which of several bursts a receiver follows.
const purposeLock = 0x74646d61

// finish delivers what has been sent in the slot that ends.
func (m *Model) finish(now int64, u *slotInUse) {
	m.current = u
	if len(u.bursts) > 1 {
		m.lock(now)
	}
	for _, b := range u.bursts {
		m.judged++
		for i := range b.parts {
			if p := b.parts[i]; p.entry != nil {
				m.arrive(now, b, &p)
			}
		}
		m.recycle(b)
	}
	clear(u.bursts)
}

// recycle keeps the memory of a burst that is over.
func (m *Model) recycle(b *burst) {
	b.filling.reset()
	if !b.isOwn() {
		b.station = nil
		m.freeBursts = append(m.freeBursts, b)
	}
}

// lock has each receiver follow one of the bursts that reach it in a slot, as in EMANE the one that comes first. With equal
// propagation delays that is any of them.
func (m *Model) lock(now int64) {
	clear(m.heard)
	for _, b := range m.current.bursts {
		from := b.station.port
		all := m.medium.Neighbours(now, from, b.air.PowerDBm)
		for i := range all {
			to := all[i].Port
			if !to.Here() || m.current.listens[to.Slot] != b.air.FrequencyHertz || b.air.PowerDBm+all[i].GainDB < all[i].Radio().SensitivityDBm() {
				continue
			}
			h := &m.heard[to.Slot]
			h.bursts++
			if phy.Uniform(m.config.Seed, purposeLock, from.NEM<<16|to.NEM, b.air.Index)*float64(h.bursts) < 1 {
				h.source = b.station
			}
		}
	}
}

// arrive has a part of a frame reach its receivers, and with the last one the frame.
func (m *Model) arrive(now int64, b *burst, p *part) {
	e := p.entry
	var to *radio.Port
	if e.nem != BroadcastNEM {
		to = m.network.Find(e.to)
	}
	m.reached = m.reached[:0]
	if p.offset > 0 || !p.last {
		m.note(now, b, p, to)
		if !p.last {
			return
		}
		m.complete(b, e, to)
	} else {
		m.reach(now, b, e, to)
	}
	e.frame.Due, e.frame.Receivers = m.current.ends, m.reached
	switch {
	case e.incomplete:
		m.network.Drop(e.frame, radio.EmissionControl)
	case to == nil && e.nem != BroadcastNEM:
		m.network.Deliver(now, e.frame) // to nobody: it is dropped as that
	default:
		m.network.Radiate(now, e.frame)
	}
	m.release(e)
}

// reach has a whole frame reach its receivers.
func (m *Model) reach(now int64, b *burst, e *entry, to *radio.Port) {
	from := b.station.port
	if e.nem == BroadcastNEM {
		all := m.medium.Neighbours(now, from, b.air.PowerDBm)
		for i := range all {
			if all[i].Port.Here() {
				m.end(all[i].Port, m.judge(now, b, &all[i]))
			}
		}
	} else if receives(to, from) {
		m.end(to, m.addressed(m.judge(now, b, m.medium.Neighbour(now, from, to, b.air.PowerDBm))))
	}
}

// receives tells that it is decided here what an addressee receives.
func receives(to, from *radio.Port) bool { return to != nil && to != from && to.Here() }

// addressed counts at the one receiver that a frame is for what is not counted at others.
func (m *Model) addressed(f fate) fate {
	switch f {
	case beyond:
		return missed + fate(radio.BelowSensitivity)
	case absent:
		return missed + fate(radio.NotListening)
	default:
		return f
	}
}

// end is what has become of a frame at a receiver.
func (m *Model) end(to *radio.Port, f fate) {
	switch {
	case f == arrived:
		m.reached = append(m.reached, to)
	case f >= missed:
		m.network.Miss(to, radio.Reason(f-missed))
	}
}

// judge decides once what becomes of a burst at a neighbour; nil is one far away.
func (m *Model) judge(now int64, b *burst, to *phy.Neighbour) fate {
	if to == nil {
		return beyond
	}
	v := &m.verdicts[to.Port.Slot]
	if v.burst == m.judged {
		return v.fate
	}
	*v = verdict{m.judged, arrived}
	reception := m.medium.Receive(now, &b.air, to, m.current.listens[to.Port.Slot])
	switch {
	case !reception.Received:
		v.fate = missed + fate(reception.Reason)
	case len(m.current.bursts) > 1 && m.heard[to.Port.Slot].source != b.station:
		v.fate = missed + fate(radio.Interfered)
	default:
		m.stations[to.Port.Slot].check(m)
	}
	return v.fate
}

// check looks through the fragments to a station, after the burst that is judged about, as in EMANE.
func (s *station) check(m *Model) {
	if ends := m.current.ends; ends-s.checked >= int64(m.config.Queue.FragmentCheck) {
		s.checkedBefore, s.checked, s.checkedBy = s.checked, ends, m.judged
	}
}

// expired tells that a station has given up a frame whose last part came at a time.
func (m *Model) expired(s *station, partAt int64) bool {
	checked := s.checked
	if s.checkedBy == m.judged {
		checked = s.checkedBefore
	}
	return checked-partAt >= int64(m.config.Queue.FragmentTimeout)
}

// note keeps what became of a part of a frame at each receiver.
func (m *Model) note(now int64, b *burst, p *part, to *radio.Port) {
	e, from := p.entry, b.station.port
	if p.offset == 0 {
		e.fates = append(e.fates[:0], make([]fate, len(m.stations))...)
	}
	switch {
	case e.incomplete: // it arrives nowhere
	case e.nem == BroadcastNEM:
		m.noteBroadcast(now, b, p)
	case receives(to, from):
		m.add(p, to.Slot, m.judge(now, b, m.medium.Neighbour(now, from, to, b.air.PowerDBm)))
	}
	e.partAt = m.current.ends
}

func (m *Model) noteBroadcast(now int64, b *burst, p *part) {
	all, next := m.medium.Neighbours(now, b.station.port, b.air.PowerDBm), 0
	for slot, s := range m.stations {
		var neighbour *phy.Neighbour
		if next < len(all) && all[next].Port.Slot == slot {
			neighbour = &all[next]
			next++
		}
		if s.port.Here() {
			m.add(p, slot, m.judge(now, b, neighbour))
		}
	}
}

// add the fate of a part to that of the parts before it.
func (m *Model) add(p *part, slot int, f fate) {
	whole := &p.fates[slot]
	switch {
	case p.offset == 0:
		*whole = f
	case *whole == arrived && m.expired(m.stations[slot], p.partAt):
		*whole = missed + fate(radio.FragmentTimeout)
	case *whole == arrived && f == beyond, *whole == beyond && f != beyond:
		*whole = missed + fate(radio.BelowSensitivity)
	case *whole == arrived:
		*whole = f
	}
}

// complete has a frame that was sent in parts reach those who got all of them.
func (m *Model) complete(b *burst, e *entry, to *radio.Port) {
	switch {
	case e.incomplete:
	case e.nem == BroadcastNEM:
		for slot, f := range e.fates {
			if s := m.stations[slot]; s.port.Here() {
				m.end(s.port, f)
			}
		}
	case receives(to, b.station.port):
		m.end(to, m.addressed(e.fates[to.Slot]))
	}
}

// moveFates puts what became of frames under way into the slots that receivers have from now on; from has their slots until
// now, -1 for those who were not there.
func (s *station) moveFates(from []int) {
	for class := range s.lines {
		for e := s.lines[class].first; e != nil; e = e.next {
			e.moveFates(from)
		}
	}
	for _, e := range s.coming {
		e.moveFates(from)
	}
}

// moveFates of the frames that end with the burst, which wait nowhere else.
func (b *burst) moveFates(from []int) {
	for _, p := range b.parts {
		if p.entry != nil && p.last {
			p.moveFates(from)
		}
	}
}

func (e *entry) moveFates(from []int) {
	if len(e.fates) == 0 {
		return
	}
	before := slices.Clone(e.fates)
	e.fates = e.fates[:0]
	for _, slot := range from {
		if slot < 0 {
			e.fates = append(e.fates, absent)
		} else {
			e.fates = append(e.fates, before[slot])
		}
	}
}
