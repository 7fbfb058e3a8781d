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
func (m *Model) finish(now int64) {
	if len(m.active) > 1 {
		m.lock(now)
	}
	for _, s := range m.active {
		m.judged++
		for i := range s.parts {
			if p := s.parts[i]; p.entry != nil {
				m.arrive(now, s, &p)
			}
		}
		s.filling.reset()
	}
	clear(m.active)
	m.active = m.active[:0]
}

// lock has each receiver follow one of the bursts that reach it in a slot, as in EMANE the one that comes first. With equal
// propagation delays that is any of them.
func (m *Model) lock(now int64) {
	clear(m.heard)
	for _, s := range m.active {
		all := m.medium.Neighbours(now, s.port, s.air.PowerDBm)
		for i := range all {
			to := all[i].Port
			if m.stations[to.Slot].listens != s.air.FrequencyHertz || s.air.PowerDBm+all[i].GainDB < m.medium.Radio(to).SensitivityDBm() {
				continue
			}
			h := &m.heard[to.Slot]
			h.bursts++
			if phy.Uniform(m.config.Seed, purposeLock, s.port.NEM<<16|to.NEM, s.air.Index)*float64(h.bursts) < 1 {
				h.source = s
			}
		}
	}
}

// arrive has a part of a frame reach its receivers, and with the last one the frame.
func (m *Model) arrive(now int64, s *station, p *part) {
	e := p.entry
	var to *radio.Port
	if e.nem != BroadcastNEM {
		to = m.network.Find(e.frame.Destination)
	}
	m.reached = m.reached[:0]
	if p.offset > 0 || !p.last {
		m.note(now, s, p, to)
		if !p.last {
			return
		}
		m.complete(s, e, to)
	} else {
		m.reach(now, s, e, to)
	}
	e.frame.Due, e.frame.Receivers = m.ends, m.reached
	switch {
	case e.silenced:
		m.network.Drop(e.frame, radio.EmissionControl)
	case to == nil && e.nem != BroadcastNEM:
		m.network.Deliver(now, e.frame) // to nobody: it is dropped as that
	default:
		m.network.Radiate(now, e.frame)
	}
	m.release(e)
}

// reach has a whole frame reach its receivers.
func (m *Model) reach(now int64, s *station, e *entry, to *radio.Port) {
	if e.nem == BroadcastNEM {
		all := m.medium.Neighbours(now, s.port, s.air.PowerDBm)
		for i := range all {
			m.end(all[i].Port, m.judge(now, s, &all[i]))
		}
	} else if to != nil && to != s.port {
		m.end(to, m.addressed(m.judge(now, s, m.medium.Neighbour(now, s.port, to, s.air.PowerDBm))))
	}
}

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

// judge decides once what becomes of a station's burst at a neighbour; nil is one far away.
func (m *Model) judge(now int64, s *station, to *phy.Neighbour) fate {
	if to == nil {
		return beyond
	}
	v := &m.verdicts[to.Port.Slot]
	if v.burst == m.judged {
		return v.fate
	}
	r := m.stations[to.Port.Slot]
	*v = verdict{m.judged, arrived}
	reception := m.medium.Receive(now, &s.air, to, r.listens)
	switch {
	case !reception.Received:
		v.fate = missed + fate(reception.Reason)
	case len(m.active) > 1 && m.heard[to.Port.Slot].source != s:
		v.fate = missed + fate(radio.Interfered)
	default:
		r.check(m)
	}
	return v.fate
}

// check looks through the fragments to a station, after the burst that is judged about, as in EMANE.
func (s *station) check(m *Model) {
	if m.ends-s.checked >= int64(m.config.Queue.FragmentCheck) {
		s.checkedBefore, s.checked, s.checkedBy = s.checked, m.ends, m.judged
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
func (m *Model) note(now int64, s *station, p *part, to *radio.Port) {
	e := p.entry
	if p.offset == 0 {
		e.fates = append(e.fates[:0], make([]fate, len(m.stations))...)
	}
	if e.nem != BroadcastNEM {
		if to != nil && to != s.port {
			m.add(p, to.Slot, m.judge(now, s, m.medium.Neighbour(now, s.port, to, s.air.PowerDBm)))
		}
	} else {
		all, next := m.medium.Neighbours(now, s.port, s.air.PowerDBm), 0
		for slot := range m.stations {
			var neighbour *phy.Neighbour
			if next < len(all) && all[next].Port.Slot == slot {
				neighbour = &all[next]
				next++
			}
			m.add(p, slot, m.judge(now, s, neighbour))
		}
	}
	e.partAt = m.ends
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
func (m *Model) complete(s *station, e *entry, to *radio.Port) {
	switch {
	case e.silenced:
	case e.nem != BroadcastNEM:
		if to != nil && to != s.port {
			m.end(to, m.addressed(e.fates[to.Slot]))
		}
	default:
		for slot, f := range e.fates {
			m.end(m.stations[slot].port, f)
		}
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
	for _, p := range s.parts {
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
