package worker

import (
	"slices"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/runapi"
)

// Recorder records gaps and last counters of a run, which its results need besides the samples. When it
// returns they are stored where they outlive the worker. A *Sampler is one.
type Recorder interface {
	Record(runUID string, gaps []runapi.RadioGap, last []NetworkCounters) error
}

type noRecorder struct{}

func (noRecorder) Record(string, []runapi.RadioGap, []NetworkCounters) error { return nil }

func (a *attachment) lastCounters(counters radio.Counters) []NetworkCounters {
	drops, restarted := a.Counters.RingCounts()
	return []NetworkCounters{{UID: a.NetworkUID, Network: a.Network,
		Nodes: []NodeCounters{{Node: a.Member.Node, Counters: counters, RingDrops: drops, RingRestarted: restarted, Settings: a.Settings, Slots: a.slots}}}}
}

// readSlots reads the slots of an attachment that is about to be detached; the manager's lock is held.
func (n *network) readSlots(a *attachment) {
	if n.running == nil || a.port == nil || n.object.Spec.Waveform.PHY() == nil {
		return
	}
	n.running.Do(func(_ *radio.Network, model radio.Model) {
		a.slots = n.initialSettings.statistics(model, a.port.Port, true).slots
	})
}

// recordEnd records the last counters of a detached attachment; the lock is held.
func (m *Manager) recordEnd(a *attachment) error {
	if a.Counters == nil || a.RunUID == "" {
		return nil
	}
	last := a.Counters.Ledger.Counters
	if a.port != nil {
		if last = a.port.CurrentCounters(); last.InFlight > 0 {
			m.detached = append(m.detached, a)
		}
	}
	return m.Recorder.Record(a.RunUID, nil, a.lastCounters(last))
}

// detachedNodes returns the detached nodes of a network with frames under way, until they have none; the lock
// is held. A node that is attached again replaces its earlier attachment.
func (m *Manager) detachedNodes(uid string, attached []NodeCounters) (nodes []NodeCounters) {
	m.detached = slices.DeleteFunc(m.detached, func(a *attachment) bool {
		if a.NetworkUID != uid {
			return false
		}
		last := a.port.CurrentCounters()
		if !slices.ContainsFunc(attached, func(n NodeCounters) bool { return n.Node == a.Member.Node }) {
			nodes = append(nodes, a.lastCounters(last)[0].Nodes[0])
		}
		return last.InFlight == 0
	})
	return nodes
}

// recordNetworkEnd counts the frames under way in a removed network as dropped.
func (m *Manager) recordNetworkEnd(uid string) error {
	m.mu.Lock()
	var left []*attachment
	m.detached = slices.DeleteFunc(m.detached, func(a *attachment) bool {
		if a.NetworkUID == uid {
			left = append(left, a)
		}
		return a.NetworkUID == uid
	})
	m.mu.Unlock()
	for _, a := range left {
		last := a.port.CurrentCounters()
		last.Drops[radio.InFlightAtEnd] += uint64(last.InFlight) //nolint:gosec // never negative
		last.InFlight = 0
		if err := m.Recorder.Record(a.RunUID, nil, a.lastCounters(last)); err != nil {
			return err
		}
	}
	return nil
}
