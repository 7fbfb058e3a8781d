package scenario

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

const (
	// minChunkLength keeps snapshots, with which chunks begin, rare in small scenarios.
	minChunkLength = 256 << 10
	// snapshotShare is the size of a full chunk as a multiple of its snapshot. It limits both the snapshots' share of
	// the file and the decoding for a moment.
	snapshotShare = 16
	// fullChunkLength is the length of a full chunk in any case.
	fullChunkLength = 32 << 20
)

// momentWriter writes events in the order of their times as chunks, in a temporary file or in memory.
type momentWriter struct {
	inMemory bool
	most     int64 // the most bytes of all chunks
	file     *os.File
	memory   []byte
	offset   int64
	packed   []byte

	index   index
	slots   []int32 // by platform: its slot + 1, 0 if it has none yet
	classes map[class]*staging
	// pathloss is the staging of nearly all events.
	pathloss *staging

	// at is the moment of the staged events.
	at     int64
	staged bool

	chunk       encoder
	first, last int64
	snapshot    int
}

// staging is the staging of a class: its state, and the events of the moment that is not encoded yet.
type staging struct {
	state
	number int // its number in the index, -1 until used
	pairs  []uint32
	staged []int64
	next   []int64
	marks  []bool
	keys   []int
}

func newMomentWriter(o Options) *momentWriter {
	return &momentWriter{inMemory: o.InMemory, most: o.MaxTemporary, classes: map[class]*staging{}, at: -1}
}

// add adds an event. Times must not decrease.
func (m *momentWriter) add(at int64, c class, from, to uint16, values *[maxWidth]int64) error {
	if at != m.at {
		if err := m.flush(); err != nil {
			return err
		}
		m.at = at
	}
	m.staged = true
	s, err := m.staging(c)
	if err != nil {
		return err
	}
	s.pairs = append(s.pairs, uint32(from)<<16|uint32(to))
	s.staged = append(s.staged, values[:s.kind.width()]...)
	return nil
}

func (m *momentWriter) staging(c class) (*staging, error) {
	if c.kind == pathloss && m.pathloss != nil {
		return m.pathloss, nil
	}
	s := m.classes[c]
	if s == nil {
		if len(m.classes) >= int(kinds)+maxFrequencies {
			return nil, fmt.Errorf("pathloss at %d Hz: want at most %d frequencies", c.frequencyHertz, maxFrequencies)
		}
		s = &staging{state: state{class: c}, number: -1}
		m.classes[c] = s
		if c.kind == pathloss {
			m.pathloss = s
		}
	}
	return s, nil
}

// flush encodes the staged moment.
func (m *momentWriter) flush() error {
	if !m.staged {
		return nil
	}
	m.staged = false
	if err := m.assignSlots(); err != nil {
		return err
	}
	m.assignNumbers()
	changes := 0
	for _, c := range m.index.classes {
		changes += m.classes[c].stage(m.slots, len(m.index.platforms))
	}
	if changes == 0 {
		return nil
	}
	m.index.moments++
	m.index.changes += int64(changes)
	if full := len(m.chunk.raw); full >= fullChunkLength || full >= max(minChunkLength, snapshotShare*m.snapshot) {
		if err := m.finishChunk(); err != nil {
			return err
		}
	}
	m.encode()
	return nil
}

// assignSlots assigns slots to new platforms, in the order of their numbers.
func (m *momentWriter) assignSlots() error {
	var fresh []int
	meet := func(platform uint32) {
		if n := int(platform) + 1 - len(m.slots); n > 0 {
			m.slots = append(m.slots, make([]int32, n)...)
		}
		if platform != 0 && m.slots[platform] == 0 {
			m.slots[platform] = -1
			fresh = append(fresh, int(platform))
		}
	}
	for _, s := range m.classes {
		for _, pair := range s.pairs {
			meet(pair >> 16)
			meet(pair & 0xffff)
		}
	}
	slices.Sort(fresh)
	for _, platform := range fresh {
		m.index.platforms = append(m.index.platforms, platform)
		m.slots[platform] = int32(len(m.index.platforms))
	}
	if n := len(m.index.platforms); n > MaxPlatforms {
		return fmt.Errorf("there are %d platforms: want at most %d", n, MaxPlatforms)
	}
	return nil
}

// assignNumbers assigns numbers to new classes.
func (m *momentWriter) assignNumbers() {
	var fresh []class
	for c, s := range m.classes {
		if s.number < 0 {
			fresh = append(fresh, c)
		}
	}
	slices.SortFunc(fresh, compareClasses)
	for _, c := range fresh {
		m.classes[c].number = len(m.index.classes)
		m.index.classes = append(m.index.classes, c)
	}
}

// stage collects the moment's events: next has the new values of the changed keys, ascending. It returns the number of changed values.
func (s *staging) stage(slots []int32, platforms int) int {
	s.grow(platforms)
	if n := len(s.values); n > len(s.next) {
		s.next = append(s.next, make([]int64, n-len(s.next))...)
		s.marks = append(s.marks, make([]bool, len(s.known)-len(s.marks))...)
	}
	width := s.kind.width()
	touched := s.keys[:0]
	for i, pair := range s.pairs {
		key := int(slots[pair>>16]) - 1
		if s.kind.pairs() {
			key = pairKey(key, int(slots[pair&0xffff])-1)
		}
		copy(s.next[key*width:(key+1)*width], s.staged[i*width:])
		if !s.marks[key] {
			s.marks[key] = true
			touched = append(touched, key)
		}
	}
	s.pairs, s.staged = s.pairs[:0], s.staged[:0]
	s.keys = s.changed(touched)
	return len(s.keys) * width
}

