package olsr

import (
	"cmp"
	"hash/maphash"
	"math/rand"
	"net/netip"
	"slices"
	"time"

	"vignette.dev/vignette/internal/olsr/internal/core"
	"vignette.dev/vignette/internal/olsr/rfc5444"
)

// Message types, and TLVs with their values (RFC 6130 section 15, RFC 7181 section 24).
const (
	messageHello = 0
	messageTC    = 1

	messageMPRWilling = 7
	mprTypesExtension = 1 // of messageMPRWilling: the MPR_TYPES TLV of RFC 7722
	messageContSeqNum = 8
	completeTC        = 0
	incompleteTC      = 1

	addressLocalIf     = 2
	addressLinkStatus  = 3
	addressOtherNeighb = 4
	addressLinkMetric  = 7
	addressMPR         = 8
	addressNbrType     = 9
	addressGateway     = 10

	thisIf, otherIf = 0, 1

	statusLost, statusSymmetric, statusHeard = 0, 1, 2

	// mprRouting is the bit of the first of the sender's metric types; those of further types follow (RFC 7722).
	mprFlooding, mprRouting = 1, 2

	nbrOriginator, nbrRoutable = 1, 2
)

// Hold time (RFC 7181 section 5.4) and bounds of the tables.
const (
	duplicateHold = 30 * time.Second

	maxNeighbours = 2048
	maxTwoHops    = 1 << 13
	maxEdges      = 4096
)

// router is the state of a node. Its parts are named as in RFC 6130 sections 7 and 8 and RFC 7181 sections 7 to 11, without
// their prefixes.
type router struct {
	c          Config
	topologies []Topology // the first is that of Config.Metric
	measures   bool       // a topology has metric DAT
	send       Send
	random     *rand.Rand
	clock      core.Epoch
	length     int // of an address in bytes
	origin     netip.Addr
	own        map[netip.Addr]bool
	ifaces     []*iface
	seq        uint16
	ansn       uint16
	advertised []byte // the encoded content of the last TC

	neighbours map[netip.Addr]*neighbour // by each of its addresses
	lost       map[netip.Addr]time.Duration
	lostHold   time.Duration // N_HOLD_TIME, for which RFC 6130 proposes the validity of HELLOs
	twoHops    int

	index    core.Index
	indexAge uint32    // how often the index was made
	topology []*remote // by index; nil for an address that sends no TC
	allEdges int
	hash     maphash.Seed

	last      time.Duration
	started   bool
	schedules []*schedule
	emptyTCs  time.Duration // until when TCs are sent that advertise nothing
	nextSweep time.Duration
	nextRoute time.Duration
	mprDirty  bool
	dirty     bool // routes are older than the tables

	paths      core.Paths
	routes     []Route
	unsorted   []Route // where the next ones are collected
	generation uint64
	counters   Counters

	// Memory kept between uses.
	statements      addressStatements
	positions       [MaxTopologies]int // of the last message's sender
	entryBuilder    entryBuilder
	encoded         []byte
	routable        []bool
	extra           [][]core.Edge
	extraEdges      []core.Edge
	scratchEdges    []remoteEdge
	scratchNetworks []remoteNetwork
	packet          rfc5444.Packet
	message         rfc5444.Message
}

// iface is a local interface (RFC 6130 section 7), with the links on it.
type iface struct {
	Interface
	number    int
	carries   [MaxTopologies]bool // by topology
	links     links
	silent    bool
	nextHello time.Duration
	queue     core.Queue
	packetSeq uint16
}

// schedule of this node's TCs over some interfaces.
type schedule struct {
	TCSchedule
	next time.Duration
}

// link is a Link Tuple (RFC 6130 section 7.1, RFC 7181 section 8.1), with its 2-Hop Tuples (7.2).
type link struct {
	iface   *iface
	address netip.Addr
	// heardUntil, symmetricUntil and until are L_HEARD_time, L_SYM_time and L_time.
	heardUntil, symmetricUntil, until time.Duration
	// symmetric is whether the rest of the state knows the link as symmetric.
	symmetric           bool
	inMetric, outMetric metrics
	// floodingMPR: chosen by this node; selector: chosen this node.
	floodingMPR, selector bool
	neighbour             *neighbour
	twoHops               twoHops
	loss                  loss
}

// neighbour is a Neighbor Tuple (RFC 6130 section 8.1, RFC 7181 section 9.1).
type neighbour struct {
	addresses            []netip.Addr
	origin               netip.Addr
	willFlooding         int
	willRouting          [MaxTopologies]int
	routingMPR, selector [MaxTopologies]bool
	links                []*link
	symmetric            bool
	inMetric, outMetric  metrics
	best                 [MaxTopologies]*link // the symmetric one of the least outMetric
}

// remote is the content of an originator's messages: its Advertising Remote Router Tuple, Router Topology,
// Routable Address Topology and Attached Network Tuples (RFC 7181 section 10), and the duplicates of section
// 11.
type remote struct {
	processed, forwarded core.Window
	received             []core.Window   // by interface
	thinnings            []core.Thinning // by interface; none while all have the same interval of TCs
	ansn                 uint16
	until                time.Duration
	validity             time.Duration
	// contentDigest is a digest of the last complete TC.
	contentDigest uint64
	edges         []remoteEdge
	networks      []remoteNetwork
}

type remoteEdge struct {
	to       int32
	metric   metrics
	routable bool
	until    time.Duration
}

type remoteNetwork struct {
	prefix netip.Prefix
	hops   [MaxTopologies]uint8
	metric metrics
	until  time.Duration
}

func (l *link) status(now time.Duration) LinkStatus {
	switch {
	case l.symmetricUntil > now:
		return Symmetric
	case l.heardUntil > now:
		return Heard
	}
	return Lost
}

// usable reports whether a topology's routes may lead over the link: both directions' metrics must be known (RFC 7181
// section 6.1).
func (l *link) usable(topology int) bool {
	return l.symmetric && l.outMetric[topology] != 0 && l.inMetric[topology] != 0
}

// sortedNeighbours by originator, each once.
func (r *router) sortedNeighbours() []*neighbour {
	all := make([]*neighbour, 0, len(r.neighbours))
	for a, n := range r.neighbours {
		if a == n.addresses[0] {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b *neighbour) int {
		return cmp.Or(a.origin.Compare(b.origin), a.addresses[0].Compare(b.addresses[0]))
	})
	return all
}

func (r *router) whole(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// remoteOf returns the remote of an address's number, made if needed.
func (r *router) remoteOf(i int32) *remote {
	for int(i) >= len(r.topology) {
		r.topology = append(r.topology, nil)
	}
	if r.topology[i] == nil {
		r.topology[i] = &remote{}
	}
	return r.topology[i]
}

// reserve makes room for new addresses in the graph. More than MaxAddresses are not a network, but garbage.
// All are then forgotten, and real ones are announced again within a TC interval.
func (r *router) reserve(addresses int) {
	if len(r.index.Addrs)+addresses <= core.MaxAddresses {
		return
	}
	r.counters.Overflows += uint64(len(r.index.Addrs))
	r.index, r.topology, r.allEdges, r.dirty = core.Index{}, nil, 0, true
	r.indexAge++
}
