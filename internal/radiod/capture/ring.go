package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radiod/mapped"
	"vignette.dev/vignette/internal/radiod/state"
)

// ring passes frames from one thread, which never waits, to one goroutine. It lies in a mapped file, so the next worker
// finds what a killed one left. Positions only grow.
type ring struct {
	*ringHeader
	buffer []byte // a power of two
	read   uint64 // position up to which drain has passed frames
}

// ringHeader begins the file.
type ringHeader struct {
	// layout of the file, with the buffer's size.
	layout uint64
	// boot is the kernel's boot in which the file was made.
	boot [bootLength]byte
	// offset from the monotonic to the real-time clock.
	offset atomic.Int64
	_      [8]byte
	head   atomic.Uint64
	_      [56]byte // head and tail are written by two processors, so they are in separate cache lines
	tail   atomic.Uint64
	_      [56]byte
	taps   [maxTaps]tapState
}

// tapState is what the file has of a tap besides its frames.
type tapState struct {
	// full counts frames that found no room.
	full atomic.Uint64
	// written is the position up to which captures have the tap's frames.
	written atomic.Uint64
}

const (
	// layoutVersion changes with the meaning of anything in the file.
	layoutVersion = 2
	// maxTaps of a network at a time.
	maxTaps       = 4096
	smallestRing  = 4096
	bootLength    = 40
	ringHeaderLen = int(unsafe.Sizeof(ringHeader{}))
)

// entryHeader precedes a frame's bytes: their number, its length on the wire and its direction, its tap, and
// its time.
const (
	entryHeader = 24
	// skip instead of the number means that the next entry is at the ring's beginning.
	skip    = 1<<32 - 1
	outward = 1 << 31
)

// newRing makes an empty ring in a file.
func newRing(path string, bytes int) (*ring, error) {
	size := smallestRing
	for size < bytes {
		size *= 2
	}
	r, err := mapRing(path, size)
	if err != nil {
		return nil, err
	}
	if r.boot, err = currentBoot(); err != nil {
		return nil, err
	}
	r.layout = layoutOf(size)
	return r, nil
}

// currentBoot returns the ID of the kernel's boot.
func currentBoot() (id [bootLength]byte, err error) {
	text, err := state.Boot()
	copy(id[:], text)
	return id, err
}

// reopenRing opens the ring that an earlier worker left.
func reopenRing(path string) (*ring, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	size := int(info.Size()) - ringHeaderLen
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
	case r.layout != layoutOf(size):
		return nil, errOtherRelease
	case r.boot != boot:
		return nil, errOtherBoot
	}
	return r, nil
}

var (
	errOtherRelease = errors.New("ring: another release of radiod made it")
	errOtherBoot    = errors.New("ring: the host was rebooted since")
)

func layoutOf(size int) uint64 { return uint64(size)<<32 | layoutVersion<<24 | uint64(ringHeaderLen) } //nolint:gosec // positive

func mapRing(path string, size int) (*ring, error) {
	memory, err := mapped.Open(path, ringHeaderLen+size)
	if err != nil {
		return nil, err
	}
	r := &ring{ringHeader: (*ringHeader)(unsafe.Pointer(&memory[0])), buffer: memory[ringHeaderLen:]} //nolint:gosec // a mapping begins at a page of the machine
	r.read = r.tail.Load()
	runtime.AddCleanup(r, func(memory []byte) { _ = unix.Munmap(memory) }, memory)
	return r, nil
}

// push copies the first keep bytes of a frame, and reports whether there was room.
func (r *ring) push(tap uint32, out bool, monotonicNanoseconds int64, data []byte, keep int) bool {
	size, need := uint64(len(r.buffer)), uint64(entryHeader+keep+7)&^7
	head := r.head.Load()
	at := head & (size - 1)
	unused := uint64(0)
	if size-at < need {
		unused = size - at
	}
	if head+unused+need-r.tail.Load() > size {
		return false
	}
	if unused > 0 {
		binary.LittleEndian.PutUint32(r.buffer[at:], skip)
		at = 0
	}
	length := uint32(len(data))
	if out {
		length |= outward
	}
	e := r.buffer[at : at+need]
	binary.LittleEndian.PutUint32(e, uint32(keep))
	binary.LittleEndian.PutUint32(e[4:], length)
	binary.LittleEndian.PutUint32(e[8:], tap)
	binary.LittleEndian.PutUint64(e[16:], uint64(monotonicNanoseconds))
	copy(e[entryHeader:], data[:keep])
	r.head.Store(head + unused + need)
	runtime.KeepAlive(r) // the memory is unmapped after it
	return true
}

