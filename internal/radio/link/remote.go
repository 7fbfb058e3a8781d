package link

import "vignette.dev/vignette/internal/radio"

// ship hands a frame that arrives at the given time to the other hosts that have receivers of it.
func (m *Model) ship(n *radio.Network, now int64, f *radio.Frame, arrival int64) {
	m.shipment = radio.Shipment{Source: f.Source.NEM, Sent: f.Sent, Start: now, Due: max(now, arrival), Bytes: len(f.Data), Data: f.Data}
	n.Ship(&m.shipment, f.Receivers)
}

// Hear implements radio.Hearer: the sender's host has decided that and when the frame arrives.
func (m *Model) Hear(n *radio.Network, _ int64, f *radio.Frame, s *radio.Shipment) {
	f.Receivers = m.receivers(s.Receivers)
	n.Hold(f, s.Due)
}

// receivers here by their NEM ids; without any, all that are here.
func (m *Model) receivers(nems []uint16) (receivers []*radio.Port) {
	if len(nems) == 0 {
		return m.here
	}
	for _, nem := range nems {
		p := m.byNEM[int(nem)]
		switch {
		case p == nil: // detached meanwhile
		case len(nems) == 1:
			return m.senders[p].self
		default:
			receivers = append(receivers, p)
		}
	}
	return receivers
}

// findHere notes which of the ports this host serves.
func (m *Model) findHere() {
	m.here, m.byNEM = nil, make(map[int]*radio.Port, len(m.ports))
	for _, p := range m.ports {
		if p.Here() {
			m.here = append(m.here, p)
			m.byNEM[p.NEM] = p
		}
	}
}
