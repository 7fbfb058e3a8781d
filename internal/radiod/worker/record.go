package worker

import (
	"fmt"
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

// The kinds of RadioGap.
const (
	gapRestarted = "radiodRestarted"
	gapLost      = "attachmentLost"
)

func (a *attachment) lastCounters(counters radio.Counters) []NetworkCounters {
	drops, restarted := a.counters.ringCounts()
	return []NetworkCounters{{UID: a.NetworkUID, Network: a.Network,
		Nodes: []NodeCounters{{Node: a.Member.Node, Counters: counters, RingDrops: drops, RingRestarted: restarted, Settings: a.Settings, Slots: a.slots}}}}
}

// readSlotsAtEnd reads an attachment's slots while the model still knows its port, so that slots missed in
// the last second count.
func (m *Manager) readSlotsAtEnd(a *attachment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.networks[a.NetworkUID]; n != nil {
		n.readSlots(a)
	}
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

// recordEnd records the last counters of a detached attachment.
func (m *Manager) recordEnd(a *attachment) error {
	if a.counters == nil || a.RunUID == "" {
		return nil
	}
	last := a.counters.ledger.Counters
	if a.port != nil {
		if last = a.port.CurrentCounters(); last.InFlight > 0 {
			m.mu.Lock()
			m.detached = append(m.detached, a)
			m.mu.Unlock()
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

// recordGaps records the time without radio between the last worker and this one, for every run with
// attachments here, and the attachments lost meanwhile. What cannot be written is recorded by the next
// worker.
func (m *Manager) recordGaps(all []*attachment, lost map[*attachment]error, to int64) (failed error) {
	from := m.lastWorkerSeen
	if from == 0 {
		from = to
	}
	byRun := map[string][]*attachment{}
	for _, a := range all {
		if a.RunUID != "" {
			byRun[a.RunUID] = append(byRun[a.RunUID], a)
		}
	}
	for uid, attachments := range byRun {
		gap := runapi.RadioGap{TimeNanoseconds: to, Gap: gapRestarted, FromNanoseconds: from, ToNanoseconds: to}
		gaps := []runapi.RadioGap{}
		unread := uint64(0)
		for _, a := range attachments {
			gap.FramesLost += a.counters.unreportedLosses()
			unread += a.unreadDrops
			if err := lost[a]; err != nil {
				gaps = append(gaps, runapi.RadioGap{TimeNanoseconds: to, Gap: gapLost, Node: a.Member.Node, FromNanoseconds: from,
					Reason: fmt.Sprintf("%s after a restart of radiod: %v", a.Interface, err)})
			}
		}
		gap.Reason = restartReason(unread)
		if err := m.Recorder.Record(uid, append([]runapi.RadioGap{gap}, gaps...), nil); err != nil {
			failed = err
			continue
		}
		for _, a := range attachments {
			a.counters.reported += a.counters.unreportedLosses()
		}
	}
	return failed
}

// restartReason describes a restart's effect on frames. unread frames found no room in their nodes'
// interfaces meanwhile.
func restartReason(unread uint64) string {
	reason := "radiod's worker or radiod was restarted: frames under way were lost, what nodes sent meanwhile waited in their interfaces"
	if unread > 0 {
		reason += fmt.Sprintf(", which had no room for %d more frames", unread)
	}
	return reason
}

// countUnreadDrops counts the frames that found no room in TAPs' rings since an earlier worker was last seen. They
// belong to the restart and are not overload.
func (m *Manager) countUnreadDrops(all []*attachment, lost map[*attachment]error) {
	for _, a := range all {
		if lost[a] != nil || a.Engine != "" {
			continue
		}
		before := a.counters.ringDrops
		if namespace, err := m.Finder.Find(a.NamespacePath, a.Namespace); err == nil {
			m.readRingsIn(namespace, []*attachment{a})
			_ = namespace.Close() // nothing was written
		}
		a.unreadDrops = a.counters.ringDrops - before
		a.counters.ringRestarted += a.unreadDrops
	}
}
