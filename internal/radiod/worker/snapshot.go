package worker

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/cluster"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/metrics"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/refusal"
)

// The figures of this host, until their files have left this package.
type (
	NodeCounters    = figures.Node
	SlotCounters    = figures.Slots
	LinkCounters    = figures.Link
	NetworkCounters = figures.Network
	RoutingCounters = figures.Routing
)

// Counters returns the counters of all networks with attachments here, sorted. With reset, values since the
// last reset start again.
func (m *Manager) Counters(reset bool) []NetworkCounters {
	m.routers.Refresh() // before the lock, because another process has to answer
	m.mu.Lock()
	defer m.mu.Unlock()
	byPort := make(map[*radio.Port]*attachment, len(m.attachments))
	for _, a := range m.attachments {
		if a.port != nil {
			byPort[a.port.Port] = a
		}
	}
	var all []NetworkCounters
	routed := m.routers.Counters()
	for uid, n := range m.networks {
		if n.driver != nil {
			all = append(all, m.countEMANE(uid, n, routed, reset))
		}
		if n.running == nil {
			continue
		}
		spec := &n.object.Spec
		counted := NetworkCounters{UID: uid, Experiment: spec.Experiment, Network: spec.Network, Loop: n.running.Loop()}
		var ports []*radio.Port
		for _, s := range n.running.Snapshot(reset) {
			ports = append(ports, s.Port)
			node := NodeCounters{Node: s.Port.Name, Counters: s.Counters}
			if a := byPort[s.Port]; a != nil {
				node.Settings, node.Routing = a.Settings, routed[a.Key()]
				node.RingDrops, node.RingRestarted = a.Counters.RingCounts()
			}
			counted.Nodes = append(counted.Nodes, node)
		}
		n.countRadios(&counted, ports, reset)
		counted.Nodes = append(counted.Nodes, m.detachedNodes(uid, counted.Nodes)...)
		if len(counted.Nodes) > 0 {
			slices.SortFunc(counted.Nodes, func(a, b NodeCounters) int { return strings.Compare(a.Node, b.Node) })
			all = append(all, counted)
		}
	}
	slices.SortFunc(all, func(a, b NetworkCounters) int { return strings.Compare(a.UID, b.UID) })
	return all
}

// Collectors of the host's metrics.
func (m *Manager) Collectors() []prometheus.Collector {
	return append(m.changes.collectors(), m.Seconds(), metrics.Collector{Counters: func() []figures.Network { return m.Counters(false) }})
}

// LateIntervals are the times in which the engine's loops were late since the last call, by loop.
func (m *Manager) LateIntervals() [][]radio.Interval { return m.Radio.LateIntervals() }

// Status returns the status of a network on this host; known is false if there is no such network.
func (m *Manager) Status(uid string) (attached int, message string, known bool) {
	missing := m.Missing(uid)
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.networks[uid]
	if n == nil {
		return 0, "", false
	}
	message = n.message
	for _, err := range m.troubles(uid, n) {
		if err != nil {
			message = strings.TrimPrefix(message+"; "+err.Error(), "; ")
		}
	}
	for _, text := range missing {
		message = strings.TrimPrefix(message+"; "+text, "; ")
	}
	for _, a := range m.attachments {
		if a.NetworkUID == uid && m.isOperational(a) {
			attached++
		}
	}
	return attached, message, true
}

// Refused returns what of a network's spec this host cannot apply; empty for nothing.
func (m *Manager) Refused(uid string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.networks[uid]
	if n == nil {
		return ""
	}
	return refusal.First(errors.Join(append(m.troubles(uid, n), m.captureErrorOf(uid))...))
}

// HostStatus returns this host's entry in a network's status; known is false if there is no such network.
func (m *Manager) HostStatus(uid string) (status cluster.Status, known bool) {
	if status.Attached, status.Message, known = m.Status(uid); !known {
		return status, false
	}
	status.Refused = m.Refused(uid)
	here := m.members.Attachments(membership.OfNetwork(uid))
	slices.SortFunc(here, func(a, b *membership.Attachment) int { return cmp.Compare(a.Member.NEM, b.Member.NEM) })
	var nems []string
	for _, a := range here {
		status.CongestionControl = cmp.Or(status.CongestionControl, a.Settings[podnet.CongestionControl])
		nems = append(nems, strconv.Itoa(int(a.Member.NEM)))
	}
	if h := m.hosts.Load(); h != nil && len(here) > 0 {
		status.NEMs, status.Peer = strings.Join(nems, " "), h.Peer()
		if trouble := h.Trouble(uid); trouble != "" {
			status.Message = strings.TrimPrefix(status.Message+"; "+trouble, "; ")
		}
	}
	return status, true
}

// troubles returns a network's errors on this host, some of them nil; the lock is held.
func (m *Manager) troubles(uid string, n *network) []error {
	troubles := []error{n.memberError, n.trouble, n.preparationError, m.routers.Trouble(uid)}
	if n.driver != nil {
		troubles = append(troubles, n.driver.Trouble())
	}
	return troubles
}
