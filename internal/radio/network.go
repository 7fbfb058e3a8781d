package radio

// Hold schedules f for Model.Due at the given time. f itself is only valid during Model.Transmit. The
// returned frame has its fields.
func (n *Network) Hold(f *Frame, due int64) *Frame {
	h := n.Keep(f)
	h.Due = due
	n.loop.heap.push(due, h)
	return h
}

// Keep takes f out of Transmit, so that the model can queue it. The model later calls exactly one of Hold,
// Deliver, Radiate or Drop for the returned frame. f itself is only valid during Transmit.
func (n *Network) Keep(f *Frame) *Frame {
	if f.held {
		return f
	}
	f.Source.counters.InFlight++
	return n.keep(f)
}

// Copy makes another transmission of f, which the model handles separately.
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

// Corrupted counts at the sender that f arrives with changed content.
func (n *Network) Corrupted(f *Frame) { f.Source.counters.Corrupted++ }

// Deliver hands f to the interfaces of its receivers. Without receivers it is dropped as NoReceiver.
func (n *Network) Deliver(now int64, f *Frame) { n.release(now, f, false) }

// Radiate hands f, which was sent over the air, to the interfaces of its receivers. It should have arrived at
// its time Due, or now if it was never held. CountMissed counts those who were in range and did not receive
// it. A frame that reached nobody counts as sent too.
func (n *Network) Radiate(now int64, f *Frame) { n.release(now, f, true) }

// CountMissed counts a frame at a receiver that was in range and did not receive it.
func (n *Network) CountMissed(p *Port, reason Reason) { p.AddMissed(reason, 1) }

// AddMissed is CountMissed for many frames.
func (p *Port) AddMissed(reason Reason, frames uint64) { p.counters.Drops[reason] += frames }

// tally counts what the model has not counted yet, for up to that many senders. It reports whether all is
// counted.
func (n *Network) tally(senders int) (all bool) {
	s, ok := n.model.(Tallier)
	return !ok || s.Tally(senders)
}

func (n *Network) release(now int64, f *Frame, radiated bool) {
	switch {
	case n.silent:
		n.Drop(f, Silent)
	case !radiated && !f.hasOtherReceivers():
		n.Drop(f, NoReceiver)
	default:
		n.writeToReceivers(now, f)
	}
}

// writeToReceivers writes a frame to its receivers' interfaces.
func (n *Network) writeToReceivers(now int64, f *Frame) {
	c := f.Source.counters
	c.releasing = (c.Released + 1) << 1
	for _, p := range f.Receivers {
		if p != f.Source && p.write(f.Data) {
			c.releasing |= 1
		}
	}
	due := f.Due
	if !f.held {
		due = now
	}
	c.addReleased(f.Sent, due, now)
	if f.Source.Host != nil {
		countLateness(f.Receivers, due, now)
	}
	if now-due >= LateThreshold {
		n.loop.late.Add(Interval{From: due, To: now, Worst: now - due})
	}
	n.recycle(f)
}

// write writes a frame to the port's interface, and reports whether it was written.
func (p *Port) write(data []byte) bool {
	if p.Host != nil { // the host has received it by Ship
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

func (f *Frame) hasOtherReceivers() bool {
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
	n.recycle(f)
}

// recycle recycles a frame's memory.
func (n *Network) recycle(f *Frame) {
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

// continueHeld hands a held frame back to the model at its time.
func (n *Network) continueHeld(now int64, f *Frame) {
	if n.closed {
		n.Drop(f, InFlightAtEnd)
		return
	}
	n.model.Due(n, now, f)
}
