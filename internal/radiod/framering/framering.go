// Package framering passes frames from the thread of a network's loop to the captures, through a ring in a mapped file. So the
// two may be different processes, and either may be killed.
package framering

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radiod/mapped"
	"vignette.dev/vignette/internal/radiod/state"
)

// Ring passes frames from one thread, which never waits, to one goroutine. It lies in a mapped file, so the next worker
// finds what a killed one left. Positions only grow.
type Ring struct {
	*Header
	// Path of the file.
	Path   string
	Buffer []byte // a power of two
	Read   uint64 // position up to which Drain has passed frames
}

// Header begins the file.
type Header struct {
	// Layout of the file, with the buffer's size.
	Layout uint64
	// Boot is the kernel's boot in which the file was made.
	Boot [bootLength]byte
	// Offset from the monotonic to the real-time clock.
	Offset atomic.Int64
	_      [8]byte
	Head   atomic.Uint64
	_      [56]byte // head and tail are written by two processors, so they are in separate cache lines
	Tail   atomic.Uint64
	_      [56]byte
	Taps   [MaxTaps]TapState
}

// TapState is what the file has of a tap besides its frames.
type TapState struct {
	// Full counts frames that found no room.
	Full atomic.Uint64
	// Written is the position up to which captures have the tap's frames.
	Written atomic.Uint64
}

const (
	// layoutVersion changes with the meaning of anything in the file.
	layoutVersion = 2
	// MaxTaps of a network at a time.
	MaxTaps      = 4096
	smallestRing = 4096
	bootLength   = 40
	headerLength = int(unsafe.Sizeof(Header{}))
)

// entryHeader precedes a frame's bytes: their number, its length on the wire and its direction, its tap, and
// its time.
const (
	entryHeader = 24
	// skip instead of the number means that the next entry is at the ring's beginning.
	skip    = 1<<32 - 1
	outward = 1 << 31
)

// New makes an empty ring in a file.
func New(path string, bytes int) (*Ring, error) {
	size := smallestRing
	for size < bytes {
		size *= 2
	}
	r, err := mapRing(path, size)
	if err != nil {
		return nil, err
	}
	if r.Boot, err = currentBoot(); err != nil {
		return nil, err
	}
	r.Layout = layoutOf(size)
	return r, nil
}

// currentBoot returns the ID of the kernel's boot.
func currentBoot() (id [bootLength]byte, err error) {
	text, err := state.Boot()
	copy(id[:], text)
	return id, err
}

// Open opens the ring that an earlier worker left.
func Open(path string) (*Ring, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	size := int(info.Size()) - headerLength
	if size < smallestRing || size&(size-1) != 0 {
		return nil, errOtherRelease
	}
	r, err := mapRing(path, size)
	if err != nil {
		return nil, err
	}
	boot, err := currentBoot()
	switch {
	case err != nil:
		return nil, err
	case r.Layout != layoutOf(size):
		return nil, errOtherRelease
	case r.Boot != boot:
		return nil, errOtherBoot
	}
	return r, nil
}

var (
	errOtherRelease = errors.New("ring: another release of radiod made it")
	errOtherBoot    = errors.New("ring: the host was rebooted since")
)

func layoutOf(size int) uint64 { return uint64(size)<<32 | layoutVersion<<24 | uint64(headerLength) } //nolint:gosec // positive

func mapRing(path string, size int) (*Ring, error) {
	memory, err := mapped.Open(path, headerLength+size)
	if err != nil {
		return nil, err
	}
	r := &Ring{Path: path, Header: (*Header)(unsafe.Pointer(&memory[0])), Buffer: memory[headerLength:]} //nolint:gosec // a mapping begins at a page of the machine
	r.Read = r.Tail.Load()
	runtime.AddCleanup(r, func(memory []byte) { _ = unix.Munmap(memory) }, memory)
	return r, nil
}

// Push copies the first keep bytes of a frame, and reports whether there was room.
func (r *Ring) Push(tap uint32, out bool, monotonicNanoseconds int64, data []byte, keep int) bool {
	size, need := uint64(len(r.Buffer)), uint64(entryHeader+keep+7)&^7
	head := r.Head.Load()
	at := head & (size - 1)
	unused := uint64(0)
	if size-at < need {
		unused = size - at
	}
	if head+unused+need-r.Tail.Load() > size {
		return false
	}
	if unused > 0 {
		binary.LittleEndian.PutUint32(r.Buffer[at:], skip)
		at = 0
	}
	length := uint32(len(data))
	if out {
		length |= outward
	}
	e := r.Buffer[at : at+need]
	binary.LittleEndian.PutUint32(e, uint32(keep))
	binary.LittleEndian.PutUint32(e[4:], length)
	binary.LittleEndian.PutUint32(e[8:], tap)
	binary.LittleEndian.PutUint64(e[16:], uint64(monotonicNanoseconds))
	copy(e[entryHeader:], data[:keep])
	r.Head.Store(head + unused + need)
	runtime.KeepAlive(r) // the memory is unmapped after it
	return true
}

// Frame is a frame from the ring, at a position; Data is valid until Free.
type Frame struct {
	Position   uint64
	Tap        uint32
	Out        bool
	Stamp      int64
	WireLength int
	Data       []byte
}

// Drain calls f for the frames before the position head, until they took most bytes. Their room is taken until Free. An
// error says what is wrong in the file.
func (r *Ring) Drain(head, most uint64, f func(Frame)) error {
	size := uint64(len(r.Buffer))
	if r.Read%8 != 0 || head%8 != 0 || head-r.Read > size {
		return fmt.Errorf("ring: %d bytes from %d to %d: want multiples of 8 and at most %d", head-r.Read, r.Read, head, size)
	}
	for first := r.Read; r.Read != head && r.Read-first < most; {
		at := r.Read & (size - 1)
		e := r.Buffer[at:min(size, at+head-r.Read)]
		keep := uint64(binary.LittleEndian.Uint32(e))
		if keep == skip && at > 0 && uint64(len(e)) == size-at {
			r.Read += size - at
			continue
		}
		if uint64(len(e)) < entryHeader+keep {
			return fmt.Errorf("ring: a frame of %d bytes at %d: want at most %d bytes with its header", keep, r.Read, len(e))
		}
		length, tap := binary.LittleEndian.Uint32(e[4:]), binary.LittleEndian.Uint32(e[8:])
		if wire := uint64(length &^ outward); wire == 0 || wire < keep || tap >= MaxTaps {
			return fmt.Errorf("ring: %d of %d bytes of a frame of tap %d at %d: want some, and a tap below %d", keep, wire, tap, r.Read, MaxTaps)
		}
		f(Frame{Position: r.Read, Tap: tap, Out: length&outward != 0, Stamp: int64(binary.LittleEndian.Uint64(e[16:])),
			WireLength: int(length &^ outward), Data: e[entryHeader : entryHeader+keep]})
		r.Read += (entryHeader + keep + 7) &^ 7
	}
	return nil
}

// Free frees the room of all frames that Drain has passed.
func (r *Ring) Free() { r.Tail.Store(r.Read) }

// Pass is Push, and counts a frame without room.
func (r *Ring) Pass(t Tap, out bool, monotonicNanoseconds int64, data []byte) {
	if !r.Push(t.ID, out, monotonicNanoseconds, data, min(len(data), t.Keep)) {
		r.Taps[t.ID].Full.Add(1)
	}
}

// Tap is what takes the frames of one port, for any process.
type Tap struct {
	// Path of the ring's file, and ID of the tap in it.
	Path string
	ID   uint32
	// Keep bytes of each frame at most.
	Keep int
}
