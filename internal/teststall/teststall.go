// Package teststall has a processor stand still for what a test looks at, as one that a hypervisor has stopped.
package teststall

import (
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
)

// Occupy keeps a processor from everything that has no real-time priority, from a time on and for so long, and then returns. It fails where the
// kernel does not let this process have that processor or a real-time priority. What it does takes a place in Go's scheduler
// (runtime.GOMAXPROCS). Call it on a goroutine of its own, whose thread ends with it.
func Occupy(processor int, from time.Time, d time.Duration) error {
	runtime.LockOSThread() // not unlocked: the thread ends with its priority
	if err := clock.Bind(0, processor); err != nil {
		return err
	}
	time.Sleep(time.Until(from))
	attributes := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 50}
	if err := unix.SchedSetAttr(0, attributes, 0); err != nil {
		return os.NewSyscallError("sched_setattr", err)
	}
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
	return nil
}
