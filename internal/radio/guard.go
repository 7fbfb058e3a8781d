package radio

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// guards of an engine, each on a processor of its own.
	guards = 2
	// guardInterval at which a guard looks whether a loop is late: well below what a verdict calls late.
	guardInterval = 4 * time.Millisecond
	// guardRest is the interval while no loop has anything to do.
	guardRest = 50 * time.Millisecond
)

// guard serves loops whose own threads do not come to it. A hypervisor now and then stops one of a machine's processors for some
// milliseconds. The kernel does not know: a timer that is to fire there does not, and a thread that was about to run there is not taken to
// another one. A guard is bound to its processor, so that of two of them one goes on wherever a loop's thread stands still. Where the loop
// is punctual there is nothing left for a guard to do.
func (e *Engine) guard(processor int) {
	runtime.LockOSThread() // never unlocked: neither the thread's processor nor its priority is for others
	var only unix.CPUSet
	only.Set(processor)
	if unix.SchedSetaffinity(0, &only) != nil {
		return // the processor was taken from the process meanwhile
	}
	_ = Prioritise(e.options) // what is refused, the loops tell of
	events := make([]unix.EpollEvent, 64)
	for !e.closing.Load() {
		pause := guardRest
		for _, l := range e.loops {
			if l.stepIn(events) {
				pause = guardInterval
			}
		}
		wake := unix.NsecToTimespec(int64(pause))
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &wake, nil) // a signal only shortens it
	}
}

// stepIn does what the loop's thread has not done yet, unless it is at it, and tells whether the loop has anything to do at all.
func (l *loop) stepIn(events []unix.EpollEvent) (active bool) {
	if !l.turn.TryLock() {
		return true
	}
	defer l.turn.Unlock()
	if l.thread == 0 || l.ended {
		return false
	}
	// The thread may have taken the event that tells of work, and stand still since.
	l.runWork()
	l.serve(events[:l.events(events, 0)])
	if l.ended {
		l.poke() // the thread closes the loop
	}
	return len(l.ports) > len(l.vacant) || len(l.heap.items) > 0
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
