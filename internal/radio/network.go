package radio

// Hold schedules f for Model.Due at the given time. f itself is only valid during Model.Transmit:
// what is held is the returned frame, which has f's fields.
func (n *Network) Hold(f *Frame, due int64) *Frame {
	h := f
	if !f.held {
		h = n.keep(f)
		f.Source.counters.InFlight++
	}
	h.Due = due
	n.loop.heap.push(due, h)
	return h
}

// Copy makes another transmission of f, which goes its own way through the model.
func (n *Network) Copy(f *Frame) *Frame {
	f.Source.counters.Copies++
	f.Source.counters.InFlight++
	return n.keep(f)
}

func (n *Network) keep(f *Frame) *Frame {
	h := n.loop.pool.get(f.Data)
	h.Source, h.Destination, h.Sent, h.Due = f.Source, f.Destination, f.Sent, f.Due
	h.Receivers, h.Context, h.held = f.Receivers, f.Context, true
	return h
}

// Deliver hands f to the interfaces of its receivers. Without receivers it is dropped as NoReceiver.
func (n *Network) Deliver(now int64, f *Frame) {
	if n.silent {
		n.Drop(f, Silent)
		return
	}
	c := f.Source.counters
	reached := false
	c.releasing = (c.Released + 1) << 1
	for _, p := range f.Receivers {
		if p != f.Source {
			reached = true
			n.give(p, f)
		}
	}
	if !reached {
		c.releasing = 0
		n.Drop(f, NoReceiver)
		return
	}
	due := f.Due
	if !f.held {
		due = now
	}
	c.released(f.Sent, due, now)
	n.forget(f)
}

func (n *Network) give(p *Port, f *Frame) {
	switch {
	case p.detached:
		p.counters.Drops[Detached]++
	default:
		p.counters.writing = 1
		reason := writeFrame(p.Descriptor, f.Data)
		if reason != written {
			p.counters.writing = 0
			p.counters.Drops[reason]++
			return
		}
		f.Source.counters.releasing |= 1
		p.counters.FramesReceived++
		p.counters.BytesReceived += uint64(len(f.Data))
		p.counters.writing = 0
		if t := p.tap; t != nil {
			t.Frame(In, f.Data)
		}
	}
}

// Drop ends f and counts why, at its sender.
func (n *Network) Drop(f *Frame, reason Reason) {
	f.Source.counters.Drops[reason]++
	n.forget(f)
}

func (n *Network) forget(f *Frame) {
	if f.held {
		f.Source.counters.InFlight--
		n.loop.pool.put(f)
	}
}

// accept takes a frame that a node handed to its radio.
func (n *Network) accept(now int64, f *Frame) {
	c := f.Source.counters
	c.FramesSent++
	c.BytesSent += uint64(len(f.Data))
	c.reading = 0
	if t := f.Source.tap; t != nil {
		t.Frame(Out, f.Data)
	}
	to, ok := destination(f.Data)
	switch {
	case !ok:
		n.Drop(f, Malformed)
	case len(f.Data) > n.maxFrame:
		n.Drop(f, Oversize)
	case n.silent:
		n.Drop(f, Silent)
	default:
		f.Destination = to
		n.model.Transmit(n, now, f)
	}
}

// due continues a held frame whose time has come.
func (n *Network) due(now int64, f *Frame) {
	if n.closed {
		n.Drop(f, InFlightAtEnd)
		return
	}
	n.model.Due(n, now, f)
}
