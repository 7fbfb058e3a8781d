package networks

import (
	"slices"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/figures"
)

func (a *attachment) lastCounters(counters radio.Counters) []figures.Network {
	drops, restarted := a.Counters.RingCounts()
	return []figures.Network{{UID: a.NetworkUID, Network: a.Network,
		Nodes: []figures.Node{{Node: a.Member.Node, Counters: counters, RingDrops: drops, RingRestarted: restarted, Settings: a.Settings, Slots: a.slots}}}}
}

// currentCounters returns the counters of a detached attachment. They change until none of its frames is under
// way.
func (m *Networks) currentCounters(a *attachment) radio.Counters {
	if current, err := m.Plane.Counters(a.port); err == nil { // else they do not change any more
		a.last = current
	}
	return a.last
}

// lastCounted are the last counters of an attachment that has been detached, or has never joined.
func (a *attachment) lastCounted() (last radio.Counters) {
	switch {
	case a.port != 0:
		return a.last
	case a.Radio.Counters != nil:
		return a.Radio.Counters.Ledger.Counters
	}
	return last
}

// detachedNodes returns the detached nodes with frames under way, until they have none; the lock is held.
func (n *network) detachedNodes() (nodes []figures.Node) {
	n.detached = slices.DeleteFunc(n.detached, func(a *attachment) bool {
		last := n.networks.currentCounters(a)
		if n.isLatest(a) {
			nodes = append(nodes, a.lastCounters(last)[0].Nodes[0])
		}
		return last.InFlight == 0
	})
	return nodes
}

// isLatest reports whether a node was not attached again. Counters that went back would be taken for those of a restart.
func (n *network) isLatest(a *attachment) bool { return n.latest[a.Member.Node] == a }

// recordNetworkEnd counts the frames under way in an ended network as dropped.
func (m *Networks) recordNetworkEnd(n *network, counters map[dataplane.PortID]radio.Counters) error {
	for _, a := range n.detached {
		if !n.isLatest(a) {
			continue
		}
		last, changed := counters[a.port]
		if !changed {
			last = a.last
		}
		last.Drops[radio.InFlightAtEnd] += uint64(last.InFlight) //nolint:gosec // never negative
		last.InFlight = 0
		if err := m.Recorder.Record(a.RunUID, nil, a.lastCounters(last)); err != nil {
			return err
		}
	}
	return nil
}
