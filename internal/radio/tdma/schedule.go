// Package tdma gives each node of a network its own time slots on a shared channel. It follows the published
// semantics of EMANE's TDMA event scheduler radio model; docs/reference/radio/tdma.md has the complete model.
package tdma

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
)

// MaxNEM is the highest NEM id. The one above it means all nodes.
const (
	MaxNEM       = 65534
	BroadcastNEM = 65535
)

// Classes is the number of classes of service, with a queue each. EMANE keeps the last one for messages of
// schedulers; it takes no frames of nodes.
const Classes = 5

// The most slots that a schedule may define, summed over its nodes, and EMANE's most frames and slots of a
// frame.
const (
	maxCells  = 1 << 22
	maxFrames = 65535
	maxSlots  = 65535
)

// Structure divides time into multiframes of frames of slots. Multiframes are aligned to the Unix epoch.
type Structure struct {
	// Frames of a multiframe, Slots of a frame.
	Frames, Slots int
	// SlotDuration and SlotOverhead, the part of it that carries no data, in whole microseconds.
	SlotDuration, SlotOverhead time.Duration
	// BandwidthHertz of every receiver.
	BandwidthHertz uint64
}

// Check returns an error that names an impossible value, or nil.
func (s Structure) Check() error {
	switch {
	case s.Frames < 1 || s.Frames > maxFrames:
		return fmt.Errorf("frames %d: want 1 to %d", s.Frames, maxFrames)
	case s.Slots < 1 || s.Slots > maxSlots:
		return fmt.Errorf("slots %d: want 1 to %d", s.Slots, maxSlots)
	case s.SlotDuration < time.Microsecond || s.SlotDuration > maxSlotDuration || s.SlotDuration%time.Microsecond != 0:
		return fmt.Errorf("slotduration %v: want whole microseconds up to %v", s.SlotDuration, maxSlotDuration)
	case s.SlotOverhead < 0 || s.SlotOverhead >= s.SlotDuration || s.SlotOverhead%time.Microsecond != 0:
		return fmt.Errorf("slotoverhead %v: want whole microseconds, less than slotduration %v", s.SlotOverhead, s.SlotDuration)
	case s.BandwidthHertz == 0:
		return fmt.Errorf("bandwidth 0: want more than 0 Hz")
	}
	return nil
}

// maxSlotDuration keeps the capacity of a slot within 64 bits at any rate.
const maxSlotDuration = time.Hour

// MaxRate in bit/s, and MaxFrequency in Hz, also of a bandwidth, that a schedule may have.
const (
	MaxRate      = 1e12
	MaxFrequency = 1e12
)

// Capacity is the number of bytes of frames that a slot at a rate carries: (duration - overhead) · rate / 8.
// EMANE counts the frames with their Ethernet headers, without the headers of its own messages.
func (s Structure) Capacity(rateBitsPerSecond uint64) int {
	microseconds := uint64((s.SlotDuration - s.SlotOverhead) / time.Microsecond)
	return int(float64(microseconds) * float64(rateBitsPerSecond) / 8e6)
}

// Kind of a slot, for one node.
type Kind uint8

// The kinds: the radio is off, listens, or may send.
const (
	Idle Kind = iota
	Receive
	Transmit
)

// Slot is what a node does in a time slot.
type Slot struct {
	Kind Kind
	// FrequencyHertz to receive or transmit on.
	FrequencyHertz uint64
	// RateBitsPerSecond, PowerDBm and Class are for Transmit; the queue of Class goes first. With OwnPower
	// the radio's own transmit power holds instead, as in generated schedules.
	RateBitsPerSecond uint64
	PowerDBm          float64
	OwnPower          bool
	Class             int
	// Destination is the NEM id to which only frames are sent, BroadcastNEM for broadcasts and multicasts
	// only, 0 for all.
	Destination int
}

// cell is a slot of one node: an index into its schedule's distinct slots. Index 0 is idle.
type cell uint16

// frame of one node: its slots, and the indexes of those in which it may send.
type frame struct {
	cells []cell
	sends []int32
}

// plan is a node's frames. Equal frames share their memory.
type plan []*frame

