package radio

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// addressed is a model that gives each frame, after a time, to the addressee or to everybody.
type addressed struct{ wait }

func (m *addressed) Transmit(n *Network, now int64, f *Frame) {
	f.Receivers = m.ports
	if to := n.Find(f.Destination); to != nil {
		f.Receivers = []*Port{to}
	}
	if m.time == 0 {
		n.Deliver(now, f)
		return
	}
	n.Hold(f, now+m.time)
}

// fill what a station's radio writes to, so that the next write stands still until empty has been called.
func (s station) fill(t *testing.T) (empty func()) {
	t.Helper()
	if err := unix.SetNonblock(s.port.Descriptor, true); err != nil {
		t.Fatal(err)
	}
	count := 0
	for {
		if _, err := unix.Write(s.port.Descriptor, make([]byte, 1000)); err != nil {
			break
		}
		count++
	}
	if err := unix.SetNonblock(s.port.Descriptor, false); err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(func() {
		buffer := make([]byte, 2000)
		for range count {
			if _, err := unix.Read(s.node, buffer); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestALoopGoesOnWhileOneOfItsWritesStandsStill(t *testing.T) {
	for name, waiting := range map[string]int64{"of a frame that is handed on at once": 0, "of a frame that has waited": 1e6} {
		t.Run(name, func(t *testing.T) {
			n := guardedNetwork(t, &addressed{wait{time: waiting}})
			all := newStations(t, n, 4) // the first sends, the second stands still
			// As a reader of it would stand still too, its radio is not read.
			n.Do(func(n *Network, _ Model) { n.loop.unwatch(all[1].port); all[1].port.watched = false })
			empty := all[1].fill(t)
			defer empty()
			all[0].send(t, everybody, "to all")
			for _, s := range all[2:] {
				if got := s.receive(t, 10*time.Second); got != "to all" {
					t.Fatalf("%s got %q behind the one that stands still", s.port.Name, got)
				}
			}
			for i := range 20 {
				all[0].send(t, all[3].port.MAC, fmt.Sprint("frame ", i))
				if got := all[3].receive(t, 10*time.Second); got != fmt.Sprint("frame ", i) {
					t.Fatalf("got %q; want frame %d", got, i)
				}
			}
			if c := all[1].port.Last(); c.FramesReceived != 0 {
				t.Errorf("%d frames are counted at the one that stands still; want 0", c.FramesReceived)
			}
			empty()
			if got := all[1].receive(t, 10*time.Second); got != "to all" {
				t.Errorf("the one that stood still got %q; want its frame as it was", got)
			}
			n.engine.Answer()
			sent, received := all[0].port.Last(), all[1].port.Last()
			if sent.FramesSent != 21 || sent.Released != 21 || sent.InFlight != 0 || received.FramesReceived != 1 {
				t.Errorf("%d frames sent, %d released, %d in flight, %d received where the radio stood still; want 21, 21, 0, 1",
					sent.FramesSent, sent.Released, sent.InFlight, received.FramesReceived)
			}
		})
	}
}

// reckoner is a model that reckons for a while before a frame leaves.
type reckoner struct {
	wait
	prepared  *reckoned
	abandoned int
}

type reckoned struct {
	frame  *Frame
	result int
}

func (r *reckoned) Reckon() {
	for i := range 5000 {
		r.result += i
	}
}

func (m *reckoner) Prepare(_ int64, f *Frame) Reckoning {
	if m.prepared != nil {
		m.abandoned++
	}
	m.prepared = &reckoned{frame: f}
	return m.prepared
}

func (m *reckoner) Due(n *Network, now int64, f *Frame) {
	if m.prepared.frame != f || m.prepared.result != 5000*4999/2 {
		panic(fmt.Sprintf("reckoned %d for %p; want %d for %p", m.prepared.result, m.prepared.frame, 5000*4999/2, f))
	}
	m.prepared = nil
	m.wait.Due(n, now, f)
}

// TestEveryFrameIsCountedOnceWhoeverGoesOn has threads take a loop over whenever they can, in the middle of its reads, its writes, of what it does about its
// events and of what its model reckons.
func TestEveryFrameIsCountedOnceWhoeverGoesOn(t *testing.T) {
	const frames, receivers = 1000, 5
	model := &reckoner{wait: wait{time: 50e3}}
	n := newNetwork(t, model)
	all := newStations(t, n, 1+receivers)
	var over atomic.Bool
	var took, reads atomic.Int64
	ended := make(chan struct{})
	for range 2 {
		go func() {
			events := make([]unix.EpollEvent, 64)
			for !over.Load() {
				mine, call := n.loop.takeOver(n.loop.calls.now.Load())
				if !mine && call == 0 {
					continue
				}
				if mine {
					took.Add(1)
					if all[0].port.strayReads {
						reads.Add(1)
					}
					if n.loop.goOn(events) {
						n.loop.turn.Unlock()
					}
				}
			}
			ended <- struct{}{}
		}()
	}
	got := make([]int, receivers)
	for i := range frames {
		all[0].send(t, everybody, fmt.Sprint(i))
		for k, s := range all[1:] {
			if s.receive(t, 10*time.Second) != "" {
				got[k]++
			}
		}
	}
	over.Store(true)
	<-ended
	<-ended
	n.engine.Answer()
	c := all[0].port.Last()
	if c.FramesSent != frames || c.Released != frames || c.InFlight != 0 {
		t.Errorf("%d frames sent, %d released, %d in flight; want all, and none", c.FramesSent, c.Released, c.InFlight)
	}
	for k, s := range all[1:] {
		if last := s.port.Last(); got[k] != frames || last.FramesReceived != frames {
			t.Errorf("%s got %d frames, and %d are counted; want %d", s.port.Name, got[k], last.FramesReceived, frames)
		}
	}
	if took.Load() == 0 || reads.Load() == 0 || model.abandoned == 0 {
		t.Errorf("%d calls were taken over, %d of them reads, %d reckonings: nothing was tested", took.Load(), reads.Load(), model.abandoned)
	}
	t.Logf("%d calls were taken over, %d of them reads, %d reckonings", took.Load(), reads.Load(), model.abandoned)
}
