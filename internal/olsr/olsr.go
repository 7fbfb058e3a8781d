// Package olsr implements the Optimized Link State Routing Protocol version 2 (RFC 7181) with its
// neighbourhood discovery (NHDP, RFC 6130), as a state machine. It opens no socket, starts no goroutine and
// reads no clock. It sends by a function; received packets and the time are arguments. Package v1 implements
// version 1 (RFC 3626).
package olsr

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// The protocols' ports and group: UDP, to link-local multicast or broadcast, with an IP time to live of 1.
const (
	// Port of MANET protocols (RFC 5498 section 3), OLSRv2 among them.
	Port = 269
	// PortV1 of OLSRv1 (RFC 3626 section 3.1), which sends to the interface's broadcast address.
	PortV1 = 698
)

// Group is LL-MANET-Routers (RFC 5498 section 3), to which OLSRv2 sends.
var Group = netip.AddrFrom4([4]byte{224, 0, 0, 109})

// Router is one node of a routing domain. It is for one goroutine at a time. Send takes ownership of its
// packet; Receive does not.
type Router interface {
	// Receive processes a packet (the payload of a UDP datagram) from the interface of that index. An error
	// says what was refused, and needs no handling. Call Tick afterwards.
	Receive(now time.Time, iface int, from netip.Addr, packet []byte) error
	// Tick runs all timers that are due, and returns when to call it next at the latest. Calling it earlier
	// is harmless and cheap.
	Tick(now time.Time) (next time.Time)
	// Transmit sets whether the node may transmit on an interface; at the start it may. A silent node keeps
	// its tables as far as it can by listening (EMCON). Allowed again, it sends a HELLO at once.
	Transmit(now time.Time, iface int, allowed bool)
	// Routes as of the last Tick, ordered by topology and destination. The slice is the Router's, and valid until the next Tick.
	Routes() []Route
	// Generation of Routes: a number that changes with them.
	Generation() uint64
	// Tables returns copies of the tables as of the last Tick or Receive, for display and records.
	Tables() Tables
	// Counters since New; a snapshot does not restore them.
	Counters() Counters
	// Snapshot returns the state with which a successor continues unnoticed by neighbours: sequence numbers
	// and tables.
	Snapshot(now time.Time) ([]byte, error)
	// Restore restores a Snapshot, before the first Tick. Expired entries are left out. On an error nothing
	// is restored, and the router starts without state.
	Restore(now time.Time, snapshot []byte) error
}

// Send transmits a packet on the interface of that index. The Router does not use the packet again.
type Send func(iface int, packet []byte)

// Metric of links.
type Metric int

// The metrics. OLSRv1 has hop count only.
const (
	HopCount Metric = iota
	// DAT is directional airtime (RFC 7779): a link's cost in time on the air, from the share of lost packets
	// and its rate.
	DAT
)

// MaxTopologies of a domain: that of Config.Metric and further ones.
const MaxTopologies = 3

// Topology of a domain beside that of Config.Metric (RFC 7722): routes of its own by another metric.
type Topology struct {
	// Type of its link metric in messages, the type extension of LINK_METRIC (RFC 7181 section 24.5). Config.Metric has 0.
	Type   uint8
	Metric Metric
}

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
	// MTU of a packet (a UDP payload) in bytes; 0 is 1232 (the least IPv6 link, RFC 8200 section 5).
	MTU int
	// RateBitsPerSecond of a link, for DAT; 0 is unknown, and then all links count as equally fast.
	RateBitsPerSecond float64
	// Hello is the interval of HELLOs on this interface; 0 is Config's. HelloValidity is their validity: 0 is
	// three intervals if Hello is given, else Config's.
	Hello, HelloValidity time.Duration
	// TC is the interval of this node's TCs on this interface; 0 is Config's. Others' TCs that come over an
	// interface with a shorter one go on over this interface at this interval as well. TCValidity is the validity of
	// this node's: 0 is three intervals if TC is given, else Config's.
	TC, TCValidity time.Duration
	// Topologies whose routes may lead over the interface, by Type, beside the first.
	Topologies []uint8
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
	// Hello is the interval of HELLOs (2 s), HelloValidity their validity (three intervals). An Interface may
	// have its own.
	Hello, HelloValidity time.Duration
	// TC is the interval of topology control messages (5 s), TCValidity their validity (three intervals). An
	// Interface may have its own.
	TC, TCValidity time.Duration
	Metric         Metric
	// Topologies beside that of Metric, for OLSRv2. Routers that do not know them use the first.
	Topologies []Topology
	Attached   []Attached
	// FloodingWillingness and RoutingWillingness to be an MPR; nil is WillDefault. OLSRv1 has only one, of 7
	// steps: half of the routing one.
	FloodingWillingness, RoutingWillingness *int
	// RouteInterval is the least time between two calculations of routes: 0 is 1 s.
	RouteInterval time.Duration
	// Seed of the jitter of messages and of the first sequence numbers.
	Seed int64
}

// Route to a network or to a node's address.
type Route struct {
	Destination netip.Prefix
	// NextHop is a neighbour's address on the link of Interface. For a neighbour itself it is the
	// destination.
	NextHop netip.Addr
	// Interface by its index in Config.
	Interface int
	// Topology is 0 for that of Config.Metric, else 1 + the index in Config.Topologies.
	Topology int
	// Hops over the radio, and the sum of the links' metrics (equal for HopCount).
	Hops   int
	Metric uint32
}

// CompareDestinations of routes: -1, 0 or 1, by topology, address and then by length of the prefix.
func CompareDestinations(a, b *Route) int {
	return cmp.Or(cmp.Compare(a.Topology, b.Topology), a.Destination.Addr().Compare(b.Destination.Addr()), cmp.Compare(a.Destination.Bits(), b.Destination.Bits()))
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
	Heard     LinkStatus = "heard"
	Symmetric LinkStatus = "symmetric"
	Lost      LinkStatus = "lost"
)

// Link to a neighbour.
type Link struct {
	Interface int
	// Neighbour is its address on the link, Originator its address in the domain.
	Neighbour, Originator netip.Addr
	Status                LinkStatus
	// InMetric towards this node and OutMetric from it; 0 is unknown.
	InMetric, OutMetric uint32
	Expires             time.Time
}

// TwoHop is a node behind a neighbour.
type TwoHop struct {
	Interface          int
	Neighbour, Address netip.Addr
	Metric             uint32
	Expires            time.Time
}

// Edge of the topology that TCs advertise.
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
	PacketsSent         uint64
	BytesSent           uint64 // of UDP payload
	HellosSent, TCsSent uint64
	Forwarded           uint64
	// Duplicates were received before, and neither used nor forwarded again.
	Duplicates uint64
	// Refused are packets and messages that were malformed, or not allowed from a node.
	Refused uint64
	// Overflows are entries that found no room in a full table.
	Overflows uint64
	// Silenced are messages that were not sent because of EMCON.
	Silenced          uint64
	RouteCalculations uint64
	// RouteChanges counts changes of the set of routes.
	RouteChanges uint64
}

// SortTables sorts topology and attached networks by address.
func SortTables(t *Tables) {
	slices.SortFunc(t.Topology, func(a, b Edge) int { return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To)) })
	slices.SortFunc(t.Attached, func(a, b AttachedNetwork) int {
		return cmp.Or(a.Gateway.Compare(b.Gateway), a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
	})
}
