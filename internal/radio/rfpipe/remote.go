package rfpipe

import (
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
)

// ship sends a transmission that begins to the other hosts. Hosts with possible receivers get its frame;
// hosts where it only interferes do not.
func (m *Model) ship(n *radio.Network, b *burst, f *radio.Frame) {
	m.shipment = radio.Shipment{Source: b.Source.NEM, Index: b.Index, Sent: f.Sent, Start: b.Start, Due: b.End, FrequencyHertz: b.FrequencyHertz,
		PowerDBm: b.PowerDBm, RateBitsPerSecond: b.RateBitsPerSecond, Bytes: b.Bytes, Data: f.Data}
	to := n.Find(f.Destination)
	if !f.Destination.IsMulticast() && m.config.Interference == phy.None && !n.HasNeighbours() {
		if to != nil {
			n.ShipToAddressee(&m.shipment, to, nil)
		}
		return
	}
	m.receivers = m.receivers[:0]
	all := m.medium.Neighbours(b.Start, b.Source, b.PowerDBm)
	for i := range all {
		m.receivers = append(m.receivers, all[i].Port)
	}
	if f.Destination.IsMulticast() {
		n.ShipToHosts(&m.shipment, m.receivers)
	} else {
		n.ShipToAddressee(&m.shipment, to, m.receivers)
	}
}

// ReceiveShipment implements radio.DistributedModel: the transmission is on the air at the same time on all hosts, and
// is received at its end.
func (m *Model) ReceiveShipment(n *radio.Network, _ int64, f *radio.Frame, s *radio.Shipment) {
	b := m.bursts.Get()
	b.sender, b.sending, b.remote = m.senders[f.Source.Slot], true, true
	b.Transmission = phy.Transmission{Source: f.Source, Index: s.Index, Start: s.Start, End: s.Due, FrequencyHertz: s.FrequencyHertz,
		PowerDBm: s.PowerDBm, RateBitsPerSecond: s.RateBitsPerSecond, Bytes: s.Bytes}
	m.medium.Begin(&b.Transmission)
	if len(s.Data) == 0 {
		m.recycle(b)
		n.Radiate(s.Due, f)
		return
	}
	f.Context = b
	n.Hold(f, s.Due)
}
