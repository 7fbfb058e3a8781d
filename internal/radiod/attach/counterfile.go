package attach

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/state"
)

// attachmentFiles and counterFiles are kinds of files in the state folder. Counters are not JSON, despite their names.
const (
	attachmentFiles = "attachments"
	counterFiles    = "counters"
)

// counterPage has one attachment's counters, in a mapped file. The kernel keeps it when the worker is killed at any
// instruction, at no cost per frame.
type counterPage struct {
	// layout identifies the memory layout of the other fields.
	layout uint64
	Ledger radio.Ledger
	// ringDrops as last read from the kernel.
	ringDrops uint64
	// ringRestarted are the ringDrops while radiod was down.
	ringRestarted uint64
	// reported are the frames lost in restarts that a gap in the results reports.
	reported uint64
}

const counterPageSize = int(unsafe.Sizeof(counterPage{}))

// CounterFile is a page and its mapped memory.
type CounterFile struct {
	*counterPage
	mapped []byte
}

// openCounters opens an attachment's counters; fresh reports whether they are new.
func openCounters(folder state.Folder, name string) (b *CounterFile, fresh bool, err error) {
	path, err := folder.Path(counterFiles, name)
	if err != nil {
		return nil, false, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, false, fmt.Errorf("counters of %s: %w", name, err)
	}
	defer file.Close()
	// The space is allocated here, because on a full volume a write to the mapping would kill the process.
	if err := unix.Fallocate(int(file.Fd()), 0, 0, int64(counterPageSize)); err != nil {
		return nil, false, fmt.Errorf("counters of %s: %w", name, err)
	}
	mapped, err := unix.Mmap(int(file.Fd()), 0, counterPageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, false, fmt.Errorf("counters of %s: %w", name, err)
	}
	b = &CounterFile{(*counterPage)(unsafe.Pointer(&mapped[0])), mapped} //nolint:gosec // a mapping begins at a page of the machine
	layout := radio.LedgerLayoutHash() + uint64(counterPageSize)
	if b.layout == layout {
		return b, false, nil
	}
	*b.counterPage = counterPage{layout: layout}
	return b, true, nil
}

// openCountersOf opens an attachment's counters. If that fails it returns memory that a kill would lose, so that the
// node still gets its radio.
func (m *Attachments) openCountersOf(id string) (b *CounterFile, fresh bool) {
	b, fresh, err := openCounters(m.Folder, id)
	if err != nil {
		m.Log.Error("this attachment's counters will not outlive the worker", "error", err)
		return &CounterFile{counterPage: &counterPage{}}, true
	}
	return b, fresh
}

// KeepMappedFor keeps the memory mapped as long as anything, such as a frame under way, refers to the port.
func (b *CounterFile) KeepMappedFor(port *radio.Port) {
	if b.mapped != nil {
		runtime.AddCleanup(port, func(mapped []byte) { _ = unix.Munmap(mapped) }, b.mapped)
	}
}

// unreportedLosses returns the frames lost in restarts that no gap reports yet.
func (b *CounterFile) unreportedLosses() uint64 {
	return b.Ledger.Drops[radio.Restarted] + b.ringRestarted - b.reported
}

func (b *CounterFile) setRingDrops(drops uint64) {
	if drops > atomic.LoadUint64(&b.ringDrops) {
		atomic.StoreUint64(&b.ringDrops, drops)
	}
}

// RingCounts returns the frames that found no room in the TAP's ring while radiod worked, and while it was down.
func (b *CounterFile) RingCounts() (drops, restarted uint64) {
	restarted = atomic.LoadUint64(&b.ringRestarted)
	return atomic.LoadUint64(&b.ringDrops) - restarted, restarted
}
