package podradio

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radio"
)

// CounterPage has one attachment's counters, in a mapped file. The kernel keeps it when the worker is killed at any
// instruction, at no cost per frame.
type CounterPage struct {
	// layout identifies the memory layout of the other fields.
	layout uint64
	Ledger radio.Ledger
	// RingDrops as last read from the kernel.
	RingDrops uint64
	// RingRestarted are the RingDrops while radiod was down.
	RingRestarted uint64
	// Reported are the frames lost in restarts that a gap in the results reports.
	Reported uint64
}

const counterPageSize = int(unsafe.Sizeof(CounterPage{}))

// CounterFile is a page and its mapped memory.
type CounterFile struct {
	*CounterPage
	mapped []byte
}

// OpenCounters opens the counters of an attachment at a path; fresh reports whether they are new.
func OpenCounters(path string) (b *CounterFile, fresh bool, err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, false, fmt.Errorf("counters: %w", err)
	}
	defer file.Close()
	// The space is allocated here, because on a full volume a write to the mapping would kill the process.
	if err := unix.Fallocate(int(file.Fd()), 0, 0, int64(counterPageSize)); err != nil {
		return nil, false, fmt.Errorf("counters %s: %w", path, err)
	}
	mapped, err := unix.Mmap(int(file.Fd()), 0, counterPageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, false, fmt.Errorf("counters %s: %w", path, err)
	}
	b = &CounterFile{(*CounterPage)(unsafe.Pointer(&mapped[0])), mapped} //nolint:gosec // a mapping begins at a page of the machine
	layout := radio.LedgerLayoutHash() + uint64(counterPageSize)
	if b.layout == layout {
		return b, false, nil
	}
	*b.CounterPage = CounterPage{layout: layout}
	return b, true, nil
}

// CountersInMemory are lost when the process ends.
func CountersInMemory() *CounterFile { return &CounterFile{CounterPage: &CounterPage{}} }

// KeepMappedFor keeps the memory mapped as long as anything, such as a frame under way, refers to the port.
func (b *CounterFile) KeepMappedFor(port *radio.Port) {
	if b.mapped != nil {
		runtime.AddCleanup(port, func(mapped []byte) { _ = unix.Munmap(mapped) }, b.mapped)
	}
}

// UnreportedLosses returns the frames lost in restarts that no gap reports yet.
func (b *CounterFile) UnreportedLosses() uint64 {
	return b.Ledger.Drops[radio.Restarted] + b.RingRestarted - b.Reported
}

func (b *CounterFile) setRingDrops(drops uint64) {
	if drops > atomic.LoadUint64(&b.RingDrops) {
		atomic.StoreUint64(&b.RingDrops, drops)
	}
}

// RingCounts returns the frames that found no room in the TAP's ring while radiod worked, and while it was down.
func (b *CounterFile) RingCounts() (drops, restarted uint64) {
	restarted = atomic.LoadUint64(&b.RingRestarted)
	return atomic.LoadUint64(&b.RingDrops) - restarted, restarted
}
