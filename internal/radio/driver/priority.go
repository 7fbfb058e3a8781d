package driver

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
)

// RaisePriority gives this process the priority that the options ask for, and returns what the kernel refused. A
// loop's thread needs a free P as soon as it wakes up, so there are more Ps than processors.
func (d *Driver) RaisePriority() (err error) {
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), runtime.NumCPU()+len(d.loops)+1))
	for _, l := range d.loops {
		l.do(func() { err = errors.Join(err, l.priorityError) })
	}
	startThreads(spareThreads)
	return errors.Join(err, RaiseProcessPriority(d.options))
}

// spareThreads are started before monitorSlack is set, because threads that the monitor starts would inherit
// it.
const spareThreads = 8

func startThreads(count int) {
	release := make(chan struct{})
	var made sync.WaitGroup
	made.Add(count)
	for range count {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			made.Done()
			<-release
		}()
	}
	made.Wait()
	close(release)
}

// monitorSlack in nanoseconds by which the monitor thread of Go's runtime may wake up late. After each wait
// of a loop it polls every 20 µs for 10 ms. If loops wake up for single frames, this costs twice the
// processor time of the frames.
const monitorSlack = 50e6

// RaiseProcessPriority gives every thread of this process the options' niceness; new threads inherit it. Go's garbage
// collector stops all threads, so a loop waits for the slowest. The monitor is the first thread that the
// runtime starts.
func RaiseProcessPriority(options Options) (err error) {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	monitor := math.MaxInt
	for _, thread := range entries {
		id, convErr := strconv.Atoi(thread.Name())
		if convErr != nil {
			return convErr
		}
		if id > os.Getpid() {
			monitor = min(monitor, id)
		}
		if has, getErr := unix.SchedGetAttr(id, 0); getErr != nil || has.Nice < int32(options.Nice) { // it has ended, or belongs to a loop
			continue
		}
		if setErr := unix.Setpriority(unix.PRIO_PROCESS, id, options.Nice); setErr != nil && setErr != unix.ESRCH {
			err = os.NewSyscallError("setpriority", setErr)
		}
	}
	// A refusal only costs processor time.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/timerslack_ns", monitor), strconv.AppendInt(nil, monitorSlack, 10), 0)
	return err
}

// niceAdvantage is the niceness by which a loop goes before its process's other threads: nine times their weight.
// Without it a loop waits for busy threads after a burst of frames.
const niceAdvantage = 10

// loopNice returns the niceness of loops.
func loopNice(options Options) int {
	if options.Nice == 0 {
		return 0
	}
	return max(options.Nice-niceAdvantage, -20)
}

// SetThreadPriority gives the calling thread the priority that the options ask for loops. A refusal by the kernel
// only costs lateness, which is measured.
func SetThreadPriority(options Options) error {
	clock.SetTimerSlack(1)
	attributes := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: int32(loopNice(options)), Runtime: clock.MinSlice}
	err := os.NewSyscallError("sched_setattr", unix.SchedSetAttr(0, attributes, 0))
	if options.Realtime > 0 {
		attributes = &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: uint32(options.Realtime), Flags: unix.SCHED_FLAG_RESET_ON_FORK}
		err = errors.Join(err, os.NewSyscallError("sched_setattr", unix.SchedSetAttr(0, attributes, 0)))
	}
	return err
}
