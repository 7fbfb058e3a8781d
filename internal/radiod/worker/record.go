package worker

import (
	"fmt"
	"slices"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/runapi"
)

// Recorder takes what a run's results must know besides the samples of every second. It has written it
// where it outlives the worker when it returns; a *Sampler is one.
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
	drops, restarted := a.book.rings()
	return []NetworkCounters{{UID: a.NetworkUID, Network: a.Network,
		Nodes: []NodeCounters{{Node: a.Member.Node, Counters: counters, RingDrops: drops, RingRestarted: restarted, Settings: a.Settings, Slots: a.slots}}}}
}

// readSlotsAtEnd asks the model for an attachment's slots while it knows its port: slots missed in the last second count too.
func (m *Manager) readSlotsAtEnd(a *attachment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.networks[a.NetworkUID]; n != nil {
		n.readSlots(a)
	}
}

// readSlots of an attachment that is about to be detached; the manager's lock is held.
func (n *network) readSlots(a *attachment) {
	if n.running == nil || a.port == nil || n.object.Spec.Waveform.PHY() == nil {
		return
	}
	n.running.Do(func(_ *radio.Network, model radio.Model) {
		a.slots = n.began.statistics(model, a.port, true).slots
	})
}

// recordEnd writes down the last counters of an attachment, which has been detached.
func (m *Manager) recordEnd(a *attachment) error {
	if a.book == nil || a.RunUID == "" {
		return nil
	}
	last := a.book.ledger.Counters
	if a.port != nil {
		last = a.port.Last()
	}
	if last.InFlight > 0 {
		m.mu.Lock()
		m.leaving = append(m.leaving, a)
		m.mu.Unlock()
	}
	return m.Recorder.Record(a.RunUID, nil, a.lastCounters(last))
}

// stillUnderWay gives the nodes of a network that have been detached while frames of theirs were under
// way, up to the time when none is; the lock is held. A node that is attached again hides its earlier self.
func (m *Manager) stillUnderWay(uid string, attached []NodeCounters) (nodes []NodeCounters) {
	m.leaving = slices.DeleteFunc(m.leaving, func(a *attachment) bool {
		if a.NetworkUID != uid {
			return false
		}
		last := a.port.Last()
		if !slices.ContainsFunc(attached, func(n NodeCounters) bool { return n.Node == a.Member.Node }) {
			nodes = append(nodes, a.lastCounters(last)[0].Nodes[0])
		}
		return last.InFlight == 0
	})
	return nodes
}

// recordNetworkEnd counts what was under way in a network that is no more: it arrives nowhere.
func (m *Manager) recordNetworkEnd(uid string) error {
	m.mu.Lock()
	var left []*attachment
	m.leaving = slices.DeleteFunc(m.leaving, func(a *attachment) bool {
		if a.NetworkUID == uid {
			left = append(left, a)
		}
		return a.NetworkUID == uid
	})
	m.mu.Unlock()
	for _, a := range left {
		last := a.port.Last()
		last.Drops[radio.InFlightAtEnd] += uint64(last.InFlight) //nolint:gosec // never negative
		last.InFlight = 0
		if err := m.Recorder.Record(a.RunUID, nil, a.lastCounters(last)); err != nil {
			return err
		}
	}
	return nil
}

// recordGaps names the time from when the last worker was seen to when this one carried frames, for every run that has attachments here, and
// what went meanwhile. What could not be written is named by the next worker.
func (m *Manager) recordGaps(all []*attachment, lost map[*attachment]error, to int64) (failed error) {
	from := m.seen
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
			gap.FramesLost += a.book.lost()
			unread += a.unread
			if err := lost[a]; err != nil {
				gaps = append(gaps, runapi.RadioGap{TimeNanoseconds: to, Gap: gapLost, Node: a.Member.Node, FromNanoseconds: from,
					Reason: fmt.Sprintf("%s after a restart of radiod: %v", a.Interface, err)})
			}
		}
		gap.Reason = restartedBecause(unread)
		if err := m.Recorder.Record(uid, append([]runapi.RadioGap{gap}, gaps...), nil); err != nil {
			failed = err
			continue
		}
		for _, a := range attachments {
			a.book.named += a.book.lost()
		}
	}
	return failed
}

// restartedBecause says what a restart meant for frames, of which so many had no room in their nodes' interfaces meanwhile.
func restartedBecause(unread uint64) string {
	reason := "radiod's worker or radiod was restarted: frames under way were lost, what nodes sent meanwhile waited in their interfaces"
	if unread > 0 {
		reason += fmt.Sprintf(", which had no room for %d more frames", unread)
	}
	return reason
}

// countUnread counts the frames for which the rings of TAPs had no room since an earlier worker was last seen: what nobody reads is no
// overload, and belongs to the restart.
func (m *Manager) countUnread(all []*attachment, lost map[*attachment]error) {
	for _, a := range all {
		if lost[a] != nil || a.Engine != "" {
			continue
		}
		before := a.book.ringDrops
		if namespace, err := m.Finder.Find(a.NamespacePath, a.Namespace); err == nil {
			m.readRingsIn(namespace, []*attachment{a})
			_ = namespace.Close() // nothing was written
		}
		a.unread = a.book.ringDrops - before
		a.book.ringRestarted += a.unread
	}
}
