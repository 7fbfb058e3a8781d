package agent

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/teststall"
)

func TestAProcessorThatStandsStillMakesNoActionLate(t *testing.T) {
	runtime.LockOSThread() // not unlocked: the thread ends with its processor
	processor, others := firstProcessor(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8)) // what keeps the processor busy takes a place in Go's scheduler too
	const rounds, still, tolerated = 11, 100 * time.Millisecond, 10 * time.Millisecond
	var later []time.Duration // than a thread that is bound to the other processors and only sleeps
	for range rounds {
		due := time.Now().Add(still / 3).Round(0)
		ended, control := make(chan error), make(chan time.Duration)
		go func() { ended <- teststall.Occupy(processor, due.Add(-still/6), still) }()
		go func() { control <- wakeUpOn(others, due) }()
		var at time.Time
		if err := actAt(t.Context(), due, func() { at = time.Now() }); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Skipf("not allowed here: %v", err)
		}
		later = append(later, at.Sub(due)-<-control)
	}
	slices.Sort(later)
	if median := later[rounds/2]; median > tolerated {
		t.Errorf("while the executor's processor stood still for %v an action came %v later than another processor could have had it; want %v at most",
			still, median, tolerated)
	}
}

// wakeUpOn sleeps on one of these processors, and tells how late it woke up.
func wakeUpOn(processors *unix.CPUSet, due time.Time) time.Duration {
	runtime.LockOSThread() // not unlocked: the thread ends with its processors
	if unix.SchedSetaffinity(0, processors) != nil {
		return 0
	}
	clock.RunInShortSlices()
	_ = clock.SleepUntil(context.Background(), due)
	return time.Since(due)
}

// firstProcessor binds this thread to the first of several processors.
func firstProcessor(t *testing.T) (processor int, others *unix.CPUSet) {
	t.Helper()
	all := processors
	if all.Count() < 2 {
		t.Skip("one processor: nothing goes on while it stands still")
	}
	for !all.IsSet(processor) {
		processor++
	}
	if err := clock.Bind(0, processor); err != nil {
		t.Fatal(err)
	}
	all.Clear(processor)
	return processor, &all
}

func TestAnActionIsCarriedOutOnceAndNeverEarly(t *testing.T) {
	for range 20 {
		runtime.LockOSThread()
		var count atomic.Int32
		due := time.Now().Add(15 * time.Millisecond).Round(0)
		if err := actAt(t.Context(), due, func() {
			if count.Add(1); time.Now().Before(due) {
				t.Error("the action was early")
			}
		}); err != nil {
			t.Fatal(err)
		}
		runtime.UnlockOSThread()
		time.Sleep(5 * secondTry)
		if count.Load() != 1 {
			t.Fatalf("the action was carried out %d times", count.Load())
		}
	}
}

func TestTheExecutorStaysOnItsProcessorForAnActionOnly(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, during, after unix.CPUSet
	executor := unix.Gettid()
	if err := unix.SchedGetaffinity(0, &before); err != nil || before.Count() < 2 {
		t.Skipf("%d processors, error %v: both threads are on the same one", before.Count(), err)
	}
	err := actAt(t.Context(), time.Now().Add(15*time.Millisecond).Round(0), func() { _ = unix.SchedGetaffinity(executor, &during) })
	if err := errors.Join(err, unix.SchedGetaffinity(0, &after)); err != nil {
		t.Fatal(err)
	}
	if during.Count() != 1 || after != before {
		t.Errorf("%d processors during the action and %d after it; want 1, and the %d from before", during.Count(), after.Count(), before.Count())
	}
}

func TestAWithdrawnActionIsNotCarriedOut(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var acted atomic.Bool
	due := time.Now().Add(200 * time.Millisecond)
	time.AfterFunc(20*time.Millisecond, cancel)
	if err := actAt(ctx, due, func() { acted.Store(true) }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v; want that the context was cancelled", err)
	}
	time.Sleep(time.Until(due) + 50*time.Millisecond)
	if acted.Load() {
		t.Error("the action was carried out although it was withdrawn")
	}
}
