package tdma

import (
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
)

// streamKey identifies frames of which a sender sends at most one at a time in parts.
type streamKey struct{ class, nem int }

// ship sends a station's burst to the other hosts as its slot begins. Hosts with receivers get the frames;
// hosts where it only interferes do not.
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
		OnAir: s.air.End - s.air.Start, Start: m.current.start(), Due: m.current.end,
		FrequencyHertz: s.air.FrequencyHertz, PowerDBm: s.air.PowerDBm, RateBitsPerSecond: s.air.RateBitsPerSecond, Bytes: s.air.Bytes, Parts: m.parts}
	m.receivers = m.receivers[:0]
	all := m.medium.Neighbours(m.current.start(), s.port, s.air.PowerDBm)
	for i := range all {
		m.receivers = append(m.receivers, all[i].Port)
	}
	m.network.ShipParts(&m.shipment, m.receivers)
}

// ReceiveShipment implements radio.DistributedModel. The burst is on the air at the same time on all hosts. Its outcome
// is decided at the end of the slot, or at once if that is over. A transmission of another network is in no slot: it only
// interferes.
func (m *Model) ReceiveShipment(n *radio.Network, now int64, f *radio.Frame, s *radio.Shipment) {
	m.network = n
	m.followClock(now)
	if f.Source.Neighbour {
		onAir := m.time.offset - m.airOffset
		m.medium.Begin(&phy.Transmission{Source: f.Source, Index: s.Index, Start: s.Start + onAir, End: s.Due + onAir, FrequencyHertz: s.FrequencyHertz, PowerDBm: s.PowerDBm})
		return
	}
	u := m.slotOf(now, s)
	b := m.bursts.Get()
	b.station = m.stations[f.Source.Slot]
	// All radios have the same slots, whatever difference of the hosts' clocks remains.
	start := m.airStart(u)
	b.air = phy.Transmission{Source: f.Source, Index: s.Index, Start: start, End: start + s.OnAir, FrequencyHertz: s.FrequencyHertz,
		PowerDBm: s.PowerDBm, RateBitsPerSecond: s.RateBitsPerSecond, Bytes: s.Bytes}
	m.medium.Begin(&b.air)
	u.add(b)
	for i := range s.Parts {
		m.addRemotePart(b, &s.Parts[i])
	}
	m.finishUntil(now)
	m.scheduleWake()
}

// slotOf returns the slot of another host's burst, by its index. During a change that host's schedule may
// have other slots. The burst then gets a slot of its own at its time, and stations listen as they do when it
// begins.
func (m *Model) slotOf(now int64, s *radio.Shipment) *slotInUse {
	if s.SlotDuration == m.time.duration {
		if !m.agrees(s) { // the clock may have been set
			m.nextClockCheck = now
			m.followClock(now)
		}
		if m.agrees(s) {
			return m.openSlot(s.Slot)
		}
	}
	if u := m.findInUse(s.Slot, s.SlotDuration); u != nil {
		return u
	}
	return m.newSlotInUse(s.Slot, s.SlotDuration, s.Due, m.time.slotAt(s.Start))
}

// agrees reports whether a burst begins where its slot does, up to a difference of clocks.
func (m *Model) agrees(s *radio.Shipment) bool {
	off := s.Start - m.time.start(s.Slot)
	return max(off, -off) <= m.time.duration/2
}

// addRemotePart adds a part of a frame to a burst, and the frame with its last part.
func (m *Model) addRemotePart(b *burst, p *radio.Part) {
	s, key := b.station, streamKey{p.Class, addressee(m.network, p.Destination)}
	e := s.incoming[key]
	if e != nil && (e.sequence != p.Sequence || p.Offset == 0) { // the sender has given it up
		m.dropIncoming(s, key)
		e = nil
	}
	if e == nil {
		e = m.entries.Get()
		e.to, e.nem, e.class, e.sequence = p.Destination, key.nem, p.Class, p.Sequence
	}
	e.incomplete = e.incomplete || p.Offset != e.sent
	e.sent = p.Offset + p.Bytes
	if p.Last {
		delete(s.incoming, key)
		m.frame = radio.Frame{Source: s.port, Destination: p.Destination, Data: p.Data, Sent: p.Sent}
		e.frame = m.network.Keep(&m.frame)
	} else {
		if s.incoming == nil {
			s.incoming = map[streamKey]*entry{}
		}
		s.incoming[key] = e
	}
	b.parts = append(b.parts, part{e, p.Offset, p.Bytes, p.Last})
}

// dropIncoming drops an incomplete frame of a station on another host.
func (m *Model) dropIncoming(s *station, key streamKey) {
	e := s.incoming[key]
	for _, u := range m.busy {
		for _, b := range u.bursts {
			b.removeEntry(e)
		}
	}
	delete(s.incoming, key)
	m.freeEntry(e)
}
