package radio

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
)

// mayStandStill lets a thread of the test stand still outside of Go's scheduler: it has a place there, and a garbage collection would wait for it.
func mayStandStill(t *testing.T) {
	t.Helper()
	places, percent := runtime.GOMAXPROCS(8), debug.SetGCPercent(-1)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(places)
		debug.SetGCPercent(percent)
	})
}

// guardedNetwork has guards that go on where the loop's thread stands still: something is always due in it, as in a network with traffic, so that they
// look.
func guardedNetwork(t *testing.T, m Model) *Network {
	t.Helper()
	if len(guarded()) < 2 {
		t.Skip("one processor: nobody takes over")
	}
	mayStandStill(t)
	n := newNetworkWith(t, m, Options{Guards: GuardsAlways})
	n.Schedule(clock.Monotonic()+1e6, func(now int64, _ Model) (bool, int64) { return false, now + 1e6 })
	return n
}

// stillReading are stations with guards. The loop's thread stands still as it reads from the first of them, which has sent nothing, and a guard goes on
// with the loop.
func stillReading(t *testing.T, count int) (all []station) {
	t.Helper()
	n := guardedNetwork(t, &wait{})
	all = newStations(t, n, count)
	first := all[0].port
	if err := unix.SetNonblock(first.Descriptor, false); err != nil {
		t.Fatal(err)
	}
	event, err := unix.Eventfd(1, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(event) })
	n.Do(func(n *Network, _ Model) { err = n.loop.add(event, unix.EPOLLIN|unix.EPOLLET, first.index) }) // once
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); first.strays.count.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nobody took over from the thread that stands still")
		}
	}
	return all
}

func TestALoopGoesOnWhileOneOfItsReadsStandsStill(t *testing.T) {
	all := stillReading(t, 3)
	for i := range 20 {
		all[1].send(t, everybody, fmt.Sprint("frame ", i))
		if got := all[2].receive(t, 10*time.Second); got != fmt.Sprint("frame ", i) {
			t.Fatalf("got %q; want frame %d", got, i)
		}
	}
	for i := range 20 {
		all[0].send(t, everybody, fmt.Sprint("late ", i))
	}
	for i := range 20 {
		if got := all[2].receive(t, 10*time.Second); got != fmt.Sprint("late ", i) {
			t.Fatalf("got %q of the one whose read stood still; want late %d", got, i)
		}
	}
	if sent := all[0].port.Last(); sent.FramesSent != 20 || sent.Released != 20 || sent.InFlight != 0 {
		t.Errorf("%d frames sent, %d released, %d in flight where the read stood still; want 20, 20, 0", sent.FramesSent, sent.Released, sent.InFlight)
	}
}

func TestAPortIsDetachedOnceAReadThatStandsStillHasReturned(t *testing.T) {
	all := stillReading(t, 2)
	detached := make(chan Counters)
	go func() { detached <- all[0].port.Detach() }()
	select {
	case <-detached:
		t.Fatal("detached while a thread reads from the descriptor, which may be another file's from then on")
	case <-time.After(50 * time.Millisecond):
	}
	all[0].send(t, everybody, "too late")
	select {
	case <-detached:
	case <-time.After(10 * time.Second):
		t.Fatal("the port is not detached although nobody reads from it any more")
	}
	if got := all[1].receive(t, 20*time.Millisecond); got != "" {
		t.Errorf("got %q of a port that was detached", got)
	}
	if last := all[0].port.Last(); last.FramesSent != 1 || last.Drops[InFlightAtEnd] != 1 || last.InFlight != 0 {
		t.Errorf("%d frames sent, %d dropped as the port went, %d in flight; want 1, 1, 0", last.FramesSent, last.Drops[InFlightAtEnd], last.InFlight)
	}
}

func TestAFrameThatWasReadDoesNotWaitForAWriteThatStandsStill(t *testing.T) {
	mayStandStill(t)
	l, all := loopWith(t, &addressed{wait{time: 1}})
	var err error
	if l.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(l.wake) })
	l.watched, l.ended = &watch{}, false
	all[0].send(t, all[1].port.MAC, "due")
	l.turn.Lock()
	l.read(all[0].port)
	empty := all[1].fill(t)
	defer empty()
	all[0].send(t, all[2].port.MAC, "read")
	lost := make(chan bool)
	go func() { lost <- !l.read(all[0].port) }() // releases what is due first
	seen := l.calls.now.Load()
	for end := time.Now().Add(10 * time.Second); seen == 0 || seen != l.calls.now.Load(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no write stands still")
		}
		seen = l.calls.now.Load()
	}
	if mine, _ := l.takeOver(seen); !mine {
		t.Fatal("the turn was not taken over from a write that stands still")
	}
	if !l.goOn(make([]unix.EpollEvent, 1)) {
		t.Fatal("the turn was lost again")
	}
	if got := all[2].receive(t, time.Second); got != "read" {
		t.Errorf("got %q behind the write that stands still; want the frame that was read before it", got)
	}
	empty()
	if !<-lost {
		t.Error("the thread that stood still believes that it has the turn")
	}
	if got := all[1].receive(t, time.Second); got != "due" {
		t.Errorf("the one whose write stood still got %q; want its frame", got)
	}
}
