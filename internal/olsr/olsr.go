// Package olsr has the Optimized Link State Routing Protocol version 2 (RFC 7181) with the neighbourhood discovery it is
// built on (NHDP, RFC 6130), as a state machine: it opens no socket, starts no goroutine and reads no clock. What it
// would send goes to a function, what it hears and what time it is come as arguments. Package v1 has the same for
// version 1 (RFC 3626).
package olsr

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"vignette.dev/vignette/internal/olsr/internal/core"
)

// Where the protocols are spoken: UDP, to link-local multicast or broadcast, with an IP time to live of 1.
const (
	// Port of MANET protocols (RFC 5498 section 3), OLSRv2 among them.
	Port = 269
	// PortV1 of OLSRv1 (RFC 3626 section 3.1), which sends to the interface's broadcast address.
	PortV1 = 698
)

// Group is LL-MANET-Routers (RFC 5498 section 3), to which OLSRv2 sends.
var Group = netip.AddrFrom4([4]byte{224, 0, 0, 109})

// Router is one node of a routing domain. It is for one goroutine at a time. A packet handed to Send is the callee's to
// keep; a packet handed to Receive remains the caller's.
type Router interface {
	// Receive a packet (the payload of a UDP datagram) that came in over the interface of that index. An error says what
	// of the packet was refused, and changes nothing that would have to be repaired. Call Tick afterwards.
	Receive(now time.Time, iface int, from netip.Addr, packet []byte) error
	// Tick does all that is due, and returns when to call it next at the latest. Calling it earlier, or more often, is
	// harmless and cheap.
	Tick(now time.Time) (next time.Time)
	// Transmit says whether the node may transmit on an interface (it may, to begin with). A silent node goes on
	// listening: it keeps its tables up as far as they follow from what it hears (EMCON). Allowed again, it sends a HELLO
	// at once.
	Transmit(now time.Time, iface int, allowed bool)
	// Attach replaces the networks that the node is a gateway to. An error names the bad one, and nothing changes.
	Attach(now time.Time, attached []Attached) error
	// Routes as of the last Tick, ordered by destination. The slice is the Router's, and valid until the next Tick.
	Routes() []Route
	// Generation of Routes: another number whenever they have changed.
	Generation() uint64
	// Tables as of the last Tick or Receive, for showing and recording; it makes copies.
	Tables() Tables
	// Counters since New; those of a snapshot are not brought back.
	Counters() Counters
	// Snapshot of what a successor needs to go on so that no neighbour notices: sequence numbers and tables.
	Snapshot(now time.Time) ([]byte, error)
	// Restore a Snapshot, before the first Tick. What has run out since it was taken is left out. On an error nothing
	// has been restored, and the router starts afresh.
	Restore(now time.Time, snapshot []byte) error
}

// Send transmits a packet on the interface of that index. The packet is not used again by the Router.
type Send func(iface int, packet []byte)

// Metric of links.
type Metric int

// The metrics. OLSRv1 knows hops only.
const (
	HopCount Metric = iota
	// DAT is directional airtime (RFC 7779): what a link costs in time on the air, from the share of lost packets and the
	// link's rate.
	DAT
)

// Willingness to forward for others (RFC 7181 section 5.3): 0 never, 15 always.
const (
	WillNever   = 0
	WillDefault = 7
	WillAlways  = 15
)

// Interface of a node in the routing domain.
type Interface struct {
	// Name of the network device, for tables.
	Name string
	// Address of the node on it; all interfaces are of one family.
	Address netip.Addr
	// Prefix of the network behind it.
	Prefix netip.Prefix
	// MTU of a packet (a UDP payload) in bytes; 0 is 1232 (the least IPv6 link, RFC 8200 section 5).
	MTU int
	// RateBitsPerSecond of a link, for DAT; 0 is unknown, and then all links count as equally fast.
	RateBitsPerSecond float64
	// Hello is the interval of HELLOs on this interface; 0 is Config's. HelloValidity is how long one holds: 0 is three intervals where Hello is
	// given, else Config's.
	Hello, HelloValidity time.Duration
}

// Attached is a network that is reached through this node.
type Attached struct {
	Prefix netip.Prefix
	// Hops from this node to it, 1 to 255; 0 is 1.
	Hops int
	// Metric from this node to it; 0 is that of one hop.
	Metric uint32
}

