package rfpipe

import "vignette.dev/vignette/internal/radio/phy"

// PortStatistics of one port.
type PortStatistics struct {
	// QueueDepth is the number of frames that wait to be sent.
	QueueDepth int
	Links      []phy.LinkStatistics
}

// Statistics of all ports.
func (m *Model) Statistics() (all []PortStatistics) {
	for _, s := range m.senders {
		of := PortStatistics{Links: m.medium.AppendLinks(nil, s.port)}
		if s.next != nil {
			of.QueueDepth = 1 + s.queue.length
		}
		all = append(all, of)
	}
	return all
}
