package dataplane

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/mapped"
)

// CounterPage has one attachment's counters, in a mapped file. The kernel keeps it when a process is killed at any
// instruction, at no cost per frame.
type CounterPage struct {
	// layout identifies the memory layout of the other fields.
	layout uint64
	// Ledger in which the data plane counts. The fields after it are the worker's.
	Ledger radio.Ledger
	// RingDrops as last read from the kernel.
	RingDrops uint64
	// RingRestarted are the RingDrops while radiod was down.
	RingRestarted uint64
	// Reported are the frames lost in restarts that a gap in the results reports.
	Reported uint64
}

const counterPageSize = int(unsafe.Sizeof(CounterPage{}))

// CounterFile is a page in mapped memory, which must not be used after the CounterFile is unreachable.
type CounterFile struct {
	*CounterPage
	// Path of the file; empty for memory that ends with the process.
	Path string
}

// OpenCounters maps an attachment's counters; fresh reports whether they are new.
func OpenCounters(path string) (c *CounterFile, fresh bool, err error) {
	memory, err := mapped.Open(path, counterPageSize)
	if err != nil {
		return nil, false, fmt.Errorf("counters: %w", err)
	}
	c = &CounterFile{(*CounterPage)(unsafe.Pointer(&memory[0])), path} //nolint:gosec // a mapping begins at a page of the machine
	runtime.AddCleanup(c, func(memory []byte) { _ = unix.Munmap(memory) }, memory)
	layout := radio.LedgerLayoutHash() + uint64(counterPageSize)
	if c.layout == layout {
		return c, false, nil
	}
	*c.CounterPage = CounterPage{layout: layout}
	return c, true, nil
}

// CountersInMemory are lost when the process ends.
func CountersInMemory() *CounterFile { return &CounterFile{CounterPage: &CounterPage{}} }

// UnreportedLosses returns the frames lost in restarts that no gap reports yet.
func (p *CounterPage) UnreportedLosses() uint64 {
	return p.Ledger.Drops[radio.Restarted] + p.RingRestarted - p.Reported
}

// SetRingDrops notes what the kernel has counted; it never goes back.
func (p *CounterPage) SetRingDrops(drops uint64) {
	if drops > atomic.LoadUint64(&p.RingDrops) {
		atomic.StoreUint64(&p.RingDrops, drops)
	}
}

// RingCounts returns the frames that found no room in the TAP's ring while radiod worked, and while it was down.
func (p *CounterPage) RingCounts() (drops, restarted uint64) {
	restarted = atomic.LoadUint64(&p.RingRestarted)
	return atomic.LoadUint64(&p.RingDrops) - restarted, restarted
}

// keepFor keeps the memory mapped as long as anything, such as a frame under way, refers to the port.
func (c *CounterFile) keepFor(p *radio.Port) {
	runtime.AddCleanup(p, func(c *CounterFile) { runtime.KeepAlive(c) }, c)
}
