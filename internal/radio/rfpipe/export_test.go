package rfpipe

import "vignette.dev/vignette/internal/radio/phy"

// Statistics of all ports.
func (m *Model) Statistics() (all []phy.PortStatistics) {
	for _, s := range m.senders {
		of := phy.PortStatistics{Port: s.port, Links: m.medium.Links(s.port)}
		if s.next != nil {
			of.QueueDepth = 1 + s.queue.length
		}
		all = append(all, of)
	}
	return all
}
