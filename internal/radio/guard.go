package radio

import (
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
)

const (
	// guards of an engine, each on a processor of its own.
	guards = 2
	// guardInterval at which a guard looks whether a loop is late, while something is due soon: well below what a verdict calls late.
	guardInterval = 4 * time.Millisecond
	// guardRest is the interval while nothing is.
	guardRest = 50 * time.Millisecond
)

// guard serves loops whose own threads do not come to it. A hypervisor now and then stops one of a machine's processors for some
// milliseconds. The kernel does not know: a timer that is to fire there does not, and a thread that was about to run there is not taken to
// another one. A guard is bound to its processor, so that of two of them one goes on wherever a loop's thread stands still. Where the loop
// is punctual there is nothing left for a guard to do. Where nothing is due it rests, as waking up costs more than a frame does, until a
// loop that has something sets the guard's bell.
type guard struct {
	processor int
	bell      int // an eventfd
	resting   atomic.Bool
	// What a wait for the bell needs, as no frame costs an allocation.
	poll [1]unix.PollFd
	rung [8]byte
}

func newGuards() (all []*guard, err error) {
	for _, processor := range guarded() {
		bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			return all, fmt.Errorf("eventfd: %w", err)
		}
		all = append(all, &guard{processor: processor, bell: bell})
	}
	return all, nil
}

func (e *Engine) stand(g *guard) {
	runtime.LockOSThread() // never unlocked: neither the thread's processor nor its priority is for others
	if clock.Bind(0, g.processor) != nil {
		return // the processor was taken from the process meanwhile
	}
	_ = Prioritise(e.options) // what is refused, the loops tell of
	events := make([]unix.EpollEvent, 64)
	for !e.closing.Load() {
		if wait := e.lookAfter(events); wait < int64(guardInterval) {
			pause := unix.NsecToTimespec(int64(guardInterval))
			_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &pause, nil) // a signal only shortens it
			continue
		}
		g.resting.Store(true)
		if wait := e.lookAfter(events); wait >= int64(guardInterval) { // else a loop has got something before it saw that this guard rests
			g.rest(wait)
		}
		g.resting.Store(false)
	}
}

// rest for so many nanoseconds, or until the bell rings.
func (g *guard) rest(wait int64) {
	g.poll[0] = unix.PollFd{Fd: int32(g.bell), Events: unix.POLLIN} //nolint:gosec // a descriptor
	milliseconds := min(wait, int64(guardRest))/1e6 + 1
	if rang, err := unix.Poll(g.poll[:], int(milliseconds)); err == nil && rang > 0 {
		_, _ = unix.Read(g.bell, g.rung[:])
	}
}

// ring wakes a guard that rests, unless it is on the calling thread's processor, on which timers that the thread sets fire: the first such
// guard alone, as one is enough.
func ring(all []*guard) {
	here := clock.Processor()
	for _, g := range all {
		if g.processor == here {
			continue
		}
		if g.resting.Load() && g.resting.CompareAndSwap(true, false) {
			one := [8]byte{1}
			_, _, _ = unix.RawSyscall(unix.SYS_WRITE, uintptr(g.bell), uintptr(unsafe.Pointer(&one)), 8) // does not block
		}
		return
	}
}

// lookAfter does what loops' threads have not done yet, and gives the nanoseconds until something is due.
func (e *Engine) lookAfter(events []unix.EpollEvent) (wait int64) {
	wait = math.MaxInt64
	for _, l := range e.loops {
		wait = min(wait, l.stepIn(events))
	}
	return wait
}

// stepIn does what the loop's thread has not done yet, unless it is at it, and gives the nanoseconds until the loop's next is due: none while
// the thread is at it.
func (l *loop) stepIn(events []unix.EpollEvent) (wait int64) {
	if !l.turn.TryLock() {
		return 0
	}
	defer l.turn.Unlock()
	if l.thread == 0 || l.ended {
		return math.MaxInt64
	}
	// The thread may have taken the event that tells of work, and stand still since.
	l.runWork()
	l.serve(events[:l.events(events, 0)])
	if l.ended {
		l.poke() // the thread closes the loop
	}
	if len(l.heap.items) == 0 {
		return math.MaxInt64
	}
	return l.heap.items[0].due - clock.Monotonic()
}

// guarded processors are those for an engine's guards: none where there is only one, as nothing would go on there.
func guarded() (processors []int) {
	var allowed unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil {
		return nil
	}
	var all []int
	for i := 0; len(all) < allowed.Count(); i++ {
		if allowed.IsSet(i) {
			all = append(all, i)
		}
	}
	if len(all) < guards {
		return nil
	}
	for i := range guards {
		processors = append(processors, all[i*len(all)/guards])
	}
	return processors
}
