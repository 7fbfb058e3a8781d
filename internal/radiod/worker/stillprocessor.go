package worker

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
)

// stillTick in nanoseconds is how often a processor's timer fires. A stop is seen from the first time on at which it did not, so that up to so much
// of its length is not counted.
const stillTick = int64(2e6)

// stillProcessor finds when one processor stood still, by a timer of the kernel (perf_event_open(2), PERF_COUNT_SW_CPU_CLOCK) which writes down when it
// fires, in the interrupt and so whatever the processor has to do. Where it did not fire in time, the processor did nothing at all. What else keeps
// a processor from its interrupts is short, or as bad: firmware, or the kernel with interrupts disabled.
type stillProcessor struct {
	number int
	event  int
	ring   []byte // what perf_event_open(2) maps: a page of its own, then ringPages of records
	// latest time at which the timer fired of those that have been read, 0 before the first.
	latest int64
	// still are the stops that have been read.
	still []span
}

// ringPages have room for 8 s of records of 16 bytes, which are read once a second.
const ringPages = 16

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
		Sample: uint64(stillTick), Sample_type: unix.PERF_SAMPLE_TIME, Bits: unix.PerfBitUseClockID | unix.PerfBitWatermark, Wakeup: 1 << 30, Clockid: unix.CLOCK_MONOTONIC}
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

func (p *stillProcessor) close() error { return errors.Join(unix.Munmap(p.ring), unix.Close(p.event)) }

// collect what the timer has written down.
func (p *stillProcessor) collect() {
	page := (*unix.PerfEventMmapPage)(unsafe.Pointer(&p.ring[0]))
	records := p.ring[os.Getpagesize():]
	word := func(at uint64) unsafe.Pointer { return unsafe.Pointer(&records[at%uint64(len(records))]) }
	tail := page.Data_tail // only this process changes it
	for head := atomic.LoadUint64(&page.Data_head); tail < head; {
		header := (*recordHeader)(word(tail))
		if header.kind == unix.PERF_RECORD_SAMPLE {
			p.fired(*(*int64)(word(tail + recordWord)))
		} else {
			p.latest = 0 // some are lost, or the timer was throttled
		}
		tail += uint64(max(header.size, recordWord)) // never less
	}
	atomic.StoreUint64(&page.Data_tail, tail)
}

// fired is a time at which the timer did.
func (p *stillProcessor) fired(at int64) {
	if due := p.latest + stillTick; p.latest != 0 && at-due >= leastStill {
		p.still = append(p.still, span{due, at})
	}
	p.latest = at
}

// known is the time up to which every stop has been read: one that lasts is read after its end.
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
