// Package clock waits for instants more precisely than Go's timers, which can be a millisecond
// late, and reads the clocks that kernel timers use.
package clock

import (
	"context"
	"math"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// preciseWait is the last part of a wait, spent in the kernel on a locked thread. Go's timers are off by far
	// less, and a cancelled wait lasts at most this much longer.
	preciseWait = 20 * time.Millisecond
	// recheckInterval bounds how long a step of CLOCK_REALTIME stays unnoticed in a long wait.
	recheckInterval = time.Second
	// timerSlackNanoseconds of the precise part. The default of 50 µs would be most of the lateness.
	timerSlackNanoseconds = 1
)

// SleepUntil waits until CLOCK_REALTIME shows t and returns nil, or ctx's error within 20 ms of ctx's end. It
// returns at once if t has passed. On an idle machine it is typically less than 0.2 ms late, and never early.
// It follows steps of the clock.
func SleepUntil(ctx context.Context, t time.Time) error { return sleepUntil(ctx, t, Realtime) }

func sleepUntil(ctx context.Context, t time.Time, realtime func() int64) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		left := time.Duration(t.UnixNano() - realtime())
		if left <= 0 {
			return nil
		}
		if left <= preciseWait {
			if err := sleepPrecisely(left); err != nil {
				return err
			}
			continue
		}
		if err := sleepRoughly(ctx, min(left-preciseWait, recheckInterval)); err != nil {
			return err
		}
	}
}

func sleepRoughly(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// sleepPrecisely blocks the thread. On CLOCK_REALTIME a clock that is set back would block it until the clock has caught up.
func sleepPrecisely(d time.Duration) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	SetTimerSlack(timerSlackNanoseconds)
	defer SetTimerSlack(0) // the thread returns to Go's pool unchanged
	deadline := unix.NsecToTimespec(systemMonotonic() + d.Nanoseconds())
	for {
		err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &deadline, nil)
		if err != unix.EINTR {
			return err
		}
	}
}

// SetTimerSlack sets how late the kernel may fire the calling thread's timers to save wake-ups; 0 restores
// the default of usually 50 µs. The caller must have locked its thread.
func SetTimerSlack(nanoseconds uint) {
	// A kernel without this option only costs precision, which is measured.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(nanoseconds), 0, 0, 0)
}

// MinSlice in nanoseconds is the shortest time slice that kernels since 6.12 accept for a thread.
const MinSlice = 100e3

// Realtime reads CLOCK_REALTIME, nanoseconds since the Unix epoch.
func Realtime() int64 { return time.Now().UnixNano() }

// Monotonic reads CLOCK_MONOTONIC in nanoseconds, the clock of timerfd deadlines.
func Monotonic() int64 { return monotonicAtStart + int64(time.Since(start)) }

// Go reads the same clock through the vDSO but hides its origin. A system call would cost several times as
// much for every frame.
var start, monotonicAtStart = time.Now(), systemMonotonic()

func systemMonotonic() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // fails only for an unknown clock
	return t.Nano()
}

// EpochOffset of this machine: CLOCK_REALTIME - CLOCK_MONOTONIC in nanoseconds. It is read between two
// readings of the other clock, and again if those are far apart.
func EpochOffset() int64 {
	best, offset := int64(math.MaxInt64), int64(0)
	for range 5 {
		before := Monotonic()
		realtime := Realtime()
		after := Monotonic()
		if after-before < best {
			best, offset = after-before, realtime-before-(after-before)/2
		}
		if best < 1000 {
			break
		}
	}
	return offset
}

// Pause waits for a time, and reports whether ctx has not ended. Unlike SleepUntil it is as precise as Go's timers.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Every calls f at an interval until ctx ends.
func Every(ctx context.Context, interval time.Duration, f func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f()
		}
	}
}
