package radio

import "fmt"

// maxFrameLength is the longest frame that an interface with the largest MTU can give.
const maxFrameLength = 65536

// NetworkOptions of a new network.
type NetworkOptions struct {
	// Model that the network's frames pass through; it belongs to the network from now on.
	Model Model
	// MTU of the members' interfaces, bytes.
	MTU int
	// Silent radios send and receive nothing.
	Silent bool
}

// Network is one radio network: frames reach only ports of the same Network.
type Network struct {
	engine   *Engine
	model    Model
	maxFrame int
	silent   bool
	closed   bool
	alarm    *Frame // in the heap, with Schedule's function
	wake     *Frame // in the heap once for each call of WakeAt
	wakeDue  int64  // the time of the last WakeAt, while waking
	waking   bool
	ports    []*Port // never changed in place: frames in flight refer to it
	byMAC    map[MAC]*Port
	// hosts serve the ports that are not local; remotePorts are these ports by NEM id.
	hosts       []*hostPorts
	remotePorts map[int]*Port
	neighbours  bool // whether some of them are Neighbour
}

// NewNetwork adds an empty network.
func (e *Engine) NewNetwork(options NetworkOptions) (*Network, error) {
	n := &Network{engine: e, model: options.Model, byMAC: map[MAC]*Port{}}
	if err := n.Configure(options.MTU, options.Silent); err != nil {
		return nil, err
	}
	return n, nil
}

// Configure sets the MTU and silence, and cancels what was scheduled.
func (n *Network) Configure(mtu int, silent bool) error {
	if most := maxFrameLength - HeaderLength; mtu < 68 || mtu > most {
		return fmt.Errorf("mtu %d: want 68 to %d bytes", mtu, most)
	}
	n.maxFrame, n.silent = mtu+HeaderLength, silent
	n.cancelAlarm()
	return nil
}

// Model that the network was made with.
func (n *Network) Model() Model { return n.model }

// Alarm changes a network at a time, and must not block. It returns whether the radios are silent from now on, and
// when it is to run again, or 0 for never.
type Alarm func(now int64, m Model) (silent bool, next int64)

// Schedule runs alarm at the time due, or at the next Tick if that has passed, and replaces what was scheduled before.
// Frames released or received before due meet the network as it was, later frames as alarm left it.
func (n *Network) Schedule(due int64, alarm Alarm) {
	n.cancelAlarm()
	n.setAlarm(due, alarm)
}

func (n *Network) setAlarm(due int64, alarm Alarm) {
	n.alarm = &Frame{Context: func(now int64) {
		var next int64
		if n.silent, next = alarm(now, n.model); next != 0 {
			n.setAlarm(next, alarm)
		}
	}}
	n.engine.heap.push(due, n.alarm)
}

// WakeAt has the model, a Waker, called at the time due. It replaces a time given before. It is for
// models.
func (n *Network) WakeAt(due int64) {
	if n.wake == nil {
		n.wake = &Frame{Context: n.wakeUp}
	}
	n.waking, n.wakeDue = true, due
	n.engine.heap.push(due, n.wake)
}

// wakeUp is called for every call of WakeAt, also for those that a later one has replaced.
func (n *Network) wakeUp(now int64) {
	if !n.waking || now < n.wakeDue || n.closed {
		return
	}
	n.waking = false
	if w, ok := n.model.(Waker); ok {
		w.Wake(n, now)
	}
}

// cancelAlarm empties the alarm's frame, which stays in the heap until its time.
func (n *Network) cancelAlarm() {
	if n.alarm != nil {
		n.alarm.Context, n.alarm = nil, nil
	}
}

// Close drops what is in flight and ends the network. Its ports must have been detached.
func (n *Network) Close() {
	n.closed = true
	n.cancelAlarm()
}

// Hold schedules f for Model.Due at the given time. f itself is only valid during Model.Transmit. The
// returned frame has its fields.
func (n *Network) Hold(f *Frame, due int64) *Frame {
	h := n.Keep(f)
	h.Due = due
	n.engine.heap.push(due, h)
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
	h := n.engine.pool.get(f.Data)
	h.Source, h.Destination, h.Sent, h.Due = f.Source, f.Destination, f.Sent, f.Due
	h.Receivers, h.Context, h.held = f.Receivers, f.Context, true
	return h
}

// Corrupted counts at the sender that f arrives with changed content.
func (n *Network) Corrupted(f *Frame) { f.Source.counters.Corrupted++ }

// Deliver hands f to its receivers' nodes. Without receivers it is dropped as NoReceiver.
func (n *Network) Deliver(now int64, f *Frame) { n.release(now, f, false) }

// Radiate hands f, which was sent over the air, to its receivers' nodes. It should have arrived at its time Due, or
// now if it was never held. Port.AddMissed counts those who were in range and did not receive
// it. A frame that reached nobody counts as sent too.
func (n *Network) Radiate(now int64, f *Frame) { n.release(now, f, true) }

// AddMissed counts frames at a receiver that was in range and did not receive them.
func (p *Port) AddMissed(reason Reason, frames uint64) { p.counters.Drops[reason] += frames }

// AddLateInterference counts a reception that would have failed had a transmission of another host or network been known in time.
func (p *Port) AddLateInterference() { p.counters.LateInterference++ }

// Tally counts what the model has not counted yet, for up to that many senders. It reports whether all is
// counted.
func (n *Network) Tally(senders int) (all bool) {
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

// writeToReceivers hands a frame to its receivers' nodes.
func (n *Network) writeToReceivers(now int64, f *Frame) {
	c := f.Source.counters
	c.releasing = (c.Released + 1) << 1
	for _, p := range f.Receivers {
		if p != f.Source && n.write(p, f.Data) {
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
	if IsLate(due, now) {
		n.engine.output.Late(due, now)
	}
	n.recycle(f)
}

// write writes a frame to the port's node, and reports whether it was written.
func (n *Network) write(p *Port, data []byte) bool {
	if p.Host != nil { // the host has received it by Ship
		return false
	}
	c, reason := p.counters, Detached
	if !p.detached {
		c.writing = 1
		reason = n.engine.output.Write(p, data)
	}
	if reason == Written {
		c.FramesReceived++
		c.BytesReceived += uint64(len(data))
	} else {
		c.Drops[reason]++
	}
	c.writing = 0
	if reason == Written && p.Tap != nil {
		p.Tap.Frame(In, data)
	}
	return reason == Written
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
		n.engine.pool.put(f)
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
