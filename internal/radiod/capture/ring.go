package capture

import (
	"encoding/binary"
	"sync/atomic"
)

// ring passes frames from one thread, which never waits, to one goroutine. Both positions only grow.
type ring struct {
	buffer []byte // a power of two
	head   atomic.Uint64
	_      [56]byte // head and tail are written by two processors, so they are in separate cache lines
	tail   atomic.Uint64
}

// entryHeader precedes a frame's bytes: their number, its length on the wire and its direction, its tap, and
// its time.
const (
	entryHeader = 24
	// skip instead of the number means that the next entry is at the ring's beginning.
	skip    = 1<<32 - 1
	outward = 1 << 31
)

func newRing(bytes int) *ring {
	size := 4096
	for size < bytes {
		size *= 2
	}
	return &ring{buffer: make([]byte, size)}
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
	return true
}

// ringFrame is a frame from the ring; data is valid until the next one.
type ringFrame struct {
	tap        uint32
	out        bool
	stamp      int64
	wireLength int
	data       []byte
}

// drain calls f for all frames that are in the ring now.
func (r *ring) drain(f func(ringFrame)) {
	size := uint64(len(r.buffer))
	for tail, head := r.tail.Load(), r.head.Load(); tail != head; {
		at := tail & (size - 1)
		e := r.buffer[at:]
		keep := binary.LittleEndian.Uint32(e)
		if keep == skip {
			tail += size - at
			r.tail.Store(tail)
			continue
		}
		length := binary.LittleEndian.Uint32(e[4:])
		f(ringFrame{tap: binary.LittleEndian.Uint32(e[8:]), out: length&outward != 0, stamp: int64(binary.LittleEndian.Uint64(e[16:])),
			wireLength: int(length &^ outward), data: e[entryHeader : entryHeader+keep]})
		tail += uint64(entryHeader+keep+7) &^ 7
		r.tail.Store(tail)
	}
}

// Tap copies each frame that passes one port.
type Tap struct {
	ring      *ring
	id        uint32
	keep      int
	monotonic func() int64
	sinks     []sink
	// full counts frames that found no room in the ring; accounted is how many of them captures have counted.
	full    atomic.Uint64
	counted uint64
}

// sink is a capture that a tap feeds.
type sink struct {
	stream *stream
	filter *Filter
	keep   int
	limit  int64
}

// Frame takes a frame; out reports whether the node sent it. One thread at a time may call it. It neither
// blocks nor allocates.
func (t *Tap) Frame(out bool, data []byte) { t.FrameAt(t.monotonic(), out, data) }

// FrameAt is Frame for a frame of an earlier time, in nanoseconds of the monotonic clock.
func (t *Tap) FrameAt(monotonicNanoseconds int64, out bool, data []byte) {
	if !t.ring.push(t.id, out, monotonicNanoseconds, data, min(len(data), t.keep)) {
		t.full.Add(1)
	}
}

// Miss counts frames of the port that nobody could pass here, as those without room in the ring.
func (t *Tap) Miss(frames uint64) { t.full.Add(frames) }
