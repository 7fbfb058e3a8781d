package radio

// Hold schedules f for Model.Due at the given time. f itself is only valid during Model.Transmit:
// what is held is the returned frame, which has f's fields.
func (n *Network) Hold(f *Frame, due int64) *Frame {
	h := n.Keep(f)
	h.Due = due
	n.loop.heap.push(due, h)
	return h
}

// Keep takes f out of Transmit for the model to queue by itself. Like Hold's, f itself is only valid during Transmit: what
// is kept is the returned frame, of which the model calls exactly one of Hold, Deliver, Radiate or Drop some time.
func (n *Network) Keep(f *Frame) *Frame {
	if f.held {
		return f
	}
	f.Source.counters.InFlight++
	return n.keep(f)
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

// Corrupted counts, at its sender, that f arrives with another content.
func (n *Network) Corrupted(f *Frame) { f.Source.counters.Corrupted++ }

// Deliver hands f to the interfaces of its receivers. Without receivers it is dropped as NoReceiver.
func (n *Network) Deliver(now int64, f *Frame) { n.release(now, f, false) }

// Radiate hands f, which has been sent over the air and should have arrived at its time Due, or now if it was never held,
// to the interfaces of its receivers. Who was in range and did not receive it is told by Miss; a frame that reached nobody
// has been sent all the same.
func (n *Network) Radiate(now int64, f *Frame) { n.release(now, f, true) }

// Miss counts a frame that was in range of a port and did not reach it, at the receiver.
func (n *Network) Miss(p *Port, reason Reason) { p.Missed(reason, 1) }

// Missed is Miss for so many frames.
func (p *Port) Missed(reason Reason, frames uint64) { p.counters.Drops[reason] += frames }

// tally what the model has not counted yet, of so many senders, and tell whether that is all.
func (n *Network) tally(senders int) (all bool) {
	s, ok := n.model.(Tallier)
	return !ok || s.Tally(senders)
}

func (n *Network) release(now int64, f *Frame, radiated bool) {
	switch {
	case n.silent:
		n.Drop(f, Silent)
	case !radiated && !f.reachesOthers():
		n.Drop(f, NoReceiver)
	default:
		n.handOut(now, f)
	}
}

// handOut writes a frame to its receivers' interfaces.
func (n *Network) handOut(now int64, f *Frame) {
	c := f.Source.counters
	c.releasing = (c.Released + 1) << 1
	for _, p := range f.Receivers {
		if p != f.Source && p.give(f.Data) {
			c.releasing |= 1
		}
	}
	due := f.Due
	if !f.held {
		due = now
	}
	c.released(f.Sent, due, now)
	if f.Source.Host != nil {
		lateHere(f.Receivers, due, now)
	}
	if now-due >= LateRelease {
		n.loop.late.Add(Interval{From: due, To: now, Worst: now - due})
	}
	n.forget(f)
}

// give a frame to the port's node, and report whether that has it.
func (p *Port) give(data []byte) bool {
	if p.Host != nil { // which has got it by Ship
		return false
	}
	c, reason := p.counters, Detached
	if !p.detached {
		c.writing = 1
		reason = writeFrame(p.Descriptor, data)
	}
	if reason == written {
		c.FramesReceived++
		c.BytesReceived += uint64(len(data))
	} else {
		c.Drops[reason]++
	}
	c.writing = 0
	if reason == written && p.Tap != nil {
		p.Tap.Frame(In, data)
	}
	return reason == written
}

func (f *Frame) reachesOthers() bool {
	for _, p := range f.Receivers {
		if p != f.Source {
			return true
		}
	}
	return false
}

// Drop ends f and counts why, at its sender.
func (n *Network) Drop(f *Frame, reason Reason) {
	f.Source.counters.Drops[reason]++
	n.forget(f)
}

// forget a frame: its memory is used again.
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
	if t := f.Source.Tap; t != nil {
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
