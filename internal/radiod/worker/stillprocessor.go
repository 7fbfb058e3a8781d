package worker

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
)

const (
	// stillTick in nanoseconds is how often a thread looks whether its processor goes on. All look at the same instants. A stop is seen from the first
	// of them on that it delays, so that up to so much of its length is not counted.
	stillTick = int64(5 * time.Millisecond)
	// mostTold is how many spans wait to be collected, which is done once a second; what comes beyond is not claimed.
	mostTold = 512
)

// stillProcessor is a processor, and the thread on it that finds when it stood still. The thread sleeps until an instant. If it wakes up late, the processor
// either had something else to do, and the thread waited in its run queue, or did nothing at all: the timer did not fire. Only the latter is
// claimed, by the kernel's own figures, and only where the thread left the processor once in that time, to sleep until that instant: one that Go's
// scheduler, a signal, a page or a debugger had wait is late for that. While a cgroup's quota is used up its threads wait in the run queue. Only the
// freezer of cgroup version 1 cannot be told from a stop. A stop that finds the thread in the run queue is not claimed.
//
// Measured on a machine of two processors, a thread takes 4 to 6 ms of processor time in a second, of which its waits are 0.3 ms.
type stillProcessor struct {
	number int
	// seen is the time up to which the thread has told everything.
	seen atomic.Int64
	told chan span
	// still are those that have been collected; they belong to who collects.
	still []span

	// The rest is the thread's, and here as a tick allocates nothing.
	schedstat int
	deadline  unix.Timespec
	usage     unix.Rusage
	text      [96]byte
	before    waits
}

// waits of a thread since it began.
type waits struct {
	// queued in nanoseconds, while it could run and did not.
	queued int64
	// slept is how often it gave up its processor by itself.
	slept int64
}

func newStillProcessor(number int) *stillProcessor {
	return &stillProcessor{number: number, told: make(chan span, mostTold)}
}

// watch until ended, and tell whether that has begun.
func (p *stillProcessor) watch(ended *atomic.Bool, began chan<- error) {
	runtime.LockOSThread() // never unlocked: the thread stays on its processor, and ends with the goroutine
	err := p.begin()
	began <- err
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(p.schedstat) }()
	for !ended.Load() && p.tick() {
	}
}

func (p *stillProcessor) begin() (err error) {
	if err = clock.Bind(0, p.number); err != nil {
		return fmt.Errorf("a thread on processor %d: %w", p.number, err)
	}
	if p.schedstat, err = unix.Open("/proc/thread-self/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return fmt.Errorf("how long threads wait for processors: %w", err)
	}
	var ok bool
	if p.before, ok = p.waits(); !ok {
		return errors.Join(errors.New("the kernel does not count how long threads wait for processors"), unix.Close(p.schedstat))
	}
	p.seen.Store(clock.Monotonic())
	return nil
}

// tick sleeps until the next instant and tells whether the processor stood still. It gives false where it cannot go on; then seen does not either,
// and nothing is claimed.
func (p *stillProcessor) tick() bool {
	due := (clock.Monotonic()/stillTick + 1) * stillTick
	p.deadline = unix.NsecToTimespec(due)
	if err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &p.deadline, nil); err != nil && err != unix.EINTR {
		return false
	}
	now := clock.Monotonic() // before the waits: what it waits after this is then not taken for a stop
	after, ok := p.waits()
	if !ok {
		return false
	}
	if stood, ok := stoodStill(due, now, p.before, after); ok {
		select {
		case p.told <- stood:
		default:
		}
	}
	p.before = after
	p.seen.Store(now) // after what was told
	return true
}

// collect what the thread has told.
func (p *stillProcessor) collect() {
	for {
		select {
		case s := <-p.told:
			p.still = append(p.still, s)
		default:
			return
		}
	}
}

// stoodStill gives the time in which a processor did nothing for a thread that was to wake up at due and came to look at the time now, by the thread's
// waits before and after.
func stoodStill(due, now int64, before, after waits) (span, bool) {
	if after.slept-before.slept != 1 {
		return span{}, false
	}
	stood := span{due, now - (after.queued - before.queued)} // it cannot have waited in the run queue before the timer fired
	return stood, stood.to-stood.from >= leastStill
}

// waits of the calling thread; not ok where the kernel does not tell.
func (p *stillProcessor) waits() (w waits, ok bool) {
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &p.usage); err != nil {
		return w, false
	}
	// Raw, as it does not block, and Go's scheduler must not come between.
	n, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, uintptr(p.schedstat), uintptr(unsafe.Pointer(&p.text)), uintptr(len(p.text)), 0, 0, 0)
	if errno != 0 {
		return w, false
	}
	w.queued, ok = parseSchedstat(p.text[:n])
	w.slept = p.usage.Nvcsw
	return w, ok
}

// parseSchedstat gives the second of three figures: nanoseconds in the run queue. The third is how often the thread has run. Where the kernel counts
// neither it is 0, though the thread runs.
func parseSchedstat(text []byte) (queued int64, ok bool) {
	var figures [3]int64
	field := 0
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			figures[field] = 10*figures[field] + int64(c-'0')
		case c == ' ' && field < len(figures)-1:
			field++
		case c == '\n':
			return figures[1], field == len(figures)-1 && figures[2] > 0
		default:
			return 0, false
		}
	}
	return 0, false
}
