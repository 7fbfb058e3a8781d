package v1

import (
	"math/rand"
	"net/netip"
	"slices"
	"time"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/olsr/internal/core"
)

const (
	duplicateHold = 30 * time.Second // DUP_HOLD_TIME (RFC 3626 section 18.3)
	willAlways    = 7                // WILL_ALWAYS

	maxNeighbours = 2048
	maxTwoHops    = 1 << 13
	maxOrigins    = 1 << 12
	maxEdges      = 4096
	maxAllEdges   = 1 << 18
)

// router is the state of a node (RFC 3626 section 4). A snapshot keeps tables.
type router struct {
	tables
	c      olsr.Config
	send   olsr.Send
	random *rand.Rand
	clock  core.Epoch
	origin netip.Addr
	own    map[netip.Addr]bool
	ifaces []*iface

	started                    bool
	schedules                  []*schedule
	last, nextSweep, nextRoute time.Duration
	mprDirty, dirty            bool

	index      core.Index
	paths      core.Paths
	routes     []olsr.Route
	generation uint64
	counters   olsr.Counters
	twoHops    int
	allEdges   int
	messages   []message
}

type iface struct {
	olsr.Interface
	number    int
	silent    bool
	nextHello time.Duration
	queue     core.Queue
	packetSeq uint16
}

// schedule of this node's messages that are flooded, over some interfaces.
type schedule struct {
	olsr.TCSchedule
	nextTC, nextMID, nextHNA time.Duration
}

// tables are the protocol's information repositories. Moments are the Router's own.
type tables struct {
	Sequence, ANSN uint16
	// Advertised MPR selectors of the last TC, EmptyTCs until when TCs without any are sent.
	Advertised []netip.Addr
	EmptyTCs   time.Duration
	Links      map[linkKey]*link
	Neighbours map[netip.Addr]*neighbour // by main address
	Mains      map[netip.Addr]*alias     // main addresses of interfaces (Interface Association Set)
	Origins    map[netip.Addr]*origin
}

type linkKey struct {
	Interface int
	Address   netip.Addr
}

// MarshalText is for the keys of a snapshot.
func (k linkKey) MarshalText() ([]byte, error) {
	return append([]byte{'0' + byte(k.Interface), ' '}, k.Address.String()...), nil
}

// UnmarshalText is for the keys of a snapshot.
func (k *linkKey) UnmarshalText(text []byte) error {
	if len(text) < 3 {
		return errKey
	}
	k.Interface = int(text[0]) - '0'
	return k.Address.UnmarshalText(text[2:])
}

// link is a Link Tuple (RFC 3626 section 4.2.1).
type link struct {
	Main                       netip.Addr
	Symmetric, Asymmetric, End time.Duration
	// symmetric is whether routes and MPRs know the link as symmetric.
	symmetric bool
}

// neighbour is a Neighbor Tuple with its 2-hop, MPR and MPR Selector Tuples (RFC 3626 section 4.3).
type neighbour struct {
	Willingness uint8
	Symmetric   bool
	MPR         bool
	Selector    time.Duration
	TwoHops     map[netip.Addr]time.Duration
}

type alias struct {
	Main netip.Addr
	End  time.Duration
}

// origin is the content of a node's messages: Topology Tuples (RFC 3626 section 4.4), HNA (12.2) and
// duplicates (3.4).
type origin struct {
	Processed, Forwarded core.Window
	Received             []core.Window
	ANSN                 uint16
	End                  time.Duration
	Edges                []netip.Addr                   `json:",omitempty"`
	Networks             map[netip.Prefix]time.Duration `json:",omitempty"`

	thinnings map[thinningKey]*core.Thinning
}

// thinningKey is an interface's number and a type of messages.
type thinningKey struct {
	iface int
	kind  uint8
}

func (l *link) status(now time.Duration) olsr.LinkStatus {
	switch {
	case l.Symmetric > now:
		return olsr.Symmetric
	case l.Asymmetric > now:
		return olsr.Heard
	}
	return olsr.Lost
}

// main returns the main address of an interface's address; that address itself if nothing else is known.
func (r *router) main(a netip.Addr) netip.Addr {
	if m := r.Mains[a]; m != nil {
		return m.Main
	}
	return a
}

func (r *router) sortedLinks() []linkKey {
	all := make([]linkKey, 0, len(r.Links))
	for k := range r.Links {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b linkKey) int {
		if a.Interface != b.Interface {
			return a.Interface - b.Interface
		}
		return a.Address.Compare(b.Address)
	})
	return all
}

// expireBy schedules the next search for expired entries at a moment at the latest.
func (r *router) expireBy(at time.Duration) {
	if at > r.last {
		r.nextSweep = min(r.nextSweep, at)
	}
}
