package radio

import "vignette.dev/vignette/internal/clock"

// Host takes a network's transmissions to another host that serves some of its ports.
type Host interface {
	// Ship is called on the loop's thread for a transmission that may have receivers there. It must neither block nor
	// allocate, and s is only valid until it returns.
	Ship(s *Shipment)
}

// Shipment is a transmission on its way from the host that serves its source to another. The sender's side of the model,
// such as its queue, is done with it; the receivers' side is done where they are.
type Shipment struct {
	// Source is the sender's NEM id.
	Source int
	// Receivers by NEM id; none means every port of the network on that host.
	Receivers []uint16
	// Index of the transmission among those of its source, for the draws.
	Index uint64
	// Slot by its absolute index, counted from the Unix epoch in slots of SlotDuration, in which the transmission is on the air
	// for the time OnAir, nanoseconds; 0 where the model has no slots.
	Slot, SlotDuration, OnAir int64
	// Sent is when the source's node sent the frame, Start and Due are when its transmission begins and is to have arrived,
	// nanoseconds of this host's CLOCK_MONOTONIC.
	Sent, Start, Due int64
	// FrequencyHertz, PowerDBm and RateBitsPerSecond of the transmission, where the model has a physical layer.
	FrequencyHertz, PowerDBm, RateBitsPerSecond float64
	// Bytes of the frame, and the frame itself; without it the transmission only interferes.
	Bytes int
	Data  []byte
	// Parts are what a transmission carries that is not one frame; it has no Data then, and Bytes is its length on the air.
	Parts []Part
}

// Part of a frame, or a whole one, in a transmission that carries several.
type Part struct {
	Destination MAC
	// Class of service of the frame, and its sequence number among those of its source and class.
	Class    int
	Sequence uint64
	// Offset in the frame and length of the part in bytes; Last tells that the frame ends with it.
	Offset, Bytes int
	Last          bool
	// Sent is when the source's node sent the frame; as the Shipment's.
	Sent int64
	// Data is the whole frame, and comes with its last part.
	Data []byte
}

// Hearer is a Model whose networks may have ports on other hosts. It sends its transmissions there with Network.Ship, and
// gives frames only to ports of its own, which Port.Here tells: Deliver and Radiate pass over the others.
type Hearer interface {
	Model
	// Hear takes a transmission of another host, on the loop's thread. As of Transmit, f is only valid during the call, and the
	// model calls exactly one of n.Hold, n.Keep, n.Deliver, n.Radiate or n.Drop for it. Its Source is the port on the other host, and s has
	// this host's times. Where s has no Data, f has none either; where it has Parts, nothing is to be called for f, but for the
	// frames that the model makes of them.
	Hear(n *Network, now int64, f *Frame, s *Shipment)
}

// Here tells that this host serves the port.
func (p *Port) Here() bool { return p.Host == nil }

// hostPorts counts a network's ports on another host.
type hostPorts struct {
	host  Host
	ports int
	// Scratch.
	listed []uint16
	parts  []Part
}

// countHosts finds out who serves the ports.
func (n *Network) countHosts() {
	n.hosts, n.elsewhere = nil, nil
	for _, p := range n.ports {
		if p.Here() {
			continue
		}
		if n.elsewhere == nil {
			n.elsewhere = map[int]*Port{}
		}
		n.elsewhere[p.NEM] = p
		n.hostOf(p).ports++
	}
}

func (n *Network) hostOf(p *Port) *hostPorts {
	for _, h := range n.hosts {
		if h.host == p.Host {
			return h
		}
	}
	h := &hostPorts{host: p.Host}
	n.hosts = append(n.hosts, h)
	return h
}

// Distributed tells that some ports are on other hosts. For models, on the loop's thread.
func (n *Network) Distributed() bool { return len(n.hosts) > 0 }

// Ship sends a transmission once to each other host that has any of the receivers, whom its Receivers then name. For models,
// on the loop's thread.
func (n *Network) Ship(s *Shipment, receivers []*Port) {
	for _, h := range n.hosts {
		h.listed = h.listed[:0]
		for _, p := range receivers {
			if p.Host == h.host {
				h.listed = append(h.listed, uint16(p.NEM)) //nolint:gosec // NEM ids have 16 bits
			}
		}
		if len(h.listed) == 0 {
			continue
		}
		s.Receivers = h.listed
		if len(h.listed) == h.ports {
			s.Receivers = nil
		}
		h.host.Ship(s)
	}
}

// ShipWhole is Ship without naming the receivers: those on the hosts find out by themselves.
func (n *Network) ShipWhole(s *Shipment, receivers []*Port) {
	for _, h := range n.hosts {
		if onHost(receivers, h.host) {
			h.host.Ship(s)
		}
	}
}

// ShipFor is ShipWhole for a transmission to one port that others have as interference, and so without its data.
func (n *Network) ShipFor(s *Shipment, addressee *Port, others []*Port) {
	data := s.Data
	for _, h := range n.hosts {
		s.Data = nil
		if addressee != nil && addressee.Host == h.host {
			s.Data = data
		} else if !onHost(others, h.host) {
			continue
		}
		h.host.Ship(s)
	}
}

// ShipParts sends a transmission to each other host that has any of those whom it reaches, with the parts for them, or the
// addressee of a part. Where none of the parts is for it, the transmission only interferes.
func (n *Network) ShipParts(s *Shipment, reached []*Port) {
	all := s.Parts
	for _, h := range n.hosts {
		hears := onHost(reached, h.host)
		h.parts = h.parts[:0]
		for i := range all {
			if n.isFor(&all[i], h.host, hears) {
				h.parts = append(h.parts, all[i])
			}
		}
		if hears || len(h.parts) > 0 {
			s.Parts = h.parts
			h.host.Ship(s)
		}
	}
	s.Parts = all
}

func (n *Network) isFor(p *Part, host Host, hears bool) bool {
	if p.Destination.IsMulticast() {
		return hears
	}
	to := n.byMAC[p.Destination]
	return to != nil && to.Host == host
}

func onHost(ports []*Port, host Host) bool {
	for _, p := range ports {
		if p.Host == host {
			return true
		}
	}
	return false
}

// Hear takes a transmission that another host has shipped, with its times by this host's clock. It may be called on any
// goroutine and does not wait; s belongs to the network from then on. What has no known source, or comes after the network's
// end, is counted by Strangers.
func (n *Network) Hear(s *Shipment) {
	n.loop.post(func() {
		h, ok := n.model.(Hearer)
		source := n.elsewhere[s.Source]
		if !ok || source == nil || n.closed {
			n.strangers.Add(1)
			return
		}
		f := &Frame{Source: source, Data: s.Data, Sent: s.Sent}
		f.Destination, _ = destination(s.Data)
		h.Hear(n, clock.Monotonic(), f, s)
	})
}

// Strangers is the number of transmissions of other hosts that found no network or source here: they came too early or too late.
func (n *Network) Strangers() uint64 { return n.strangers.Load() }

// lateHere counts the lateness of a frame from another host at its receivers: its source's counters are there.
func lateHere(receivers []*Port, due, now int64) {
	for _, p := range receivers {
		if p.Here() {
			p.counters.late(due, now)
		}
	}
}

// post has f run on the loop's thread and does not wait; after the loop has ended f is dropped.
func (l *loop) post(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.epoll >= 0 {
		l.work = append(l.work, f)
		l.poke()
	}
}
