package radio

import "math"

// Stepped is an engine without a loop of its own, so that a test sets the time.
type Stepped struct{ *Engine }

// NewStepped makes an engine without networks.
func NewStepped() Stepped {
	return Stepped{&Engine{loops: []*loop{{epoll: -1}}, load: make([]int, 1)}}
}

// Next is the time of what comes next.
func (s Stepped) Next() int64 {
	if items := s.loops[0].heap.items; len(items) > 0 {
		return items[0].due
	}
	return math.MaxInt64
}

// Tick does what is due first.
func (s Stepped) Tick(now int64) {
	if s.Next() > now {
		return
	}
	if f := s.loops[0].heap.pop(); f.Source != nil {
		f.Source.network.continueHeld(now, f)
	} else if alarm, ok := f.Context.(func(int64)); ok {
		alarm(now)
	}
}

// Receive takes a frame from a node, after what is due, as a loop does.
func (s Stepped) Receive(now int64, p *Port, data []byte) {
	for s.Next() <= now {
		s.Tick(now)
	}
	s.loops[0].accept(p, data, now)
}

// ReceiveShipmentAt is ReceiveShipment at a time.
func (n *Network) ReceiveShipmentAt(now int64, s *Shipment) {
	h, ok := n.model.(DistributedModel)
	source := n.remotePorts[s.Source]
	if !ok || source == nil || n.closed {
		n.unknownSources.Add(1)
		return
	}
	f := &Frame{Source: source, Data: s.Data, Sent: s.Sent}
	f.Destination, _ = destination(s.Data)
	h.ReceiveShipment(n, now, f, s)
}
