// Package dataplane carries the frames of radio networks by the requests of a Plane. It knows no cluster.
package dataplane

import (
	"time"

	"vignette.dev/vignette/internal/emane/ota"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/internal/radiod/framering"
	"vignette.dev/vignette/internal/radiod/peers"
)

// Plane carries frames as it is told. Its methods may be called on any goroutine. Networks are known by their UIDs.
// Times are nanoseconds of CLOCK_MONOTONIC, where nothing else is said.
type Plane interface {
	// Left is what earlier workers left here. The requests of the next one take it up, if they are the same.
	Left() (Left, error)
	// Restored notes that a worker has recorded the time since an earlier Plane was last seen.
	Restored() error
	// DropLeft ends what no request has taken up.
	DropLeft() error

	// SetNetwork makes a network, or changes one. Frames under way are not disturbed.
	SetNetwork(n *Network) error
	// EndNetwork ends a network and forgets its ports, which must have been detached. It returns the last counters of
	// those with frames that were still under way.
	EndNetwork(uid string) (map[PortID]radio.Counters, error)
	// Resume lets the frames of all paused networks flow, at all ports of a network from the same moment on. The next
	// call tries again the ports that it could not watch.
	Resume() error
	// SetEnvironment gives a network's radios their environment, or adds to it.
	SetEnvironment(e *Environment) error

	// Attach adds a port to a network. Frames flow at once, unless the network is paused.
	Attach(p *Port) (PortID, error)
	// Detach removes a port, and returns what it last counted. Frames that its node sent continue.
	Detach(id PortID) (PortCounters, error)
	// Counters of a port. Those of a detached one change until none of its frames is under way.
	Counters(id PortID) (radio.Counters, error)

	// Snapshot returns the counters of a network's local ports at one instant. With reset, values since the last reset
	// start again.
	Snapshot(uid string, reset bool) (*Snapshot, error)
	// Links returns the links to each of a few ports from all others, of a network with a physical layer. A loop needs a
	// tenth of a millisecond for about 4000 links.
	Links(uid string, receivers []PortID) ([][]phy.LinkStatistics, error)
	// LateIntervals returns the times in which each loop handled frames late. The next call returns them again, perhaps to
	// another worker, unless ForgetLateIntervals says that they are logged.
	LateIntervals() ([][]radio.Interval, error)
	ForgetLateIntervals() error
	// Events waits for events, and returns them once. It returns none once the Plane is closed. One goroutine may call it.
	Events() []Event
	// SetTap has a ring take copies of a port's frames; nil ends that. Once it returns, the ring before takes none.
	SetTap(id PortID, t *framering.Tap) error

	// SetHosts sets the hosts to talk to. Transmissions go to those with ports of their network.
	SetHosts(all map[string]peers.Address) error
	// Hosts returns their states. With reset, the worst lateness starts again at 0.
	Hosts(reset bool) (HostStates, error)
	// SetRelay carries a network's over-the-air datagrams of EMANE's as the relay says; the zero Relay ends that.
	SetRelay(uid string, to Relay) error
	// SetChannel gives the sockets of that network's EMANE processes on this host, which the Plane closes; nil for none.
	SetChannel(uid string, of *ota.Sockets) error

	// AwaitLoops returns after every event loop has finished an iteration. It never returns if a loop is stuck.
	AwaitLoops() error
	// Close ends the use of the Plane, and Events.
	Close() error
}

// Relay of a network that EMANE carries.
type Relay struct {
	// Hosts get the network's datagrams, and its processes here get theirs.
	Hosts []string
	// Neighbours are the UIDs of the networks whose datagrams its processes get too, of this host and of Hosts.
	Neighbours []string
}

// Left is what a worker finds when it starts.
type Left struct {
	// Networks are the UIDs of those whose frames flow since earlier.
	Networks []string
	// Steps are the times of their environments' last steps, in nanoseconds after T0.
	Steps map[string]int64
	// New reports whether the Plane is a new one, before Restored. Seen is when the one before was last seen, Resumed when
	// frames flowed again, both by CLOCK_REALTIME and 0 for never.
	New           bool
	Seen, Resumed int64
}

// PortID identifies a port of a Plane; 0 is none. It is never used again.
type PortID uint64

