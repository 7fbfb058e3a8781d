// Package figures has what a host counts of its radios. The engine, the kernel and the routers are asked for it; samples
// and metrics show it.
package figures

import (
	"time"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/internal/routing"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// MaxLinkSeries bounds the metrics of a network's links. 50 nodes in range of each other have as many.
const MaxLinkSeries = 2500

// NoLoop is the loop of networks that EMANE carries.
const NoLoop = -1

// Network is one network with its nodes, sorted by name.
type Network struct {
	UID        string
	Experiment v1alpha1.ExperimentReference
	Network    string
	Nodes      []Node
	// Loop of the engine that serves it, or NoLoop.
	Loop int
	// Late are the times in which EMANE was late since the last reset; with reset only.
	Late []radio.Interval
	// LateChanges are the times from when changes were due until they were carried out, by CLOCK_REALTIME, since the last
	// reset; with reset only.
	LateChanges []radio.Interval
	// Physical networks have a physical layer; the following fields are for them. LinksHeard is the number of
	// links on which something was sent. Links has all of them, or none above MaxLinkSeries. With reset it has as
	// many receivers' links as a sample has room for, in rotation.
	Physical   bool
	LinksHeard int
	Links      []Link
	// Positions of attached nodes, if known: latitude and longitude in degrees, altitude in metres.
	Positions map[string][3]float64
	// Steps of positions and pathloss, those that were late, and the worst lateness since the last reset.
	Steps, LateSteps  uint64
	WorstStepLateness time.Duration
}

// Node has one attachment's counters.
type Node struct {
	Node string
	radio.Counters
	// RingDrops are frames that found no room in the TAP's ring while radiod worked, RingRestarted those
	// while it was down.
	RingDrops, RingRestarted uint64
	// Settings of the kernel in the node's namespace.
	Settings map[string]string
	// Slots of a TDMA radio.
	Slots tdma.SlotStatistics
	// Classes are the frames that wait at a TDMA radio, by class of service.
	Classes []int
	// Routing of the node on the network; nil if it does not route.
	Routing *Routing
}

// RingReason names drops in the TAP's ring, before the model. RouterReason names drops of routing packets in
// a router's socket, behind it. Both are overload, not radio.
const (
	RingReason   = "tapRing"
	RouterReason = "routerSocket"
)

// EachDrop gives the frames dropped, by reason.
func (n *Node) EachDrop(give func(reason string, frames uint64)) {
	restarted := n.RingRestarted
	n.Dropped(func(reason string, frames uint64) {
		if reason == radio.Restarted.String() {
			frames, restarted = frames+restarted, 0
		}
		give(reason, frames)
	})
	if restarted > 0 {
		give(radio.Restarted.String(), restarted)
	}
	if n.RingDrops > 0 {
		give(RingReason, n.RingDrops)
	}
	if n.Routing != nil && n.Routing.ReceiveDrops > 0 {
		give(RouterReason, n.Routing.ReceiveDrops)
	}
}

// Link has one node's counters of another node's transmissions.
type Link struct {
	Receiver, From string
	// SINRDB of the last transmission above the sensitivity, PathlossDB now; NaN is unknown.
	SINRDB, PathlossDB float64
	Heard              uint64
	Missed             Missed
}

// Missed transmissions by reason, from radio.BelowSensitivity on.
type Missed [radio.NotListening - radio.BelowSensitivity + 1]uint64

// ByReason is nil for none.
func (m *Missed) ByReason() (named map[string]uint64) {
	for i, transmissions := range m {
		if transmissions == 0 {
			continue
		}
		if named == nil {
			named = map[string]uint64{}
		}
		named[(radio.BelowSensitivity + radio.Reason(i)).String()] = transmissions
	}
	return named
}

// Transmissions received and missed.
func (l *Link) Transmissions() uint64 {
	all := l.Heard
	for _, missed := range l.Missed {
		all += missed
	}
	return all
}

// Routing has a node's routing counters on one network.
type Routing struct {
	routing.Counters
	// Routes of the first topology that lead through the network, and Neighbours on it to which they lead.
	Routes, Neighbours int
}

// Routes are those of one node's domain in a topology, which has no name if it is the first.
type Routes struct {
	RunUID, Node string
	Domain       Domain
	Topology     string
	// Number of the topology in the domain.
	Number int
	// Networks by interface.
	Networks []string
	Finder   interface {
		AppendRoutes(to []olsr.Route) []olsr.Route
	}
}

// Domain identifies a node's part in a routing domain: all its networks with that protocol.
type Domain struct {
	PodUID   string
	Protocol v1alpha1.RoutingProtocol
}