// Schedule says what each node named in it does in each slot. It is never changed.
type Schedule struct {
	structure Structure
	slots     []Slot
	plans     map[int]plan
	// directed reports whether some slots are for one destination.
	directed bool
	// generated reports whether Generate made it. An update of it does not stay generated.
	generated bool
}

// Structure of the schedule.
func (s *Schedule) Structure() Structure { return s.structure }

// NEMs lists the nodes that the schedule names, ascending. All others neither send nor receive.
func (s *Schedule) NEMs() []int {
	return slices.Sorted(maps.Keys(s.plans))
}

// Destinations lists the destinations to which slots are limited, ascending.
func (s *Schedule) Destinations() (nems []int) {
	for _, slot := range s.slots {
		if d := slot.Destination; d != 0 && d != BroadcastNEM {
			nems = append(nems, d)
		}
	}
	slices.Sort(nems)
	return slices.Compact(nems)
}

// Slot of a node by the indexes of frame and slot. It is idle for a node that the schedule does not name.
func (s *Schedule) Slot(nem, frame, slot int) Slot {
	p := s.plans[nem]
	if p == nil {
		return Slot{}
	}
	return s.slots[p[frame].cells[slot]]
}

// slotsOf yields each kind of slot that a node has.
func (s *Schedule) slotsOf(nem int) iter.Seq[Slot] {
	seen, used := map[*frame]bool{}, make([]bool, len(s.slots))
	for _, f := range s.plans[nem] {
		if seen[f] {
			continue
		}
		seen[f] = true
		for _, c := range f.cells {
			used[c] = true
		}
	}
	return func(yield func(Slot) bool) {
		for c, slot := range s.slots {
			if used[c] && !yield(slot) {
				return
			}
		}
	}
}

// Frequencies in Hz at which a node sends or listens, ascending.
func (s *Schedule) Frequencies(nem int, kind Kind) (hertz []uint64) {
	for slot := range s.slotsOf(nem) {
		if slot.Kind == kind {
			hertz = append(hertz, slot.FrequencyHertz)
		}
	}
	slices.Sort(hertz)
	return slices.Compact(hertz)
}

// slotless are the classes for which a node has no slots to send in. The largest of its slots takes that many bytes.
func (s *Schedule) slotless(nem int) (classes [Classes]bool, largest int) {
	for class := range classes {
		classes[class] = true
	}
	for slot := range s.slotsOf(nem) {
		if slot.Kind == Transmit {
			classes[slot.Class] = false
			largest = max(largest, s.structure.Capacity(slot.RateBitsPerSecond))
		}
	}
	return classes, largest
}

// CheckHops returns an error that names a node which sends at several frequencies, or nil.
func (s *Schedule) CheckHops() error {
	for _, nem := range s.NEMs() {
		if hertz := s.Frequencies(nem, Transmit); len(hertz) > 1 {
			return fmt.Errorf("NEM id %d sends at %g MHz and at %g MHz", nem, float64(hertz[0])/1e6, float64(hertz[1])/1e6)
		}
	}
	return nil
}

// Generated reports whether Generate made the schedule, so that it can be generated again with another rate.
func (s *Schedule) Generated() bool { return s.generated }

// WithoutSendSlots lists those of the given nodes that have no slot to send in.
func (s *Schedule) WithoutSendSlots(nems []int) (mute []int) {
	for _, nem := range nems {
		if !slices.ContainsFunc(s.plans[nem], func(f *frame) bool { return len(f.sends) > 0 }) {
			mute = append(mute, nem)
		}
	}
	return mute
}

