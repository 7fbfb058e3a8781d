// Package virtual runs radio networks in virtual time, for tests and pictures: exactly, and as fast as the machine can.
package virtual

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio"
)

// Everybody is the broadcast address, and Stranger that of nobody.
const (
	Everybody = radio.MAC(0xffffffffffff)
	Stranger  = radio.MAC(0x02020000ffff)
)

// Address of a node with an NEM id.
func Address(nem int) radio.MAC { return radio.MAC(0x020200000000 + nem) }

// sequenceAt is where frames have their sequence number: after the headers of Ethernet and IPv4.
const (
	sequenceAt = 34
	// Shortest frame with a sequence number, in bytes.
	Shortest = sequenceAt + 8
)

// Network is a radio network on one or several hosts.
type Network struct {
	// Now is the time on all hosts, nanoseconds.
	Now int64
	// Latency of transmissions between hosts.
	Latency time.Duration
	// Late is how long after its time a host does each thing.
	Late time.Duration
	// Hosts of the network. A node is on the one at its NEM id modulo their number.
	Hosts []*Host
	// Arrived is called for each frame that a node receives; nil for none. The data is only valid during the call.
	Arrived func(nem int, a Arrival, data []byte)
	// Shipped is called for each transmission from a host to another; nil for none.
	Shipped func(from, to *Host, s *radio.Shipment)

	received map[int][]Arrival
	discards bool    // what nodes receive
	sentAt   []int64 // by sequence number
	flying   []flight
}

// Host has an engine with its part of the network.
type Host struct {
	*radio.Engine
	Network *radio.Network
	Ports   map[int]*radio.Port // by NEM id
}

// Arrival is a frame that a node received.
type Arrival struct {
	From     int // NEM id
	Sequence uint64
	Length   int
	// Sent is when the sender's node sent it, At when it came.
	Sent, At int64
}

// Delay from being sent to being received.
func (a Arrival) Delay() time.Duration { return time.Duration(a.At - a.Sent) }

// flight is a transmission between hosts.
type flight struct {
	at       int64
	to       *Host
	shipment *radio.Shipment
}

// New makes a network without nodes, with a host for each of the models, a second after the time's beginning.
func New(mtu int, models ...radio.Model) *Network {
	n := &Network{Now: int64(time.Second), received: map[int][]Arrival{}}
	for _, m := range models {
		h := &Host{Engine: radio.NewEngine(output{n}), Ports: map[int]*radio.Port{}}
		var err error
		if h.Network, err = h.NewNetwork(radio.NetworkOptions{Model: m, MTU: mtu}); err != nil {
			panic(err)
		}
		n.Hosts = append(n.Hosts, h)
	}
	return n
}

// NewOf makes a network on one host, with nodes of the NEM ids 1, 2, … and names and groups node-1, node-2, …
func NewOf(nodes int, model radio.Model) *Network {
	n := New(1500, model)
	n.JoinAll(nodes)
	return n
}

// JoinAll adds nodes with the NEM ids 1, 2, … and names and groups node-1, node-2, …
func (n *Network) JoinAll(nodes int) {
	for nem := 1; nem <= nodes; nem++ {
		name := fmt.Sprint("node-", nem)
		n.Join(nem, name, name)
	}
}

// Join adds a node at all hosts.
func (n *Network) Join(nem int, name, group string) {
	for _, h := range n.Hosts {
		options := radio.PortOptions{Name: name, Group: group, NEM: nem, MAC: Address(nem)}
		if home := n.Home(nem); h != home {
			options.Host = wire{n, h, home}
		}
		p, err := h.Network.Attach(n.Now, options)
		if err != nil {
			panic(err)
		}
		h.Ports[nem] = p
	}
}

// Leave removes a node at all hosts.
func (n *Network) Leave(nem int) {
	for _, h := range n.Hosts {
		h.Ports[nem].Detach(n.Now)
	}
}

// Home is the host that serves a node.
func (n *Network) Home(nem int) *Host { return n.Hosts[nem%len(n.Hosts)] }

// Port of a node at its host.
func (n *Network) Port(nem int) *radio.Port { return n.Home(nem).Ports[nem] }

// Counters of a node.
func (n *Network) Counters(nem int) radio.Counters { return n.Port(nem).CurrentCounters() }

// Configure changes the model at all hosts.
func (n *Network) Configure(change func(m radio.Model)) {
	for _, h := range n.Hosts {
		change(h.Network.Model())
	}
}

// Frame makes a frame with a sequence number, the next of the network. Its length is at least Shortest.
func (n *Network) Frame(from int, to radio.MAC, length int) []byte {
	data := make([]byte, max(length, Shortest))
	for i := range 6 {
		data[i], data[6+i] = byte(to>>(40-8*i)), byte(Address(from)>>(40-8*i))
	}
	data[12] = 8 // IPv4
	binary.BigEndian.PutUint64(data[sequenceAt:], uint64(len(n.sentAt)))
	n.sentAt = append(n.sentAt, n.Now)
	return data
}

