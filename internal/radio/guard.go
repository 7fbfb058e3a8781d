package radio

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
)

const (
	// mostGuards of an engine, each on a processor of its own.
	mostGuards = 2
	// guardGrace is how long after a frame's time a guard looks whether it has been released: well below what a verdict calls late.
	guardGrace = int64(2 * time.Millisecond)
	// callGrace is how long after it has seen a loop in a call of the kernel, with something due, a guard looks whether it is the same call still:
	// far longer than calls take.
	callGrace = int64(500 * time.Microsecond)
	// never is the time of what does not come.
	never = math.MaxInt64
)

// Guards says when loops have guards. To wake one costs more than a frame does, and only a hypervisor stops single processors.
type Guards string

// Options for Guards. GuardsAuto has them on what may be a hypervisor's processors, and is the zero value's meaning too.
const (
	GuardsAuto   Guards = "auto"
	GuardsAlways Guards = "always"
	GuardsNever  Guards = "never"
)

// MarshalText gives the option's name.
func (g Guards) MarshalText() ([]byte, error) { return []byte(cmp.Or(g, GuardsAuto)), nil }

// UnmarshalText refuses what is no option.
func (g *Guards) UnmarshalText(text []byte) error {
	switch got := Guards(text); got {
	case GuardsAuto, GuardsAlways, GuardsNever:
		*g = got
		return nil
	default:
		return fmt.Errorf("guards %q: want %s, %s or %s", got, GuardsAuto, GuardsAlways, GuardsNever)
	}
}

// wanted on this machine.
func (g Guards) wanted() bool {
	return g == GuardsAlways || g != GuardsNever && clock.Virtual()
}

// watch is what an engine's loops and the guards that look after them know of each other. Neither slice changes once they run.
type watch struct {
	loops  []*loop
	guards []*guard
}

// guard serves loops whose own threads do not come to it. A hypervisor now and then stops one of a machine's processors for some
// milliseconds. The kernel does not know: a timer that is to fire there does not, and a thread that was about to run there is not taken to
// another one. A guard is bound to its processor, so that of two of them one goes on wherever a loop's timer is. It looks a grace after
// something was due; where the loop was punctual there is nothing left to do. As waking up costs more than a frame does, a guard rests
// until a loop has something due and rings its bell or sets its timer, and the loop takes its timer away once nothing is due any more.
type guard struct {
	processor   int
	bell, timer int          // an eventfd and a timerfd
	until       atomic.Int64 // when it looks next, or never
	seen        []uint64     // the call in which each loop was when it looked last
	// What a wait needs, as no frame costs an allocation.
	poll [2]unix.PollFd
	rung [8]byte
}

func newGuards(where Guards) (all []*guard, err error) {
	if !where.wanted() {
		return nil, nil
	}
	for _, processor := range guarded() {
		g := &guard{processor: processor}
		g.until.Store(never)
		if g.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
			return all, fmt.Errorf("eventfd: %w", err)
		}
		if g.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
			_ = unix.Close(g.bell)
			return all, fmt.Errorf("timerfd: %w", err)
		}
		all = append(all, g)
	}
	return all, nil
}

func (g *guard) close() {
	_ = unix.Close(g.bell)
	_ = unix.Close(g.timer)
}

func (e *Engine) stand(g *guard) {
	runtime.LockOSThread() // never unlocked: neither the thread's processor nor its priority is for others
	if clock.Bind(0, g.processor) != nil {
		return // the processor was taken from the process meanwhile
	}
	_ = Prioritise(e.options) // what is refused, the loops tell of
	events := make([]unix.EpollEvent, 64)
	g.seen = make([]uint64, len(e.loops))
	for look := int64(never); !e.closing.Load(); {
		if now := clock.Monotonic(); look <= now {
			again := guardGrace // not sooner, where a loop has more to do than it can
			if e.watch.lookAfter(g, events) {
				again = callGrace
			}
			look = g.sleep(&e.watch, now+again)
		} else {
			look = g.sleep(&e.watch, 0)
		}
	}
}