// changed returns the touched keys whose value changes, in ascending order.
func (s *staging) changed(touched []int) []int {
	if !slices.IsSorted(touched) {
		if len(touched) < len(s.marks)/16 {
			slices.Sort(touched)
		} else {
			touched = touched[:0]
			for key, marked := range s.marks {
				if marked {
					touched = append(touched, key)
				}
			}
		}
	}
	width, kept := s.kind.width(), touched[:0]
	for _, key := range touched {
		s.marks[key] = false
		if !s.known[key] || !slices.Equal(s.next[key*width:(key+1)*width], s.values[key*width:(key+1)*width]) {
			kept = append(kept, key)
		}
	}
	return kept
}

// apply applies the staged changes to the state.
func (s *staging) apply() {
	width := s.kind.width()
	for _, key := range s.keys {
		s.known[key] = true
		copy(s.values[key*width:(key+1)*width], s.next[key*width:])
	}
	s.keys = s.keys[:0]
}

// encode encodes the staged moment: as a snapshot if the chunk is empty, else as the difference to the moment before.
func (m *momentWriter) encode() {
	isSnapshot := len(m.chunk.raw) == 0
	if isSnapshot {
		m.first, m.last = m.at, m.at
	}
	m.chunk.raw = binary.AppendUvarint(m.chunk.raw, uint64(m.at-m.last))
	m.last = m.at
	m.chunk.raw = append(m.chunk.raw, 0)
	count := len(m.chunk.raw) - 1
	for _, c := range m.index.classes {
		s := m.classes[c]
		old := s.values
		if isSnapshot {
			s.apply()
			s.keys, old = s.allKeys(), nil
			copy(s.next, s.values)
		}
		m.chunk.raw[count] += byte(m.chunk.appendMoment(s.number, &s.state, s.keys, s.next, old))
		s.apply()
	}
	if isSnapshot {
		m.snapshot = len(m.chunk.raw)
	}
}

func (s *staging) allKeys() []int {
	keys := s.keys[:0]
	for key, known := range s.known {
		if known {
			keys = append(keys, key)
		}
	}
	return keys
}

// finishChunk compresses the chunk and keeps it.
func (m *momentWriter) finishChunk() error {
	if len(m.chunk.raw) == 0 {
		return nil
	}
	if len(m.chunk.raw) > maxChunkLength {
		return fmt.Errorf("one moment takes %d bytes: want at most %d", len(m.chunk.raw), maxChunkLength)
	}
	if err := m.pack(m.chunk.raw); err != nil {
		return err
	}
	if err := m.keep(m.packed); err != nil {
		return fmt.Errorf("keep a part of the scenario until it is complete: %w", err)
	}
	m.index.chunks = append(m.index.chunks, chunk{
		length: len(m.packed), raw: len(m.chunk.raw), checksum: crc32.Checksum(m.packed, castagnoli), first: m.first, last: m.last,
	})
	m.offset += int64(len(m.packed))
	m.chunk.raw = m.chunk.raw[:0]
	return sizeError(m.offset, m.most)
}

func (m *momentWriter) keep(packed []byte) (err error) {
	if m.inMemory {
		m.memory = append(m.memory, packed...)
		return nil
	}
	if m.file == nil {
		if m.file, err = UnnamedFile(); err != nil {
			return err
		}
	}
	_, err = m.file.Write(packed)
	return err
}

// encoders are shared, as each has some MiB and a scenario's movements have many writers.
var encoders sync.Pool

func (m *momentWriter) pack(raw []byte) error {
	encoder, had := encoders.Get().(*zstd.Encoder)
	if !had {
		var err error
		// One goroutine, and a fixed window, as bytes and memory must not depend on the machine.
		encoder, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault),
			zstd.WithWindowSize(1<<20), zstd.WithEncoderCRC(false))
		if err != nil {
			return err
		}
	}
	defer encoders.Put(encoder)
	m.packed = encoder.EncodeAll(raw, m.packed[:0])
	return nil
}

// UnnamedFile returns a temporary file that vanishes when it is closed, or its program ends.
func UnnamedFile() (*os.File, error) {
	file, err := os.CreateTemp("", "vignette-scenario-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// finish encodes the last moment and chunk.
func (m *momentWriter) finish() error {
	if err := m.flush(); err != nil {
		return err
	}
	return m.finishChunk()
}

// copyTo writes the complete compiled form to w.
func (m *momentWriter) copyTo(w io.Writer, duration time.Duration) error {
	if _, err := w.Write(header(m.index.version())); err != nil {
		return err
	}
	if m.file != nil {
		if _, err := io.Copy(w, io.NewSectionReader(m.file, 0, m.offset)); err != nil {
			return err
		}
	}
	if _, err := w.Write(m.memory); err != nil {
		return err
	}
	m.index.duration = duration
	raw := m.index.encode()
	if len(raw) > maxIndexLength {
		return fmt.Errorf("the index takes %d bytes: want at most %d", len(raw), maxIndexLength)
	}
	if err := m.pack(raw); err != nil {
		return err
	}
	foot := footer{offset: headerLength + m.offset, length: len(m.packed), raw: len(raw), checksum: crc32.Checksum(m.packed, castagnoli)}
	if _, err := w.Write(m.packed); err != nil {
		return err
	}
	_, err := w.Write(foot.encode())
	return err
}

func (m *momentWriter) close() error {
	m.memory = nil
	if m.file == nil {
		return nil
	}
	file := m.file
	m.file = nil
	return file.Close()
}