// Send makes a node send a frame now.
func (n *Network) Send(from int, to radio.MAC, length int) {
	n.SendFrame(from, n.Frame(from, to, length))
}

// SendFrame makes a node send these bytes now.
func (n *Network) SendFrame(from int, data []byte) { n.Home(from).Receive(n.Now, n.Port(from), data) }

// Received are the frames that a node has received.
func (n *Network) Received(nem int) []Arrival { return n.received[nem] }

// Sequences are the sequence numbers of the frames that a node has received.
func (n *Network) Sequences(nem int) (all []int) {
	for _, a := range n.received[nem] {
		all = append(all, int(a.Sequence)) //nolint:gosec // few frames
	}
	return all
}

// Pass lets time pass.
func (n *Network) Pass(d time.Duration) {
	end := n.Now + int64(d)
	for n.step(end) {
	}
	n.Now = end
}

// Settle lets time pass until nothing is under way.
func (n *Network) Settle() {
	for n.step(math.MaxInt64 - 1) {
	}
}

// step does what comes next if it comes until a time, and reports whether it does.
func (n *Network) step(until int64) bool {
	at, host := int64(radio.Never), (*Host)(nil)
	for _, h := range n.Hosts {
		if next := h.Next(); next != radio.Never && next+int64(n.Late) < at {
			at, host = next+int64(n.Late), h
		}
	}
	landing := -1
	for i, f := range n.flying {
		if f.at < at {
			at, landing = f.at, i
		}
	}
	if at > until {
		return false
	}
	n.Now = max(n.Now, at)
	if landing < 0 {
		host.Tick(n.Now)
		return true
	}
	f := n.flying[landing]
	n.flying = slices.Delete(n.flying, landing, landing+1)
	f.to.Network.ReceiveShipment(n.Now, f.shipment)
	return true
}

// Unaccounted says which frames of a node are not accounted for, or nothing.
func (n *Network) Unaccounted() string {
	for _, h := range n.Hosts {
		for _, s := range h.Network.Snapshot(nil, false) {
			if !s.AddUp() {
				return fmt.Sprintf("%s: %d frames sent, %d copies, but not all accounted for: %+v", s.Port.Name, s.FramesSent, s.Copies, s.Counters)
			}
		}
	}
	return ""
}

// Allocations of memory for a broadcast of a node on the only host, on average, once all buffers have been made. It is to
// be called last.
func Allocations(n *Network, from int) float64 {
	const frames = 300
	n.discards = true
	frame := n.Frame(from, Everybody, 900)
	carry := func() {
		n.SendFrame(from, frame)
		n.Settle()
	}
	for range frames {
		carry()
	}
	return testing.AllocsPerRun(frames, carry)
}

// Delay is a model that delivers every frame to all after a time.
type Delay struct {
	Time  time.Duration
	ports []*radio.Port
}

// Members implements radio.Model.
func (d *Delay) Members(_ int64, ports []*radio.Port, _ []int) { d.ports = ports }

// Transmit implements radio.Model.
func (d *Delay) Transmit(n *radio.Network, now int64, f *radio.Frame) {
	f.Receivers = d.ports
	if d.Time == 0 {
		n.Deliver(now, f)
		return
	}
	n.Hold(f, now+int64(d.Time))
}

// Due implements radio.Model.
func (d *Delay) Due(n *radio.Network, now int64, f *radio.Frame) { n.Deliver(now, f) }

// output takes what nodes receive.
type output struct{ *Network }

func (o output) Write(p *radio.Port, data []byte) radio.Reason {
	if o.discards {
		return radio.Written
	}
	a := Arrival{From: int(binary.BigEndian.Uint16(data[10:])), Length: len(data), At: o.Now}
	if len(data) >= Shortest {
		if a.Sequence = binary.BigEndian.Uint64(data[sequenceAt:]); a.Sequence < uint64(len(o.sentAt)) { // not corrupted
			a.Sent = o.sentAt[a.Sequence]
		}
	}
	o.received[p.NEM] = append(o.received[p.NEM], a)
	if o.Arrived != nil {
		o.Arrived(p.NEM, a, data)
	}
	return radio.Written
}

// Late is in the counters, too.
func (output) Late(int64, int64) {}

// wire takes transmissions from a host to another.
type wire struct {
	*Network
	from, to *Host
}

func (w wire) Ship(s *radio.Shipment) {
	if w.Shipped != nil {
		w.Shipped(w.from, w.to, s)
	}
	c := *s
	c.Receivers, c.Data, c.Parts = slices.Clone(s.Receivers), bytes.Clone(s.Data), slices.Clone(s.Parts)
	for i := range c.Parts {
		c.Parts[i].Data = bytes.Clone(c.Parts[i].Data)
	}
	w.flying = append(w.flying, flight{w.Now + int64(w.Latency), w.to, &c})
}
