package agent

import (
	"context"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
)

// secondTry is how long after its time an action is carried out by another thread, where the executor's has not done so.
const secondTry = time.Millisecond

// actAt calls act once at the given time, or returns ctx's error without having done so. The caller has locked its thread. A hypervisor now
// and then stops one of a machine's processors for some milliseconds, and the kernel leaves the thread where it is: another thread, on
// another processor, then acts in its place.
func actAt(ctx context.Context, due time.Time, act func()) error {
	var once sync.Once
	acted := false
	actOnce := func() { act(); acted = true }
	if here, others, ok := anotherProcessor(); ok {
		defer stayOn(here)() // else the kernel may wake up both threads on the same one
		go func() {
			runtime.LockOSThread() // not unlocked: the thread ends with its processor
			if unix.SchedSetaffinity(0, others) != nil {
				return
			}
			clock.RunInShortSlices()
			for until := due.Add(secondTry); clock.Realtime() < until.UnixNano(); {
				nap(until)
			}
			if ctx.Err() == nil {
				once.Do(actOnce)
			}
		}()
	}
	err := sleepOnThread(ctx, due)
	once.Do(func() {
		if err == nil {
			actOnce()
		}
	})
	if acted {
		return nil
	}
	return err
}

// processors that this program may use, from before any of its threads was bound to one.
var processors = func() (all unix.CPUSet) {
	_ = unix.SchedGetaffinity(0, &all) // none where the kernel does not tell: there is no second try then
	return all
}()

// anotherProcessor are those but for the one that this thread is on at the moment, here.
func anotherProcessor() (here int, others *unix.CPUSet, ok bool) {
	here = clock.Processor()
	if here < 0 {
		return here, nil, false
	}
	rest := processors
	rest.Clear(here)
	return here, &rest, rest.Count() > 0
}

// stayOn a processor with this thread, until the caller takes leave of it.
func stayOn(here int) (leave func()) {
	var before unix.CPUSet
	if unix.SchedGetaffinity(0, &before) != nil || clock.Bind(0, here) != nil {
		return func() {}
	}
	return func() { _ = unix.SchedSetaffinity(0, &before) }
}