// Generate makes a schedule that assigns the slots of a multiframe round robin to the given nodes, by NEM id.
// All other nodes listen in a slot explicitly, because EMANE turns the radio off in frames that do not name
// the node. Radios send at their own power; powerDBm (nil for 0 dBm) is for XML.
func Generate(structure Structure, nems []int, rateBitsPerSecond, frequencyHertz uint64, powerDBm func(nem int) float64) (*Schedule, error) {
	nems = slices.Compact(slices.Sorted(slices.Values(nems)))
	if err := checkGenerate(structure, nems, rateBitsPerSecond, frequencyHertz); err != nil {
		return nil, err
	}
	b := newBuilder(structure)
	b.schedule.generated = true
	listen, err := b.cell(Slot{Kind: Receive, FrequencyHertz: frequencyHertz})
	if err != nil {
		return nil, err
	}
	for turn, nem := range nems {
		slot := Slot{Kind: Transmit, FrequencyHertz: frequencyHertz, RateBitsPerSecond: rateBitsPerSecond, OwnPower: true}
		if powerDBm != nil {
			slot.PowerDBm = powerDBm(nem)
		}
		send, err := b.cell(slot)
		if err != nil {
			return nil, err
		}
		b.schedule.plans[nem] = b.roundRobin(turn, len(nems), send, listen)
	}
	return b.schedule, nil
}

func checkGenerate(structure Structure, nems []int, rate, frequency uint64) error {
	if err := structure.Check(); err != nil {
		return err
	}
	if rate == 0 || rate > MaxRate {
		return fmt.Errorf("rate %d: want 1 to %.0f bit/s", rate, float64(MaxRate))
	}
	if frequency == 0 || frequency > MaxFrequency {
		return fmt.Errorf("frequency %d: want 1 to %.0f Hz", frequency, float64(MaxFrequency))
	}
	for _, nem := range nems {
		if nem < 1 || nem > MaxNEM {
			return fmt.Errorf("NEM id %d: want 1 to %d", nem, MaxNEM)
		}
	}
	if distinct := min(structure.Frames, max(len(nems), 1)); len(nems)*(structure.Frames+distinct*structure.Slots) > maxCells {
		return fmt.Errorf("slots %d for %d nodes: more than %d slots in all", structure.Slots, len(nems), maxCells)
	}
	return nil
}

// roundRobin returns the plan of the node at a position among all nodes.
func (b *builder) roundRobin(turn, of int, send, listen cell) plan {
	p := make(plan, b.schedule.structure.Frames)
	begun := map[int]*frame{} // by the position that has a frame's first slot
	for i := range p {
		first := i * b.schedule.structure.Slots % of
		if begun[first] == nil {
			cells := make([]cell, b.schedule.structure.Slots)
			for slot := range cells {
				cells[slot] = listen
				if (first+slot)%of == turn {
					cells[slot] = send
				}
			}
			begun[first] = b.frame(cells)
		}
		p[i] = begun[first]
	}
	return p
}

// builder makes a schedule. Equal slots share a cell, and equal frames their memory.
type builder struct {
	schedule *Schedule
	cells    map[Slot]cell
	frames   map[string]*frame
}

func newBuilder(structure Structure) *builder {
	return &builder{&Schedule{structure: structure, slots: []Slot{{}}, plans: map[int]plan{}}, map[Slot]cell{{}: 0}, map[string]*frame{}}
}

func (b *builder) cell(s Slot) (cell, error) {
	if c, ok := b.cells[s]; ok {
		return c, nil
	}
	structure := b.schedule.structure
	if s.Kind == Transmit && structure.Capacity(s.RateBitsPerSecond) < 1 {
		return 0, fmt.Errorf("datarate %d bit/s: a slot of %v less %v carries no byte at it", s.RateBitsPerSecond, structure.SlotDuration, structure.SlotOverhead)
	}
	if len(b.schedule.slots) > int(^cell(0)) {
		return 0, fmt.Errorf("more than %d different kinds of slots", int(^cell(0)))
	}
	c := cell(len(b.schedule.slots))
	b.schedule.slots = append(b.schedule.slots, s)
	b.schedule.directed = b.schedule.directed || s.Destination != 0
	b.cells[s] = c
	return c, nil
}

// frame returns the frame of the given slots, which must not change any more.
func (b *builder) frame(cells []cell) *frame {
	key := make([]byte, 0, 2*len(cells))
	for _, c := range cells {
		key = append(key, byte(c), byte(c>>8))
	}
	if f, ok := b.frames[string(key)]; ok {
		return f
	}
	f := &frame{cells: cells}
	for slot, c := range cells {
		if b.schedule.slots[c].Kind == Transmit {
			f.sends = append(f.sends, int32(slot))
		}
	}
	b.frames[string(key)] = f
	return f
}
