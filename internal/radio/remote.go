package radio

// Host takes a network's transmissions to another host, which serves some of its ports.
type Host interface {
	// Ship is called for a transmission that may have receivers on the host. It must neither block nor allocate, and
	// s is only valid until it returns.
	Ship(s *Shipment)
}

// Shipment is a transmission on its way from its source's host to another. The sender's side of the model,
// such as its queue, has been applied. The receivers' side is applied at the receivers' host.
type Shipment struct {
	// Source is the sender's NEM id.
	Source int
	// Receivers by NEM id; none means every port of the network on that host.
	Receivers []uint16
	// Index of the transmission among those of its source, for the draws.
	Index uint64
	// Slot is the absolute index of the slot, counted from the Unix epoch in slots of SlotDuration. The
	// transmission is on the air for OnAir nanoseconds. All three are 0 if the model has no slots.
	Slot, SlotDuration, OnAir int64
	// Sent is when the source's node sent the frame. The transmission begins at Start and arrives at Due. All
	// are nanoseconds of this host's monotonic clock.
	Sent, Start, Due int64
	// FrequencyHertz, PowerDBm and RateBitsPerSecond of the transmission, if the model has a physical layer.
	FrequencyHertz, PowerDBm, RateBitsPerSecond float64
	// Bytes is the length of the frame, Data the frame. A transmission without Data only interferes.
	Bytes int
	Data  []byte
	// Parts are the contents of a transmission that is not one frame. It has no Data then, and Bytes is its
	// length on the air.
	Parts []Part
}

// Part of a frame, or a complete frame, in a transmission that carries several.
type Part struct {
	Destination MAC
	// Class of service of the frame, and its sequence number among the frames of its source and class.
	Class    int
	Sequence uint64
	// Offset in the frame and length of the part in bytes. Last reports whether the frame ends with it.
	Offset, Bytes int
	Last          bool
	// Sent is when the source's node sent the frame, by the clock of Shipment's times.
	Sent int64
	// Data is the complete frame, and comes with its last part.
	Data []byte
}

// DistributedModel is a Model whose networks may have ports on other hosts. It sends its transmissions there with
// Network.Ship. It delivers frames only to local ports: Deliver and Radiate skip the others.
type DistributedModel interface {
	Model
	// ReceiveShipment takes a transmission of another host. The model calls exactly one of n.Hold,
	// n.Keep, n.Deliver, n.Radiate or n.Drop for f, which is only valid during the call. f.Source is the port
	// on the other host; s has this host's times. If s has no Data, f has none. If s has Parts, the model
	// makes frames of them, and calls nothing for f.
	ReceiveShipment(n *Network, now int64, f *Frame, s *Shipment)
}

// IsLocal reports whether this host serves the port.
func (p *Port) IsLocal() bool { return p.Host == nil }

// hostPorts counts a network's ports on another host, or a neighbour's radios.
type hostPorts struct {
	host  Host
	ports int
	// Scratch.
	receivers []uint16
	parts     []Part
}

// countHosts finds the hosts of the ports.
func (n *Network) countHosts() {
	n.hosts, n.remotePorts, n.neighbours = nil, nil, false
	for _, p := range n.ports {
		if p.IsLocal() {
			continue
		}
		if n.remotePorts == nil {
			n.remotePorts = map[int]*Port{}
		}
		n.remotePorts[p.NEM] = p
		n.neighbours = n.neighbours || p.Neighbour
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

// Distributed reports whether some ports are on other hosts. It is for models.
func (n *Network) Distributed() bool { return len(n.hosts) > 0 }

// HasNeighbours reports whether transmissions disturb other networks. It is for models.
func (n *Network) HasNeighbours() bool { return n.neighbours }

// Ship sends a transmission once to each other host that has receivers, which Receivers then names. It is for
// models.
func (n *Network) Ship(s *Shipment, receivers []*Port) {
	for _, h := range n.hosts {
		h.receivers = h.receivers[:0]
		for _, p := range receivers {
			if p.Host == h.host {
				h.receivers = append(h.receivers, uint16(p.NEM)) //nolint:gosec // NEM ids have 16 bits
			}
		}
		if len(h.receivers) == 0 {
			continue
		}
		s.Receivers = h.receivers
		if len(h.receivers) == h.ports && h.ports > 1 { // a unicast reaches nobody who has come since
			s.Receivers = nil
		}
		h.host.Ship(s)
	}
}

// ShipToHosts is Ship without naming the receivers. The receiving host decides who they are.
func (n *Network) ShipToHosts(s *Shipment, receivers []*Port) {
	for _, h := range n.hosts {
		if onHost(receivers, h.host) {
			h.host.Ship(s)
		}
	}
}

// ShipToAddressee ships a transmission for one port. The other hosts get it without its data, as interference.
func (n *Network) ShipToAddressee(s *Shipment, addressee *Port, others []*Port) {
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

// ShipParts sends a transmission to each other host that has a port in range, or the addressee of a part.
// Each host gets the parts for its ports. A transmission without parts only interferes.
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

// ReceiveShipment takes a transmission that another host has shipped, with times of this host's clock, and ownership of
// s. It ignores those without a known source, or after the network's end.
func (n *Network) ReceiveShipment(now int64, s *Shipment) {
	h, ok := n.model.(DistributedModel)
	source := n.remotePorts[s.Source]
	if !ok || source == nil || n.closed {
		return
	}
	f := &Frame{Source: source, Data: s.Data, Sent: s.Sent}
	f.Destination, _ = destination(s.Data)
	h.ReceiveShipment(n, now, f, s)
}

// countLateness counts the lateness of a frame from another host at its local receivers, because its source is not
// counted here.
func countLateness(receivers []*Port, due, now int64) {
	for _, p := range receivers {
		if p.IsLocal() {
			p.counters.addLateness(due, now)
		}
	}
}