// sleep until a grace after what is due first, but not before the time notBefore, or until the bell rings. It gives the time at which the guard is to look.
func (g *guard) sleep(w *watch, notBefore int64) (look int64) {
	for {
		due, until := w.earliest(), int64(never)
		if due != never {
			until = max(due+guardGrace, notBefore)
		}
		g.until.Store(until)
		setTimer(g.timer, until)
		// Last, as a loop that has got something else since may have seen the time before.
		if w.earliest() == due {
			break
		}
	}
	g.poll = [2]unix.PollFd{{Fd: int32(g.bell), Events: unix.POLLIN}, {Fd: int32(g.timer), Events: unix.POLLIN}} //nolint:gosec // descriptors
	if count, err := unix.Poll(g.poll[:], -1); err == nil && count > 0 && g.poll[0].Revents != 0 {
		_, _ = unix.Read(g.bell, g.rung[:])
	}
	return g.until.Load() // which others may have set
}

// earliest time at which a loop has something due, or never.
func (w *watch) earliest() int64 {
	first := int64(never)
	for _, l := range w.loops {
		first = min(first, l.earliest.Load())
	}
	return first
}

// lookAfter does what loops' threads have not done yet, and tells whether one is in a call of the kernel, where it may stand still.
func (w *watch) lookAfter(g *guard, events []unix.EpollEvent) (calls bool) {
	for i, l := range w.loops {
		g.seen[i] = l.stepIn(events, g.seen[i])
		calls = calls || g.seen[i] != 0
	}
	return calls
}

// tell guards that something is due, unless they look in time anyway. The timer fires on one processor and may wake the loop's thread up on
// another one, and either may stand still: where a guard is on the caller's processor, both look; where none is, the first that is not where the
// timer fires.
func (w *watch) tell(due int64, timerOn int) {
	look := due + guardGrace
	if !slices.ContainsFunc(w.guards, func(g *guard) bool { return g.until.Load() > look }) {
		return
	}
	here := clock.Processor()
	all := slices.ContainsFunc(w.guards, func(g *guard) bool { return g.processor == here })
	for _, g := range w.guards {
		if all {
			g.lookAt(look, here)
		} else if g.processor != timerOn {
			g.lookAt(look, here)
			return
		}
	}
}

// lookAt a time, unless the guard looks sooner. A timer that is set here fires here: of a guard elsewhere it may not be set by others.
func (g *guard) lookAt(look int64, here int) {
	if until := g.until.Load(); until <= look || !g.until.CompareAndSwap(until, look) {
		return
	}
	if g.processor == here {
		setTimer(g.timer, look)
	} else {
		g.ring()
	}
}

// spare the guards a look, if nothing is due in any loop.
func (w *watch) spare() {
	if w.earliest() != never {
		return
	}
	for _, g := range w.guards {
		if until := g.until.Load(); until != never && g.until.CompareAndSwap(until, never) {
			setTimer(g.timer, never)
		}
	}
}

func (g *guard) ring() {
	one := [8]byte{1}
	_, _, _ = unix.RawSyscall(unix.SYS_WRITE, uintptr(g.bell), uintptr(unsafe.Pointer(&one)), 8) // does not block
}

// stepIn does what the loop's thread has not done yet, unless it is at it. Where it still is in the call in which it was seen before, the loop goes on
// without it. stepIn gives the call in which it is, or 0.
func (l *loop) stepIn(events []unix.EpollEvent, seen uint64) (call uint64) {
	var mine bool
	if l.turn.TryLock() {
		mine = l.thread == 0 || l.ended || l.goOn(events)
	} else if mine, call = l.takeOver(seen); mine {
		mine = l.goOn(events)
	}
	if mine {
		l.turn.Unlock()
	}
	return call
}

// goOn with a loop whose turn the caller has. False tells that another thread has it.
func (l *loop) goOn(events []unix.EpollEvent) (mine bool) {
	// First what was being handed out, and what had been read. The thread may have taken the event that tells of work, and stand still since.
	if !l.handOut() || !l.acceptArrival() || !l.runWork() {
		return false
	}
	if !l.ended {
		call := l.calls.begin(nil)
		count := l.events(events, 0)
		if !l.calls.end(call) {
			l.refresh()
			return false
		}
		if !l.serve(events[:count]) {
			return false
		}
	}
	if l.ended && l.epoll >= 0 {
		l.poke() // the thread closes the loop
	}
	return true
}

// guarded processors are those for an engine's guards: none where there is only one, as nothing would go on there.
func guarded() (processors []int) {
	all, err := clock.Processors()
	if err != nil || len(all) < mostGuards {
		return nil
	}
	for i := range mostGuards {
		processors = append(processors, all[i*len(all)/mostGuards])
	}
	return processors
}
