package networks

import (
	"maps"
	"slices"
	"strings"

	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Counters returns the counters of all networks with attachments here, sorted. routed are those of routers. With reset,
// values since the last reset start again.
func (m *Networks) Counters(routed map[membership.Key]*figures.Routing, reset bool) (all []figures.Network) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.networks {
		if n.driver != nil {
			all = append(all, n.countEMANE(routed, reset))
		}
		if n.running == nil {
			continue
		}
		if counted := n.count(routed, reset); len(counted.Nodes) > 0 {
			all = append(all, counted)
		}
	}
	slices.SortFunc(all, func(a, b figures.Network) int { return strings.Compare(a.UID, b.UID) })
	return all
}

// count returns the counters of a network in the engine; the lock is held.
func (n *network) count(routed map[membership.Key]*figures.Routing, reset bool) figures.Network {
	byPort := make(map[dataplane.PortID]*attachment, len(n.attachments))
	maps.Copy(byPort, n.departing) // no counter may go back before their last ones are recorded
	for _, a := range n.attachments {
		byPort[a.port] = a
	}
	spec := &n.object.Spec
	counted := figures.Network{UID: string(n.object.UID), Experiment: spec.Experiment, Network: spec.Network}
	s, err := n.networks.Plane.Snapshot(counted.UID, reset)
	if err != nil {
		n.networks.Log.Error("counters of a network", "network", n.object.Name, "error", err)
		return counted
	}
	counted.Loop, counted.LateChanges = s.Loop, n.lateChanges.take(reset)
	for i := range s.Ports {
		p := &s.Ports[i]
		node := figures.Node{Node: p.Name, Counters: p.Counters, Slots: p.Slots, Classes: p.Classes}
		if a := byPort[p.ID]; a != nil {
			node.Settings, node.Routing = a.Settings, routed[a.Key()]
			node.RingDrops, node.RingRestarted = a.Radio.Counters.RingCounts()
		}
		counted.Nodes = append(counted.Nodes, node)
	}
	n.countRadios(&counted, s, reset)
	counted.Nodes = append(counted.Nodes, n.detachedNodes()...)
	slices.SortFunc(counted.Nodes, func(a, b figures.Node) int { return strings.Compare(a.Node, b.Node) })
	return counted
}

// Status of a network on this host.
type Status struct {
	// Attached is the number of attachments whose frames are carried.
	Attached int
	// Message is what the last change could not do, Troubles what does not work.
	Message  string
	Troubles []error
	// CaptureError is why a capture could not begin before T0.
	CaptureError error
}

// Status of a network; nil if there is no such network.
func (m *Networks) Status(uid string) *Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.networks[uid]
	if n == nil {
		return nil
	}
	s := &Status{Message: n.message, Troubles: []error{n.memberError, n.trouble, n.preparationError, n.unsaved, n.abandonedError()}, CaptureError: n.captureError()}
	if n.driver != nil {
		s.Troubles = append(s.Troubles, n.driver.Trouble())
	}
	for _, a := range n.attachments {
		if a.Engine != v1alpha1.EngineEMANE || n.driver != nil && n.driver.Ready(a.Member.NEM) && !n.isAbandoned(a) {
			s.Attached++
		}
	}
	return s
}

// Waiting returns the frames that wait at an attachment's radio.
func (m *Networks) Waiting(a *membership.Attachment) int {
	port := m.portOf(a)
	if port == 0 {
		return 0
	}
	counters, _ := m.Plane.Counters(port) // nothing waits at a port that is gone
	return counters.InFlight
}

// portOf returns the port of an attachment that has joined, or 0.
func (m *Networks) portOf(a *membership.Attachment) dataplane.PortID {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.networks[a.NetworkUID]; n != nil {
		if joined := n.attachments[a.Key()]; joined != nil {
			return joined.port
		}
	}
	return 0
}

// IsSilent reports whether a member's radio may not transmit.
func (m *Networks) IsSilent(uid string, nem int32) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.networks[uid]
	if n != nil && n.driver != nil {
		return n.driver.Silent(nem)
	}
	if n == nil || n.running == nil {
		return false
	}
	return n.state.Silent || n.state.Radios != nil && !n.state.Radios.Of(int(nem)).Transmit
}
