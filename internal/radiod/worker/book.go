package worker

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radio"
)

// page has one attachment's counters, in a mapped file. The kernel keeps it when the worker is killed at any
// instruction, at no cost per frame.
type page struct {
	// layout identifies the memory layout of the other fields.
	layout uint64
	ledger radio.Ledger
	// ringDrops as last read from the kernel.
	ringDrops uint64
	// ringRestarted are the ringDrops while radiod was down.
	ringRestarted uint64
	// reported are the frames lost in restarts that a gap in the results reports.
	named uint64
}

const pageSize = int(unsafe.Sizeof(page{}))

// book is a page and its mapped memory.
type book struct {
	*page
	mapped []byte
}

// openBook opens an attachment's counters; fresh reports whether they are new.
func (s store) openBook(name string) (b *book, fresh bool, err error) {
	file, err := os.OpenFile(s.bookPath(name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, false, fmt.Errorf("counters of %s: %w", name, err)
	}
	defer file.Close()
	// The space is allocated here, because on a full volume a write to the mapping would kill the process.
	if err := unix.Fallocate(int(file.Fd()), 0, 0, int64(pageSize)); err != nil {
		return nil, false, fmt.Errorf("counters of %s: %w", name, err)
	}
	mapped, err := unix.Mmap(int(file.Fd()), 0, pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, false, fmt.Errorf("counters of %s: %w", name, err)
	}
	b = &book{(*page)(unsafe.Pointer(&mapped[0])), mapped} //nolint:gosec // a mapping begins at a page of the machine
	layout := radio.LedgerLayoutHash() + uint64(pageSize)
	if b.layout == layout {
		return b, false, nil
	}
	*b.page = page{layout: layout}
	return b, true, nil
}

// bookOf opens an attachment's counters. If that fails it returns memory that a kill would lose, so that the
// node still gets its radio.
func (m *Manager) bookOf(id string) (b *book, fresh bool) {
	b, fresh, err := m.store.openBook(id)
	if err != nil {
		m.Log.Error("this attachment's counters will not outlive the worker", "error", err)
		return &book{page: &page{}}, true
	}
	return b, fresh
}

// keepFor keeps the memory mapped as long as anything, such as a frame under way, refers to the port.
func (b *book) keepFor(port *radio.Port) {
	if b.mapped != nil {
		runtime.AddCleanup(port, func(mapped []byte) { _ = unix.Munmap(mapped) }, b.mapped)
	}
}

// lost returns the frames lost in restarts that no gap reports yet.
func (b *book) lost() uint64 { return b.ledger.Drops[radio.Restarted] + b.ringRestarted - b.named }

// rings returns the frames that found no room in the TAP's ring while radiod worked, and while it was down.
func (b *book) rings() (drops, restarted uint64) {
	return b.ringDrops - b.ringRestarted, b.ringRestarted
}

func (s store) bookPath(name string) string { return s.path(bookFiles, name) }

func (s store) removeBook(name string) error {
	if err := os.Remove(s.bookPath(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("counters of %s: %w", name, err)
	}
	return nil
}
