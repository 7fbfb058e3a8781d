package worker

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// NodeCounters are one attachment's counters.
type NodeCounters struct {
	Node string
	radio.Counters
	// RingDrops are frames that found no room in the TAP's ring while radiod worked, RingRestarted those
	// while it was down.
	RingDrops, RingRestarted uint64
	// Settings of the kernel in the node's namespace.
	Settings map[string]string
	// Slots of a TDMA radio.
	Slots SlotCounters
	// Classes are the frames that wait at a TDMA radio, by class of service.
	Classes []int
	// Routing of the node on the network; nil if it does not route.
	Routing *RoutingCounters
}

// SlotCounters show whether the emulation kept up with a TDMA radio's time slots.
type SlotCounters struct {
	// Used are slots in which the node sent, Missed those that were over when the loop came to them.
	Used, Missed uint64
	// Lateness of the starts of slots, by radio.LatenessBounds, and the worst in nanoseconds since the last reset.
	Lateness      radio.Histogram
	WorstLateness int64
	// MissedIn are the times of missed slots since the last reset; with reset only.
	MissedIn []radio.Interval
}

// LinkCounters are one node's counters of another node's transmissions.
type LinkCounters struct {
	Receiver, From string
	// SINRDB of the last transmission above the sensitivity, PathlossDB now; NaN is unknown.
	SINRDB, PathlossDB float64
	Heard              uint64
	missed             [radio.NotListening - radio.BelowSensitivity + 1]uint64
}

// NetworkCounters is one network with its nodes, sorted by name.
type NetworkCounters struct {
	UID        string
	Experiment v1alpha1.ExperimentReference
	Network    string
	Nodes      []NodeCounters
	// Loop of the engine that serves it, or noLoop.
	Loop int
	// Physical networks have a physical layer; the following fields are for them. LinksHeard is the number of
	// links on which something was sent. Links has all of them, or none above 2500. With reset it has as many
	// receivers' links as a sample has room for, in rotation.
	Physical   bool
	LinksHeard int
	Links      []LinkCounters
	// Positions of attached nodes, if known: latitude and longitude in degrees, altitude in metres.
	Positions map[string][3]float64
	// Steps of positions and pathloss, those that were late, and the worst lateness since the last reset.
	Steps, LateSteps  uint64
	WorstStepLateness time.Duration
}

// noLoop is the loop of networks that EMANE carries.
const noLoop = -1

// Counters returns the counters of all networks with attachments here, sorted. With reset, values since the
// last reset start again.
func (m *Manager) Counters(reset bool) []NetworkCounters {
	m.refreshRouting() // before the lock, because another process has to answer
	m.mu.Lock()
	defer m.mu.Unlock()
	byPort := make(map[*radio.Port]*attachment, len(m.attachments))
	for _, a := range m.attachments {
		if a.port != nil {
			byPort[a.port.Port] = a
		}
	}
	var all []NetworkCounters
	routed := m.countRouting()
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
				node.Settings, node.Routing = a.Settings, routed[a.key()]
				node.RingDrops, node.RingRestarted = a.counters.ringCounts()
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

// Status returns the status of a network on this host; known is false if there is no such network.
func (m *Manager) Status(uid string) (attached int, message string, known bool) {
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
	for _, x := range m.missing {
		if x.NetworkUID == uid {
			message = strings.TrimPrefix(message+"; "+x.String(), "; ")
		}
	}
	return len(m.keysOf(func(a *attachment) bool { return a.NetworkUID == uid && m.isOperational(a) })), message, true
}

// troubles returns a network's errors on this host, some of them nil; the lock is held.
func (m *Manager) troubles(uid string, n *network) []error {
	troubles := []error{n.memberError, n.trouble, n.preparationError, m.routingTrouble(uid)}
	if n.driver != nil {
		troubles = append(troubles, n.driver.Trouble())
	}
	return troubles
}

// podsPerRingRead is how many pods' namespaces are read at a time. All of hundreds would take a tenth of a
// processor.
const podsPerRingRead = 50

// ReadRings reads the drops of TAPs' rings, and the traffic of veths. The kernel counts them in the pods'
// namespaces. Up to podsPerRingRead pods are read, in rotation.
func (m *Manager) ReadRings() {
	m.mu.Lock()
	pods := map[netns.Identity][]*attachment{}
	for _, a := range m.attachments {
		pods[a.Namespace] = append(pods[a.Namespace], a)
	}
	order := slices.SortedFunc(maps.Keys(pods), func(a, b netns.Identity) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Inode, b.Inode))
	})
	order = nextInRotation(order, &m.nextRing, podsPerRingRead)
	m.mu.Unlock()
	for _, identity := range order {
		m.readRings(identity, pods[identity])
	}
}

// nextInRotation returns the next elements in rotation, at most most of them.
func nextInRotation[T any](all []T, turn *int, most int) (next []T) {
	for range min(len(all), most) {
		*turn %= len(all)
		next = append(next, all[*turn])
		*turn++
	}
	return next
}

// readRings reads the rings of one pod. A pod that cannot be read is about to be removed.
func (m *Manager) readRings(identity netns.Identity, attachments []*attachment) {
	namespace, err := m.Finder.Find(attachments[0].NamespacePath, identity)
	if err != nil {
		return
	}
	defer namespace.Close()
	m.readRingsIn(namespace, attachments)
}

// readRingAtEnd reads the drops of a TAP's ring before its end, if its namespace is at its path. Searching
// for it would take long when hundreds go at once.
func (m *Manager) readRingAtEnd(a *attachment) {
	if namespace := m.Finder.At(a.NamespacePath, a.Namespace); namespace != nil {
		defer namespace.Close()
		m.readRingsIn(namespace, []*attachment{a})
	}
}

func (m *Manager) readRingsIn(namespace *os.File, attachments []*attachment) {
	states := make([]podnet.State, len(attachments))
	_ = netns.Do(namespace, func() error {
		for i, a := range attachments {
			if state, err := podnet.Read(a.link()); err == nil {
				states[i] = state
			}
		}
		return nil
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, a := range attachments {
		a.counters.ringDrops = max(a.counters.ringDrops, states[i].RingDrops)
		if states[i].Index == a.Index {
			a.traffic = states[i].Traffic
		}
	}
}
