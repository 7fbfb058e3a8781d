package link

import "vignette.dev/vignette/internal/radio"

// ship hands a frame that arrives at the given time to the other hosts that have receivers of it.
func (m *Model) ship(n *radio.Network, now int64, f *radio.Frame, arrival int64) {
	m.shipment = radio.Shipment{Source: f.Source.NEM, Sent: f.Sent, Start: now, Due: max(now, arrival), Bytes: len(f.Data), Data: f.Data}
	n.Ship(&m.shipment, f.Receivers)
}

// ReceiveShipment implements radio.DistributedModel. The sender's host has decided whether and when the frame arrives.
func (m *Model) ReceiveShipment(n *radio.Network, _ int64, f *radio.Frame, s *radio.Shipment) {
	f.Receivers = m.receivers(s.Receivers)
	n.Hold(f, s.Due)
}

// receivers returns local ports by their NEM ids; without ids, all local ports.
func (m *Model) receivers(nems []uint16) (receivers []*radio.Port) {
	if len(nems) == 0 {
		return m.localPorts
	}
	for _, nem := range nems {
		p := m.byNEM[int(nem)]
		switch {
		case p == nil: // detached meanwhile
		case len(nems) == 1:
			return m.senders[p.Slot].self
		default:
			receivers = append(receivers, p)
		}
	}
	return receivers
}

// findLocalPorts lists the ports that this host serves.
func (m *Model) findLocalPorts() {
	m.localPorts, m.byNEM = nil, make(map[int]*radio.Port, len(m.ports))
	for _, p := range m.ports {
		if p.IsLocal() {
			m.localPorts = append(m.localPorts, p)
			m.byNEM[p.NEM] = p
		}
	}
}
