package radio

import (
	"fmt"
	"slices"
)

// PortOptions describe an attachment.
type PortOptions struct {
	// Name and Group of the node, and its NEM id.
	Name, Group string
	NEM         int
	MAC         MAC
	// Ledger in which the port counts, starting from its values; nil for a new one. It must stay in memory as
	// long as anything refers to the Port.
	Ledger *Ledger

	// The fields from here to Port.counters share a cache line, because each frame uses them.

	// Host that serves the port; nil for this one. All ports of a network on one host have the same Host.
	Host Host
	// Handle is by what the Output knows the port.
	Handle int
	// Tap that watches the port; nil for none. It may be changed.
	Tap Tap
	// Neighbour reports whether the port's radio is one of another network, whose Host takes transmissions there. It
	// receives nothing here: the networks disturb each other. Attach gives it a MAC that no frame to one node has.
	Neighbour bool
}

// Port is one node's attachment to a network.
type Port struct {
	PortOptions

	detached bool
	counters *Ledger

	// Slot is the port's index among those of the network.
	Slot int

	network *Network
}

// Direction of a frame at a port, as its node sees it.
type Direction uint8

// The directions: Out is from the node to its radio, In from the radio to the node.
const (
	Out Direction = iota
	In
)

// Tap watches the frames of one port.
type Tap interface {
	// Frame is called for each frame that the port counts as sent or received, in order. It must neither block nor
	// allocate, and data is only valid until it returns.
	Frame(direction Direction, data []byte)
}

// Attach adds a port; frames flow at once. A second local port with the same MAC is refused. A port on
// another host does not replace a local one, but is replaced by it.
func (n *Network) Attach(now int64, options PortOptions) (*Port, error) {
	p := &Port{PortOptions: options, network: n, counters: options.Ledger}
	if p.Neighbour {
		p.MAC = multicastBit | MAC(p.NEM) //nolint:gosec // NEM ids have 16 bits
	}
	if p.counters == nil {
		p.counters = &Ledger{}
	}
	other := n.byMAC[p.MAC]
	if other != nil && (other.IsLocal() || !p.IsLocal()) {
		return nil, fmt.Errorf("mac %v of %s: already attached for %s", p.MAC, p.Name, other.Name)
	}
	rest := append([]*Port(nil), n.ports...)
	if other != nil {
		other.detached = true
		rest = n.portsExcept(other)
	}
	n.byMAC[p.MAC] = p
	n.setPorts(now, append(rest, p))
	return p, nil
}

// Detach removes the port and returns its counters. Frames that its node sent continue, see CurrentCounters;
// frames to it are dropped. Detaching again does nothing.
func (p *Port) Detach(now int64) (last Counters) {
	n := p.network
	last = p.CurrentCounters()
	if !p.detached {
		p.detached = true
		delete(n.byMAC, p.MAC)
		n.setPorts(now, n.portsExcept(p))
	}
	return last
}

// portsExcept returns a new slice of the ports except p.
func (n *Network) portsExcept(p *Port) []*Port {
	return slices.DeleteFunc(slices.Clone(n.ports), func(other *Port) bool { return other == p })
}

func (n *Network) setPorts(now int64, ports []*Port) {
	from := SetSlots(n.ports, ports)
	n.ports = ports
	n.countHosts()
	n.model.Members(now, ports, from)
}

// SetSlots sets each port's Slot to its index, and returns the Slots before; -1 for ports that were not among before.
func SetSlots(before, ports []*Port) (from []int) {
	from = make([]int, len(ports))
	for i, p := range ports {
		from[i] = -1
		if p.Slot < len(before) && before[p.Slot] == p {
			from[i] = p.Slot
		}
		p.Slot = i
	}
	return from
}

// CurrentCounters returns the port's counters. They change after Detach until none of its frames is under way.
func (p *Port) CurrentCounters() Counters {
	p.network.Tally(len(p.network.ports))
	return p.counters.Counters
}

// MarkReading notes that a driver is about to read a frame of the port's node, or has read none. A frame that is read
// and not yet received is so found in the ledger of a killed process.
func (p *Port) MarkReading(reading bool) {
	p.counters.reading = 0
	if reading {
		p.counters.reading = 1
	}
}

// Snapshot is the counters of one port at one instant.
type Snapshot struct {
	Port *Port
	Counters
}

// Snapshot appends the counters of all local ports at one instant. With reset, WorstLateness and LateReleases start
// again at 0.
func (n *Network) Snapshot(all []Snapshot, reset bool) []Snapshot {
	n.Tally(len(n.ports))
	for _, p := range n.ports {
		if !p.IsLocal() {
			continue
		}
		all = append(all, Snapshot{p, p.counters.Counters})
		if reset {
			p.counters.WorstLateness, p.counters.LateReleases = 0, 0
		}
	}
	return all
}

// Ports is the number of ports, on all hosts.
func (n *Network) Ports() int { return len(n.ports) }

// Find returns the attached port with the address, or nil.
func (n *Network) Find(m MAC) *Port { return n.byMAC[m] }
