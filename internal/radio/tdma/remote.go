package tdma

import (
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
)

// stream of frames, of which a sender has begun to send in parts no more than one.
type stream struct{ class, nem int }

// ship hands what a station sends in a slot that begins to the other hosts: with the frames to those with receivers of them, and
// without to those where it may disturb others.
func (m *Model) ship(s *station, slot int64) {
	m.parts = m.parts[:0]
	for i := range s.parts {
		p := &s.parts[i]
		shipped := radio.Part{Destination: p.to, Class: p.class, Sequence: p.sequence, Offset: p.offset, Bytes: p.bytes, Last: p.last, Sent: p.frame.Sent}
		if p.last {
			shipped.Data = p.frame.Data
		}
		m.parts = append(m.parts, shipped)
	}
	m.shipment = radio.Shipment{Source: s.port.NEM, Index: s.air.Index, Slot: slot, SlotDuration: m.current.duration,
		OnAir: s.air.End - s.air.Start, Start: m.current.starts(), Due: m.current.ends,
		FrequencyHertz: s.air.FrequencyHertz, PowerDBm: s.air.PowerDBm, RateBitsPerSecond: s.air.RateBitsPerSecond, Bytes: s.air.Bytes, Parts: m.parts}
	m.reached = m.reached[:0]
	all := m.medium.Neighbours(m.current.starts(), s.port, s.air.PowerDBm)
	for i := range all {
		m.reached = append(m.reached, all[i].Port)
	}
	m.network.ShipParts(&m.shipment, m.reached)
}

// Hear implements radio.Hearer.
func (m *Model) Hear(n *radio.Network, now int64, f *radio.Frame, s *radio.Shipment) {
	m.Heard(n, now, f.Source, s)
}

// Heard is Hear for any Carrier: the burst is on the air here as it is there. What arrives is decided at the end of the slot, or
// at once where that is over.
func (m *Model) Heard(n Carrier, now int64, source *radio.Port, s *radio.Shipment) {
	m.network = n
	m.followClock(now)
	u := m.slotOf(now, s)
	b := m.newBurst()
	b.station = m.stations[source.Slot]
	// All radios have the same slots, whatever is left of the difference of the hosts' clocks.
	start := m.onAir(u)
	b.air = phy.Transmission{Source: source, Index: s.Index, Start: start, End: start + s.OnAir, FrequencyHertz: s.FrequencyHertz,
		PowerDBm: s.PowerDBm, RateBitsPerSecond: s.RateBitsPerSecond, Bytes: s.Bytes}
	m.medium.Begin(&b.air)
	u.add(b)
	for i := range s.Parts {
		m.hearPart(b, &s.Parts[i])
	}
	m.finishUntil(now)
	m.arm()
}

// slotOf a burst of another host is the one with its index, unless that host goes by a schedule with other slots, as while
// that changes: its slot is then where it is, and stations listen as they do when it begins.
func (m *Model) slotOf(now int64, s *radio.Shipment) *slotInUse {
	if s.SlotDuration == m.time.duration {
		if !m.agrees(s) { // the clock may have been set
			m.compareAt = now
			m.followClock(now)
		}
		if m.agrees(s) {
			return m.use(s.Slot)
		}
	}
	if u := m.findInUse(s.Slot, s.SlotDuration); u != nil {
		return u
	}
	return m.takeInUse(s.Slot, s.SlotDuration, s.Due, m.time.at(s.Start))
}

// agrees tells that a burst begins where its slot does, but for what clocks differ.
func (m *Model) agrees(s *radio.Shipment) bool {
	off := s.Start - m.time.start(s.Slot)
	return max(off, -off) <= m.time.duration/2
}

func (m *Model) newBurst() *burst {
	if len(m.freeBursts) == 0 {
		return &burst{}
	}
	b := m.freeBursts[len(m.freeBursts)-1]
	m.freeBursts = m.freeBursts[:len(m.freeBursts)-1]
	return b
}

// hearPart adds a part of a frame to a burst, with the frame where it is the last one.
func (m *Model) hearPart(b *burst, p *radio.Part) {
	s, key := b.station, stream{p.Class, addressee(m.network, p.Destination)}
	e := s.coming[key]
	if e != nil && (e.sequence != p.Sequence || p.Offset == 0) { // the sender has given it up
		m.forget(s, key)
		e = nil
	}
	if e == nil {
		e = m.entry()
		e.to, e.nem, e.class, e.sequence = p.Destination, key.nem, p.Class, p.Sequence
	}
	e.incomplete = e.incomplete || p.Offset != e.sent
	e.sent = p.Offset + p.Bytes
	if p.Last {
		delete(s.coming, key)
		m.frame = radio.Frame{Source: s.port, Destination: p.Destination, Data: p.Data, Sent: p.Sent}
		e.frame = m.network.Keep(&m.frame)
	} else {
		if s.coming == nil {
			s.coming = map[stream]*entry{}
		}
		s.coming[key] = e
	}
	b.parts = append(b.parts, part{e, p.Offset, p.Bytes, p.Last})
}

// forget a frame of another host's station of which no more comes.
func (m *Model) forget(s *station, key stream) {
	e := s.coming[key]
	for _, u := range m.busy {
		for _, b := range u.bursts {
			b.disown(e)
		}
	}
	delete(s.coming, key)
	m.release(e)
}