// Network is a network as it is to be. Exactly one of Link, RFPipe and TDMA is set, and stays so.
type Network struct {
	UID string
	// MTU of the members' interfaces, bytes.
	MTU int
	// Paused leaves frames in the interfaces of a new network until Resume.
	Paused bool

	Link   *LinkModel
	RFPipe *RFPipeModel
	TDMA   *TDMAModel

	// Now holds at once, and Later from their times on, in order. T0 by CLOCK_REALTIME is the zero of these times.
	Now   State
	T0    int64
	Later []Change
	// Version distinguishes this request in events from earlier ones for the network.
	Version uint64
}

// LinkModel has what never changes of a network of links.
type LinkModel struct {
	Seed int64
	// Effects reports whether the environment has comm effects, which replace the links.
	Effects bool
}

// RFPipeModel has what never changes of an RF pipe.
type RFPipeModel struct {
	Seed         int64
	QueueDepth   int
	Interference phy.Interference
	HalfDuplex   bool
	// DutyCycle is the share of time in which a node may send; 0 is without limit.
	DutyCycle float64
	// PCR is EMANE's file with the curve; empty for none.
	PCR string
}

// TDMAModel has what never changes of a TDMA network.
type TDMAModel struct {
	Seed         int64
	Interference phy.Interference
	// PCR is EMANE's file with the curve; empty for none.
	PCR           string
	AdaptiveRates []tdma.Rate
	Queue         tdma.Queue
}

// State has what may change while a network runs. In a Change, what is nil stays as it was.
type State struct {
	// Silent radios send and receive nothing.
	Silent bool
	// Links of a network of links.
	Links *Links
	// Radios of an RF pipe or TDMA network.
	Radios *Radios
	// Delay and Jitter of an RF pipe.
	Delay, Jitter time.Duration
	// Schedule of a TDMA network.
	Schedule *tdma.Schedule
}

// Links of a network: the default, and those that replace it.
type Links struct {
	Default link.Parameters
	Links   []link.Link
}

// Radios of a network's members, by NEM id.
type Radios struct {
	ByNEM map[int]Radio
	// Other is the radio of a port that is no member any more.
	Other Radio
}

// Radio is one member's radio.
type Radio struct {
	phy.Radio
	RateBitsPerSecond float64
}

// Of returns the radio of the member with a NEM id.
func (r *Radios) Of(nem int) Radio {
	if own, ok := r.ByNEM[nem]; ok {
		return own
	}
	return r.Other
}

// Change of a network at a time.
type Change struct {
	// AtNanoseconds after T0.
	AtNanoseconds int64
	State
	// Neighbour reports whether it is a change of another network's radios, which that network counts.
	Neighbour bool
}

// Port is an attachment.
type Port struct {
	// Network is the UID of its network.
	Network string
	// Name and Group of the node, and its NEM id.
	Name, Group string
	NEM         int
	MAC         radio.MAC
	// Descriptor of the TAP, non-blocking, for a port of this host. The caller closes it after Detach.
	Descriptor int
	// CounterFile is the path of the port's counters; empty for none, so that they end with the Plane.
	CounterFile string
	// Host of a port of another host, which SetHosts has named; empty for one of this host.
	Host string
	// Neighbour is the UID of another network that this one disturbs by the port's radio; empty for a member. NEM plus
	// NeighbourOffset is the id of a member of this network in the other one. Such a port has neither MAC nor Descriptor.
	Neighbour       string
	NeighbourOffset int
	// Tap takes the port's frames for captures; nil for none.
	Tap *framering.Tap
}

// IsHere reports whether the port's node is on this host.
func (p *Port) IsHere() bool { return p.Host == "" && p.Neighbour == "" }

// PortCounters are what a port has counted.
type PortCounters struct {
	ID   PortID
	Name string
	NEM  int
	radio.Counters
	// Slots of a TDMA radio.
	Slots tdma.SlotStatistics
	// Classes are the frames that wait at a TDMA radio, by class of service; nil for other radios.
	Classes []int
}

// Snapshot has the counters of a network.
type Snapshot struct {
	// Loop that serves the network, as in LateIntervals.
	Loop  int
	Ports []PortCounters
	// LinksHeard is the number of links on which something was sent.
	LinksHeard int
}
