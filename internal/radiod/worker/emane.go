package worker

import (
	"math"
	"slices"
	"strings"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radiod/emaned"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/veth"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// updateDriver updates EMANE's driver to the network's current state; the lock is held.
func (m *Manager) updateDriver(uid string, n *network) {
	if n.object.Spec.Engine != v1alpha1.EngineEMANE {
		return
	}
	in := emaned.Input{Network: n.object, Parked: map[int32]string{}}
	for _, a := range m.attachments {
		if a.NetworkUID == uid {
			in.Parked[a.Member.NEM] = veth.ParkedName(a.ID())
		}
	}
	if len(in.Parked) == 0 {
		n.endDriver()
		return
	}
	for _, pod := range n.object.Spec.EMANE {
		if pod.Host == m.Host {
			in.PodUID = string(pod.PodUID)
		}
	}
	if n.environment == nil {
		n.environment = &environment{}
	}
	in.Distributed = m.isDistributed(n.object)
	in.Trouble = m.updateEnvironment(n)
	in.Scenario = m.scenarioOf(n)
	if n.driver != nil {
		n.driver.Set(in)
		return
	}
	name := n.object.Spec.Network
	n.driver = emaned.Start(emaned.Options{Find: m.Finder.OfPod, Log: m.Log, Changed: func() { go m.driverChanged(n) }, Ship: func(datagram []byte) { m.hosts.Load().ShipOTA(uid, datagram) },
		Step: func(late time.Duration) { n.steps.add(int64(late)) }, Change: func(late time.Duration) { m.countChange(name, late) }}, in)
}

// scenarioOf returns a network's scenario, or nil if it is not here.
func (m *Manager) scenarioOf(n *network) *scenario.Scenario {
	if n.object.Spec.Scenario == "" {
		return nil
	}
	compiled, err := m.library.get(n.object.Spec.Scenario)
	if err != nil {
		return nil // updateEnvironment reports why
	}
	return compiled
}

func (n *network) endDriver() {
	if n.driver != nil {
		n.driver.Stop()
		n.driver = nil
		n.stopPreparer()
	}
}

// driverChanged marks the network's status to be written, because its driver's has changed.
func (m *Manager) driverChanged(n *network) {
	m.mu.Lock()
	object := n.object
	m.mu.Unlock()
	m.Changed(object)
}

// isOperational reports whether an attachment's frames are carried; the lock is held.
func (m *Manager) isOperational(a *attachment) bool {
	if a.Engine != v1alpha1.EngineEMANE {
		return true
	}
	n := m.networks[a.NetworkUID]
	return n != nil && n.driver != nil && n.driver.Ready(a.Member.NEM)
}

// readEMANE copies the last counters of an attachment's process and of the kernel to its counter file.
func (n *network) readEMANE(a *attachment) {
	counters := &a.Counters.Ledger.Counters
	if s, known := n.driver.Statistics(a.Member.NEM); known {
		*counters = s.Counters
		a.slots = SlotCounters{Used: s.SlotsUsed, Missed: s.SlotsMissed}
	}
	traffic := a.Traffic()
	counters.FramesSent, counters.BytesSent = traffic.FramesRead, traffic.BytesRead
	counters.FramesReceived, counters.BytesReceived = traffic.FramesWritten, traffic.BytesWritten
}

// countEMANE returns the counters of a network that EMANE carries; the lock is held. With reset, receivers'
// links are sampled in rotation if a sample has no room for all.
func (m *Manager) countEMANE(uid string, n *network, routed map[membership.Key]*figures.Routing, reset bool) NetworkCounters {
	spec := &n.object.Spec
	counted := NetworkCounters{UID: uid, Experiment: spec.Experiment, Network: spec.Network, Loop: figures.NoLoop, Physical: true}
	var here []*attachment
	for _, a := range m.attachments {
		if a.NetworkUID == uid {
			here = append(here, a)
		}
	}
	slices.SortFunc(here, func(a, b *attachment) int { return strings.Compare(a.Member.Node, b.Member.Node) })
	for _, a := range here {
		n.readEMANE(a)
		node := NodeCounters{Node: a.Member.Node, Counters: a.Counters.Ledger.Counters, Settings: a.Settings, Slots: a.slots, Routing: routed[a.Key()]}
		if spec.Waveform.TDMA != nil {
			node.Classes = []int{} // slots are counted; EMANE does not report queues
		}
		counted.Nodes = append(counted.Nodes, node)
	}
	n.countEMANELinks(&counted, here, reset)
	n.countEnvironment(&counted, clock.Monotonic(), reset)
	return counted
}

func (n *network) countEMANELinks(counted *NetworkCounters, here []*attachment, reset bool) {
	room, turn := figures.MaxLinkSeries, 0
	if reset && len(here) > 0 {
		room, turn = runapi.MaxRadioLinks, n.nextReceiver%len(here)
		n.nextReceiver = 0
	}
	full := false
	for i := range here {
		receiver := (turn + i) % len(here)
		a := here[receiver]
		s, _ := n.driver.Statistics(a.Member.NEM)
		counted.LinksHeard += len(s.Links)
		if full = full || len(counted.Links) > 0 && len(counted.Links)+len(s.Links) > room; full {
			if reset && n.nextReceiver == 0 {
				n.nextReceiver = receiver
			}
			continue
		}
		for k := range s.Links {
			l := &s.Links[k]
			loss, known := s.LossDB[l.From.NEM]
			if !known {
				loss = math.NaN()
			}
			counted.Links = append(counted.Links, LinkCounters{Receiver: a.Member.Node, From: l.From.Name, SINRDB: l.SINRDB, PathlossDB: loss, Heard: l.Received, Missed: l.Missed})
		}
	}
	if full && !reset {
		counted.Links = nil
	}
}
