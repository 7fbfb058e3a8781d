package clock

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestSleepUntilIsNeverEarlyAndHardlyLate(t *testing.T) {
	var lateness []time.Duration
	for _, wait := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 25 * time.Millisecond, 60 * time.Millisecond} {
		for range 8 {
			deadline := time.Now().Add(wait).Round(0)
			if err := SleepUntil(context.Background(), deadline); err != nil {
				t.Fatal(err)
			}
			late := time.Since(deadline)
			if late < 0 {
				t.Fatalf("woke up %v before the deadline", -late)
			}
			if wait > 0 {
				lateness = append(lateness, late)
			}
		}
	}
	slices.Sort(lateness)
	t.Logf("lateness: median %v, worst %v", lateness[len(lateness)/2], lateness[len(lateness)-1])
	// The lower quartile, as other processes may well hold the processor for a while.
	if q := lateness[len(lateness)/4]; q > 200*time.Microsecond {
		t.Errorf("a quarter of the waits are more than %v late; want < 0.2 ms", q)
	}
}

func TestSleepUntilReturnsAtOnceForThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := SleepUntil(t.Context(), start.Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("took %v for a time in the past", took)
		}
	})
}

func TestSleepUntilEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(30*time.Millisecond, cancel)
	start := time.Now()
	err := SleepUntil(ctx, start.Add(time.Minute))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want context.Canceled", err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v to notice the end of the context", took)
	}
}

func TestSleepUntilEndsWithItsContextWhenTheClockIsSetBackAtItsEnd(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	deadline := time.Now().Add(time.Minute)
	readings := 0
	realtime := func() int64 { // a minute fast, until it is set right
		if readings++; readings == 1 {
			return deadline.Add(-time.Millisecond).UnixNano()
		}
		return Realtime()
	}
	start := time.Now()
	if err := sleepUntil(ctx, deadline, realtime); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v; want the context's error", err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v to notice the end of the context", took)
	}
}

func TestMonotonicReadsTheKernelsClock(t *testing.T) {
	before := systemMonotonic()
	got := Monotonic()
	after := systemMonotonic()
	// The two origins were read one after the other, hence the margin.
	const margin = int64(50 * time.Millisecond)
	if got < before-margin || got > after+margin {
		t.Errorf("Monotonic() = %d; the kernel said %d before and %d after", got, before, after)
	}
}

func TestAPauseEndsAfterItsTimeOrWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if !Pause(t.Context(), time.Minute) || time.Since(begun) != time.Minute {
			t.Errorf("paused for %v; want a minute", time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if begun := time.Now(); Pause(ctx, time.Minute) || time.Since(begun) != time.Second {
			t.Errorf("paused for %v, although ctx ended after a second", time.Since(begun))
		}
	})
}