// Config of a Router. Zero durations are the default of the protocol's RFC.
type Config struct {
	Interfaces []Interface
	// Hello is the interval of HELLOs (2 s); HelloValidity how long one holds (three intervals). An Interface may have its own.
	Hello, HelloValidity time.Duration
	// TC is the interval of topology control messages (5 s); TCValidity how long one holds (three intervals).
	TC, TCValidity time.Duration
	Metric         Metric
	Attached       []Attached
	// FloodingWillingness and RoutingWillingness to be an MPR; nil is WillDefault. OLSRv1 has one only (the routing one,
	// of 7 steps: half of it).
	FloodingWillingness, RoutingWillingness *int
	// Hysteresis of links by the share of HELLOs that come through; nil is none, as is the RFCs' default.
	Hysteresis *Hysteresis
	// RouteInterval is the least time between two calculations of routes: 0 is 1 s.
	RouteInterval time.Duration
	// Seed of the jitter of messages and of the first sequence numbers.
	Seed int64
}

// Hysteresis of a link's quality.
type Hysteresis = core.Hysteresis

// Route to a network or to a node's address.
type Route struct {
	Destination netip.Prefix
	// NextHop is a neighbour's address on the link of Interface; for a neighbour itself the destination's own.
	NextHop netip.Addr
	// Interface by its index in Config.
	Interface int
	// Hops over the radio, and the sum of the links' metrics (equal for HopCount).
	Hops   int
	Metric uint32
}

// CompareDestinations of routes: -1, 0 or 1, by address and then by length of the prefix.
func CompareDestinations(a, b *Route) int {
	return cmp.Or(a.Destination.Addr().Compare(b.Destination.Addr()), cmp.Compare(a.Destination.Bits(), b.Destination.Bits()))
}

// Tables of a Router, each ordered by address.
type Tables struct {
	// Originator is the address by which the node is known in the domain.
	Originator netip.Addr
	// ANSN is the number of the node's advertised neighbour set, SequenceNumber that of its last message.
	ANSN, SequenceNumber uint16
	Links                []Link
	TwoHops              []TwoHop
	Topology             []Edge
	Attached             []AttachedNetwork
	// FloodingMPRs and RoutingMPRs chosen by the node, and those that chose it.
	FloodingMPRs, RoutingMPRs, FloodingSelectors, RoutingSelectors []netip.Addr
	// Silent interfaces (EMCON), by index.
	Silent []int
}

// LinkStatus of a link.
type LinkStatus string

// The statuses (RFC 6130 section 7.1).
const (
	Pending   LinkStatus = "pending"
	Heard     LinkStatus = "heard"
	Symmetric LinkStatus = "symmetric"
	Lost      LinkStatus = "lost"
)

// Link to a neighbour.
type Link struct {
	Interface int
	// Neighbour is its address on the link, Originator the one it is known by in the domain.
	Neighbour, Originator netip.Addr
	Status                LinkStatus
	// InMetric towards this node and OutMetric from it; 0 is unknown.
	InMetric, OutMetric uint32
	// Quality is the share of packets that come through, where it is reckoned; else 1.
	Quality float64
	Expires time.Time
}

// TwoHop is a node behind a neighbour.
type TwoHop struct {
	Interface          int
	Neighbour, Address netip.Addr
	Metric             uint32
	Expires            time.Time
}

// Edge of the topology that TCs tell of.
type Edge struct {
	From, To netip.Addr
	Metric   uint32
	Expires  time.Time
}

// AttachedNetwork and the gateway to it.
type AttachedNetwork struct {
	Gateway netip.Addr
	Prefix  netip.Prefix
	Hops    int
	Metric  uint32
	Expires time.Time
}

// Counters of a Router.
type Counters struct {
	PacketsSent, PacketsReceived uint64
	BytesSent, BytesReceived     uint64 // of UDP payload
	HellosSent, HellosReceived   uint64
	TCsSent, TCsReceived         uint64
	// OthersSent and OthersReceived: MID and HNA of OLSRv1, unknown types.
	OthersSent, OthersReceived uint64
	Forwarded                  uint64
	// Duplicates were received before and neither used nor forwarded again.
	Duplicates uint64
	// Refused are packets and messages that were malformed, or not what a node may send.
	Refused uint64
	// Overflows are entries that found no room in a full table.
	Overflows uint64
	// Silenced are messages that were not sent because of EMCON.
	Silenced                      uint64
	RouteCalculations, MPRChanges uint64
	// RouteChanges counts how often the set of routes became another.
	RouteChanges uint64
}

// SortTables puts topology and attached networks in the order of their addresses.
func SortTables(t *Tables) {
	slices.SortFunc(t.Topology, func(a, b Edge) int { return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To)) })
	slices.SortFunc(t.Attached, func(a, b AttachedNetwork) int {
		return cmp.Or(a.Gateway.Compare(b.Gateway), a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
	})
}
