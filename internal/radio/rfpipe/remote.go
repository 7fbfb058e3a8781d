package rfpipe

import (
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
)

// ship hands a transmission that begins to the other hosts: with its frame to those with possible receivers, and without it to
// those where it may disturb others.
func (m *Model) ship(n *radio.Network, b *burst, f *radio.Frame) {
	m.shipment = radio.Shipment{Source: b.Source.NEM, Index: b.Index, Sent: f.Sent, Start: b.Start, Due: b.End, FrequencyHertz: b.FrequencyHertz,
		PowerDBm: b.PowerDBm, RateBitsPerSecond: b.RateBitsPerSecond, Bytes: b.Bytes, Data: f.Data}
	to := n.Find(f.Destination)
	if !f.Destination.IsMulticast() && m.config.Interference == phy.None {
		if to != nil {
			n.ShipFor(&m.shipment, to, nil)
		}
		return
	}
	m.reached = m.reached[:0]
	all := m.medium.Neighbours(b.Start, b.Source, b.PowerDBm)
	for i := range all {
		m.reached = append(m.reached, all[i].Port)
	}
	if f.Destination.IsMulticast() {
		n.ShipWhole(&m.shipment, m.reached)
	} else {
		n.ShipFor(&m.shipment, to, m.reached)
	}
}

// Hear implements radio.Hearer: the transmission is on the air here as it is there, and is received at its end.
func (m *Model) Hear(n *radio.Network, _ int64, f *radio.Frame, s *radio.Shipment) {
	b := m.bursts.get()
	b.sender, b.sending, b.heard = m.senders[f.Source.Slot], true, true
	b.Transmission = phy.Transmission{Source: f.Source, Index: s.Index, Start: s.Start, End: s.Due, FrequencyHertz: s.FrequencyHertz,
		PowerDBm: s.PowerDBm, RateBitsPerSecond: s.RateBitsPerSecond, Bytes: s.Bytes}
	m.medium.Begin(&b.Transmission)
	if len(s.Data) == 0 {
		m.bursts.put(b)
		n.Radiate(s.Due, f)
		return
	}
	f.Context = b
	n.Hold(f, s.Due)
}