// ringFrame is a frame from the ring, at a position; data is valid until free.
type ringFrame struct {
	position   uint64
	tap        uint32
	out        bool
	stamp      int64
	wireLength int
	data       []byte
}

// drain calls f for the frames before the position head, until they took most bytes. Their room is taken until free. An
// error says what is wrong in the file.
func (r *ring) drain(head, most uint64, f func(ringFrame)) error {
	size := uint64(len(r.buffer))
	if r.read%8 != 0 || head%8 != 0 || head-r.read > size {
		return fmt.Errorf("ring: %d bytes from %d to %d: want multiples of 8 and at most %d", head-r.read, r.read, head, size)
	}
	for first := r.read; r.read != head && r.read-first < most; {
		at := r.read & (size - 1)
		e := r.buffer[at:min(size, at+head-r.read)]
		keep := uint64(binary.LittleEndian.Uint32(e))
		if keep == skip && at > 0 && uint64(len(e)) == size-at {
			r.read += size - at
			continue
		}
		if uint64(len(e)) < entryHeader+keep {
			return fmt.Errorf("ring: a frame of %d bytes at %d: want at most %d bytes with its header", keep, r.read, len(e))
		}
		length, tap := binary.LittleEndian.Uint32(e[4:]), binary.LittleEndian.Uint32(e[8:])
		if wire := uint64(length &^ outward); wire == 0 || wire < keep || tap >= maxTaps {
			return fmt.Errorf("ring: %d of %d bytes of a frame of tap %d at %d: want some, and a tap below %d", keep, wire, tap, r.read, maxTaps)
		}
		f(ringFrame{position: r.read, tap: tap, out: length&outward != 0, stamp: int64(binary.LittleEndian.Uint64(e[16:])),
			wireLength: int(length &^ outward), data: e[entryHeader : entryHeader+keep]})
		r.read += (entryHeader + keep + 7) &^ 7
	}
	return nil
}

// free frees the room of all frames that drain has passed.
func (r *ring) free() { r.tail.Store(r.read) }

// Tap copies each frame that passes one port.
type Tap struct {
	ring *ring
	id   uint32
	// name of the tap among all that ever were.
	name      string
	keep      int
	monotonic func() int64
	sinks     []sink
}

// state of the tap in its ring.
func (t *Tap) state() *tapState { return &t.ring.taps[t.id] }

// Frame takes a frame; out reports whether the node sent it. One thread at a time may call it. It neither
// blocks nor allocates.
func (t *Tap) Frame(out bool, data []byte) { t.FrameAt(t.monotonic(), out, data) }

// FrameAt is Frame for a frame of an earlier time, in nanoseconds of the monotonic clock.
func (t *Tap) FrameAt(monotonicNanoseconds int64, out bool, data []byte) {
	if !t.ring.push(t.id, out, monotonicNanoseconds, data, min(len(data), t.keep)) {
		t.Miss(1)
	}
}

// Miss counts frames of the port that nobody could pass here, as those without room in the ring.
func (t *Tap) Miss(frames uint64) { t.state().full.Add(frames) }

// countDropped counts the frames without room in the ring as dropped. A filter might not have kept them.
func (t *Tap) countDropped() {
	full := t.state().full.Load()
	for i := range t.sinks {
		t.sinks[i].stream.countRingFull(t.name, full)
	}
}

// forget removes what the records of captures have of a tap whose file is removed.
func (t *Tap) forget() {
	for i := range t.sinks {
		t.sinks[i].stream.forgetTap(t.name)
	}
}

// flush writes what captures have taken of the tap, up to a position.
func (t *Tap) flush(position uint64) {
	for i := range t.sinks {
		s := t.sinks[i].stream
		s.mu.Lock()
		s.flush()
		s.mu.Unlock()
	}
	t.state().written.Store(position)
}

func (t *Tap) feeds(s *stream) bool {
	return t != nil && slices.ContainsFunc(t.sinks, func(x sink) bool { return x.stream == s })
}
