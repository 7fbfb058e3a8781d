package worker

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
)

const (
	// timerTick in nanoseconds is how often the kernel's timer fires on a processor.
	timerTick = int64(2 * time.Millisecond)
	// stillTick in nanoseconds is how often the thread on a processor wakes up. A stop is seen from so long after the last sign of life on, so that up to
	// so much of its length is not counted.
	stillTick = int64(4 * time.Millisecond)
	// mostWakes of a thread that wait to be collected, which is done once a second.
	mostWakes = 2048
	// ringPages have room for 8 s of the timer's records, of 16 bytes.
	ringPages = 16
)

// stillProcessor finds when one processor stood still: where neither of two has left a sign of life. One is a timer of the kernel
// (perf_event_open(2), PERF_COUNT_SW_CPU_CLOCK), which writes down in the interrupt when it fires, and so whatever the processor has to do. The other is
// a thread that wakes up and does the same, which it does not while other threads go before it: some sandboxes' kernels do not write down what
// falls into the time of some tasks, idle ones and the sandbox's own among them, so that few threads may go before it. What else keeps a processor from its interrupts is short, or as bad: firmware, or a
// kernel that has disabled them for long.
type stillProcessor struct {
	number int
	event  int
	ring   []byte // what perf_event_open(2) maps: a page of its own, then ringPages of records
	// wakes of the thread, the first of them at the place of a count of so many before; a multiple of mostWakes later their places are used again.
	wakes [mostWakes]atomic.Int64
	woken atomic.Uint64
	read  uint64 // of the wakes

	marks  []mark
	latest int64  // time of the last sign of life that has been looked at, 0 before the first
	still  []span // that have been found
}

// mark is a sign of life, by CLOCK_MONOTONIC. The time before it is not known where marks are missing.
type mark struct {
	at      int64
	missing bool
}

// recordHeader of a record is its type, something of no use here, and its size with the header (struct perf_event_header). Records are of whole words of
// eight bytes, and may go round the end of the ring between these.
type recordHeader struct {
	kind    uint32
	_, size uint16
}

const recordWord = 8

// newStillProcessor has the kernel's timer fire; it fails where the kernel has none for this process, which needs CAP_PERFMON or CAP_SYS_ADMIN.
func newStillProcessor(number int) (*stillProcessor, error) {
	attributes := &unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Config: unix.PERF_COUNT_SW_CPU_CLOCK,
		Sample: uint64(timerTick), Sample_type: unix.PERF_SAMPLE_TIME, Bits: unix.PerfBitUseClockID | unix.PerfBitWatermark, Wakeup: 1 << 30, Clockid: unix.CLOCK_MONOTONIC}
	event, err := unix.PerfEventOpen(attributes, -1, number, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("a timer on processor %d: %w", number, os.NewSyscallError("perf_event_open", err))
	}
	ring, err := unix.Mmap(event, 0, (1+ringPages)*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("a timer on processor %d: %w", number, os.NewSyscallError("mmap", err)), unix.Close(event))
	}
	return &stillProcessor{number: number, event: event, ring: ring}, nil
}

// close it after its thread has ended.
func (p *stillProcessor) close() error { return errors.Join(unix.Munmap(p.ring), unix.Close(p.event)) }

// stay on the processor until ended, waking up now and then, with the priority of the engine's loops. Where the thread may not, or cannot sleep, there is the timer.
func (p *stillProcessor) stay(loops radio.Options, ended *atomic.Bool) {
	runtime.LockOSThread() // never unlocked: the thread stays on its processor, and ends with the goroutine
	if clock.Bind(0, p.number) != nil {
		return
	}
	_ = radio.Prioritise(loops) // what is refused, the loops tell of
	for !ended.Load() {
		due := unix.NsecToTimespec((clock.Monotonic()/stillTick + 1) * stillTick)
		if err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &due, nil); err != nil && err != unix.EINTR {
			return
		}
		p.wake(clock.Monotonic())
	}
}

func (p *stillProcessor) wake(now int64) {
	n := p.woken.Load()
	p.wakes[n%mostWakes].Store(now)
	p.woken.Store(n + 1)
}

// collect signs of life, and find where they were missing.
func (p *stillProcessor) collect() {
	until := clock.Monotonic() // what comes later may come after something that is not read this time
	p.collectWakes()
	p.collectRecords()
	slices.SortFunc(p.marks, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
	ready, _ := slices.BinarySearchFunc(p.marks, until, func(m mark, until int64) int { return cmp.Compare(m.at, until) })
	for _, m := range p.marks[:ready] {
		p.lives(m)
	}
	p.marks = slices.Delete(p.marks, 0, ready)
}

func (p *stillProcessor) collectWakes() {
	woken := p.woken.Load()
	missing := woken-p.read > mostWakes/2 // else none is written anew meanwhile
	if missing {
		p.read = woken - 1
	}
	for ; p.read < woken; p.read++ {
		p.marks = append(p.marks, mark{at: p.wakes[p.read%mostWakes].Load(), missing: missing})
	}
}

func (p *stillProcessor) collectRecords() {
	page := (*unix.PerfEventMmapPage)(unsafe.Pointer(&p.ring[0]))
	records := p.ring[os.Getpagesize():]
	word := func(at uint64) unsafe.Pointer { return unsafe.Pointer(&records[at%uint64(len(records))]) }
	tail := page.Data_tail // only this process changes it
	missing := false
	for head := atomic.LoadUint64(&page.Data_head); tail < head; {
		header := (*recordHeader)(word(tail))
		if header.kind == unix.PERF_RECORD_SAMPLE {
			p.marks = append(p.marks, mark{*(*int64)(word(tail + recordWord)), missing})
			missing = false
		} else {
			missing = true // some are lost, or the timer was throttled
		}
		tail += uint64(max(header.size, recordWord)) // never less
	}
	atomic.StoreUint64(&page.Data_tail, tail)
}

// lives: there was a sign of life.
func (p *stillProcessor) lives(m mark) {
	if due := p.latest + stillTick; p.latest != 0 && !m.missing && m.at-due >= leastStill {
		p.still = append(p.still, span{due, m.at})
	}
	p.latest = max(p.latest, m.at)
}

// known is the time up to which every stop has been found: one that lasts is after its end.
func (p *stillProcessor) known() int64 { return p.latest }

// watchedProcessors are those that this process may use.
func watchedProcessors() (all []*stillProcessor, err error) {
	numbers, err := clock.Processors()
	for _, number := range numbers {
		p, openErr := newStillProcessor(number)
		if openErr != nil {
			for _, p := range all {
				_ = p.close()
			}
			return nil, openErr // all have the same
		}
		all = append(all, p)
	}
	return all, err
}
