package radio

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// calls of the kernel that who has a loop's turn makes: there most of a turn is spent, and between two of them the loop is in order. So if its
// thread's processor stands still meanwhile, another thread can go on with the loop.
type calls struct {
	count uint64
	port  *Port // whose descriptor is read or written, nil for others
	// now is the call that goes on, an odd number that never comes again; 0 while there is none. Who sets it to 0 has the turn: its caller, or who
	// takes over.
	now atomic.Uint64
	// strays in calls that are of no port.
	strays strays
}

// begin a call, by who has the turn.
func (c *calls) begin(p *Port) (call uint64) {
	c.count++
	c.port = p
	call = c.count<<1 | 1
	c.now.Store(call)
	return call
}

// end a call. False tells that it took so long that another thread has the turn.
func (c *calls) end(call uint64) (mine bool) { return c.now.CompareAndSwap(call, 0) }

// strays are threads in a call that a loop goes on without.
type strays struct{ count atomic.Int64 }

// left: a thread was left behind. It may have returned before that is noted, which who has the turn does at once.
func (s *strays) left() { s.count.Add(1) }

func (s *strays) returned() { s.count.Add(-1) }

// wait until all have returned, where there will not be others.
func (s *strays) wait() {
	for s.count.Load() != 0 {
		time.Sleep(turnPause)
	}
}

// takeOver the turn from the thread that is in a call since the caller saw the loop in it before; call is that in which it is now.
func (l *loop) takeOver(seen uint64) (mine bool, call uint64) {
	call = l.calls.now.Load()
	if call == 0 || call != seen || !l.calls.end(call) {
		return false, call
	}
	if p := l.calls.port; p != nil {
		l.goOnWithout(p)
	} else {
		l.calls.strays.left()
	}
	// Of the events that its thread knew of, the timer's does not come again.
	l.armed = 0
	return true, 0
}

// goOnWithout the thread that reads or writes a port's descriptor: its memory is not used meanwhile.
func (l *loop) goOnWithout(p *Port) {
	p.strays.left()
	l.scratch = make([]byte, maxFrameLength)
	if h := &l.handouts; len(h.all) > 0 { // else it reads, which begins when all is handed out
		h.all[h.first].lent = true
		return
	}
	p.strayReads = true
	l.listen(p)
}

// astray is what the thread does that read from a port until another one had gone on without it.
func (l *loop) astray(p *Port, frame []byte, err unix.Errno, now int64) {
	l.post(func() {
		p.strayReads = false
		l.listen(p)
		if err != 0 {
			l.notRead(p, err)
			return
		}
		l.accept(p, frame, now)
	})
	p.strays.returned()
}

// refresh the loop, as a stray thread does that has waited for events or set the timer: it may have taken the event of one that was set later, or
// set it to what was due before.
func (l *loop) refresh() {
	l.post(func() { l.armed = 0 })
	l.calls.strays.returned()
}
