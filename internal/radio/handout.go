package radio

import "sync/atomic"

// handouts are the frames of a loop on their way to their receivers' interfaces. Models release frames; the loop writes them when the model has
// returned. So what a write leaves, if its processor stands still meanwhile, is a loop between two calls of models, with which another thread can
// go on: with the next receiver. All but write belongs to who has the turn.
type handouts struct {
	all       []handout
	receivers []*Port // of all of them
	first     int     // of all that is not done
	next      int     // of receivers
	writes    uint64
	// write that goes on, an odd number that never comes again; 0 while there is none. Who sets it to 0 has the turn: its writer, or who takes over.
	write atomic.Uint64
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
	switch {
	case p.Host != nil: // which has got it by Ship
		return true
	case p.detached:
		p.counters.Drops[Detached]++
		return true
	}
	h := &l.handouts
	h.writes++
	write, data := h.writes<<1|1, f.Data
	p.counters.writing = 1
	h.write.Store(write)
	reason := writeFrame(p.Descriptor, data)
	if !h.write.CompareAndSwap(write, 0) {
		l.post(func() { p.given(data, reason) })
		return false
	}
	if reason == written {
		f.Source.counters.releasing |= 1
	}
	p.given(data, reason)
	return true
}

// given counts what has come of a write.
func (p *Port) given(data []byte, reason Reason) {
	c := p.counters
	if reason != written {
		c.writing = 0
		c.Drops[reason]++
		return
	}
	c.FramesReceived++
	c.BytesReceived += uint64(len(data))
	c.writing = 0
	if t := p.tap; t != nil {
		t.Frame(In, data)
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

// takeOver the turn from the thread that is in a write since the caller saw the loop in it before; write is that in which it is now.
func (l *loop) takeOver(seen uint64) (mine bool, write uint64) {
	h := &l.handouts
	write = h.write.Load()
	if write == 0 || write != seen || !h.write.CompareAndSwap(write, 0) {
		return false, write
	}
	// The write may not have read its frame yet. Of the events that its thread knew of, the timer's does not come again.
	h.all[h.first].lent = true
	l.scratch = make([]byte, maxFrameLength)
	l.armed = 0
	return true, 0
}
