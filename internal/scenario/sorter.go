package scenario

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/klauspost/compress/s2"
)

// event sets one value at one time.
type event struct {
	at       int64
	class    class
	from, to uint16
	values   [maxWidth]int64
}

// sorter sorts events by time, and keeps the order of equal times. It has at most limit events in memory: sorted runs of
// events go to a temporary file and are merged.
type sorter struct {
	limit   int
	most    int64 // the most bytes of the file
	classes []class
	known   map[class]int

	records []record
	values  []int64

	file *os.File
	end  int64
	runs []run
}

// record is an event in memory.
type record struct {
	at       int64
	class    uint32
	from, to uint16
	values   uint32 // the first of its values
}

// run is a run of sorted events in the temporary file.
type run struct {
	offset, length int64
	events         int
}

func (s *sorter) add(e event) error {
	number, ok := s.known[e.class]
	if !ok {
		if s.known == nil {
			s.known = map[class]int{}
		}
		number = len(s.classes)
		s.known[e.class] = number
		s.classes = append(s.classes, e.class)
	}
	s.records = append(s.records, record{at: e.at, class: uint32(number), from: e.from, to: e.to, values: uint32(len(s.values))})
	s.values = append(s.values, e.values[:e.class.kind.width()]...)
	if len(s.records) >= s.limit {
		return s.spill()
	}
	return nil
}

func (s *sorter) sort() {
	byTime := func(a, b record) int { return cmp.Compare(a.at, b.at) }
	if !slices.IsSortedFunc(s.records, byTime) {
		slices.SortStableFunc(s.records, byTime)
	}
}

func (s *sorter) event(r record, e *event) {
	e.at, e.class, e.from, e.to = r.at, s.classes[r.class], r.from, r.to
	copy(e.values[:], s.values[r.values:int(r.values)+e.class.kind.width()])
}

// spill writes the events in memory as a run.
func (s *sorter) spill() error {
	if s.file == nil {
		file, err := UnnamedFile()
		if err != nil {
			return err
		}
		s.file = file
	}
	s.sort()
	packed := s2.NewWriter(s.file, s2.WriterConcurrency(1), s2.WriterBlockSize(64<<10))
	var line []byte
	last := int64(0)
	for _, r := range s.records {
		line = binary.AppendUvarint(line[:0], uint64(r.at-last))
		line = binary.AppendUvarint(line, uint64(r.class))
		line = binary.LittleEndian.AppendUint16(line, r.from)
		line = binary.LittleEndian.AppendUint16(line, r.to)
		for _, v := range s.values[r.values : int(r.values)+s.classes[r.class].kind.width()] {
			line = binary.AppendVarint(line, v)
		}
		last = r.at
		if _, err := packed.Write(line); err != nil {
			return fmt.Errorf("keep events until they are sorted: %w", err)
		}
	}
	if err := packed.Close(); err != nil {
		return fmt.Errorf("keep events until they are sorted: %w", err)
	}
	end, err := s.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	s.runs = append(s.runs, run{offset: s.end, length: end - s.end, events: len(s.records)})
	s.end = end
	s.records, s.values = s.records[:0], s.values[:0]
	return sizeError(s.end, s.most)
}

// each calls do for each event in the order of times.
func (s *sorter) each(do func(*event) error) error {
	var e event
	if len(s.runs) == 0 {
		s.sort()
		for _, r := range s.records {
			s.event(r, &e)
			if err := do(&e); err != nil {
				return err
			}
		}
		return nil
	}
	if len(s.records) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.records, s.values = nil, nil
	return s.merge(do)
}

func (s *sorter) merge(do func(*event) error) error {
	var h runHeap
	for number, r := range s.runs {
		reader := &runReader{sorter: s, number: number, left: r.events,
			r: bufio.NewReaderSize(s2.NewReader(io.NewSectionReader(s.file, r.offset, r.length), s2.ReaderMaxBlockSize(64<<10)), 4<<10)}
		if err := reader.next(); err != nil {
			return err
		}
		h = append(h, reader)
	}
	heap.Init(&h)
	for len(h) > 0 {
		first := h[0]
		if err := do(&first.event); err != nil {
			return err
		}
		if first.left == 0 {
			heap.Pop(&h)
			continue
		}
		if err := first.next(); err != nil {
			return err
		}
		heap.Fix(&h, 0)
	}
	return nil
}

// runReader reads a run's events.
type runReader struct {
	sorter *sorter
	number int
	left   int
	r      *bufio.Reader
	event  event
}

func (r *runReader) next() error {
	r.left--
	gap, err1 := binary.ReadUvarint(r.r)
	number, err2 := binary.ReadUvarint(r.r)
	var ends [4]byte
	_, err3 := io.ReadFull(r.r, ends[:])
	if err := errors.Join(err1, err2, err3); err != nil {
		return fmt.Errorf("read sorted events back: %w", err)
	}
	r.event.at += int64(gap)
	r.event.class = r.sorter.classes[number]
	r.event.from, r.event.to = binary.LittleEndian.Uint16(ends[:]), binary.LittleEndian.Uint16(ends[2:])
	for i := range r.event.class.kind.width() {
		v, err := binary.ReadVarint(r.r)
		if err != nil {
			return fmt.Errorf("read sorted events back: %w", err)
		}
		r.event.values[i] = v
	}
	return nil
}

// runHeap has the run with the earliest event first, and of equal ones the run written first.
type runHeap []*runReader

func (h runHeap) Len() int { return len(h) }
func (h runHeap) Less(i, j int) bool {
	if h[i].event.at != h[j].event.at {
		return h[i].event.at < h[j].event.at
	}
	return h[i].number < h[j].number
}
func (h runHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push is for container/heap.
func (h *runHeap) Push(x any) { *h = append(*h, x.(*runReader)) }

// Pop is for container/heap.
func (h *runHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

func (s *sorter) close() error {
	s.records, s.values, s.runs = nil, nil, nil
	if s.file == nil {
		return nil
	}
	file := s.file
	s.file = nil
	return file.Close()
}
