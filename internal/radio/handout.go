package radio

import "sync/atomic"

// handouts are the frames of a loop on their way to their receivers' interfaces. Models release frames; the loop writes them when the model has
// returned. So what a write leaves, if its processor stands still meanwhile, is a loop between two calls of models, with which another thread can
// go on: with the next receiver.
type handouts struct {
	all       []handout
	receivers []*Port // of all of them
	first     int     // of all that is not done
	next      int     // of receivers
}

// handout is a frame and its receivers, from begin to end among those of all.
type handout struct {
	network    *Network
	frame      *Frame
	released   int64
	begin, end int
	// lent: another thread's write still reads the frame.
	lent bool
}

// add a frame that was released at that time.
func (h *handouts) add(n *Network, f *Frame, released int64) {
	begin := len(h.receivers)
	h.receivers = append(h.receivers, f.Receivers...)
	h.all = append(h.all, handout{network: n, frame: f, released: released, begin: begin, end: len(h.receivers)})
}

// handOut what has been released. False tells that a write took so long that another thread has the turn, and does what is left.
func (l *loop) handOut() (mine bool) {
	h := &l.handouts
	if len(h.all) == 0 {
		return true
	}
	for ; h.first < len(h.all); h.first++ {
		o := &h.all[h.first]
		c := o.frame.Source.counters
		if h.next == o.begin {
			c.releasing = (c.Released + 1) << 1
		}
		for h.next < o.end {
			p := h.receivers[h.next]
			h.next++
			if p != o.frame.Source && !l.give(p, o.frame) {
				return false
			}
		}
		o.network.handedOut(o, h.receivers[o.begin:o.end])
	}
	clear(h.all)
	clear(h.receivers)
	h.all, h.receivers, h.first, h.next = h.all[:0], h.receivers[:0], 0, 0
	return true
}

// give a frame to a port's node. False tells that another thread has the turn.
func (l *loop) give(p *Port, f *Frame) (mine bool) {
	data := f.Data
	call := l.calls.begin(p)
	reason := p.take(data) // which touches the port first, as that often waits for memory
	if !l.calls.end(call) {
		l.post(func() { p.given(data, reason) })
		p.strays.returned()
		return false
	}
	if reason == written {
		f.Source.counters.releasing |= 1
	}
	p.given(data, reason)
	return true
}

// take a frame to the port's node, by who is in a call.
func (p *Port) take(data []byte) Reason {
	switch {
	case p.Host != nil:
		return notHere
	case p.detached.Load():
		return Detached
	}
	atomic.StoreUint64(&p.counters.writing, 1)
	return writeFrame(p.Descriptor, data)
}

// given counts what has come of take.
func (p *Port) given(data []byte, reason Reason) {
	c := p.counters
	switch reason {
	case notHere:
	case written:
		c.FramesReceived++
		c.BytesReceived += uint64(len(data))
		atomic.StoreUint64(&c.writing, 0)
		if t := p.Tap; t != nil {
			t.Frame(In, data)
		}
	default:
		atomic.StoreUint64(&c.writing, 0)
		c.Drops[reason]++
	}
}

// handedOut ends a frame that has left.
func (n *Network) handedOut(o *handout, receivers []*Port) {
	f := o.frame
	due := f.Due
	if !f.held {
		due = o.released
	}
	f.Source.counters.released(f.Sent, due, o.released)
	if f.Source.Host != nil {
		lateHere(receivers, due, o.released)
	}
	n.forget(f, o.lent)
}
