package tdma

import (
	"slices"
	"sort"
)

// timing translates between the engine's clock in nanoseconds and absolute indexes of slots, counted from the
// Unix epoch.
type timing struct {
	// offset from the engine's clock to the time since the Unix epoch, and duration of a slot, nanoseconds.
	offset, duration int64
	// slots of a frame and frames of a multiframe.
	slots, frames int64
}

func newTiming(s Structure, offset int64) timing {
	return timing{offset, int64(s.SlotDuration), int64(s.Slots), int64(s.Frames)}
}

// slotAt returns the slot that contains a time.
func (t *timing) slotAt(now int64) int64 { return (now + t.offset) / t.duration }

// slotFrom returns the first slot that begins at a time or later.
func (t *timing) slotFrom(now int64) int64 { return (now + t.offset + t.duration - 1) / t.duration }

// start returns the start of a slot.
func (t *timing) start(slot int64) int64 { return slot*t.duration - t.offset }

// nextMultiframe returns the first slot of the first multiframe that begins at a time or later.
func (t *timing) nextMultiframe(now int64) int64 {
	length := t.slots * t.frames
	return (t.slotFrom(now) + length - 1) / length * length
}

// position returns a slot's frame and index in its multiframe.
func (t *timing) position(slot int64) (frame, index int64) {
	index = slot % t.slots
	return slot / t.slots % t.frames, index
}

// scheduleComparison compares two schedules node by node.
type scheduleComparison struct {
	before, after *Schedule
	frames        map[[2]*frame]bool
}

func (c *scheduleComparison) samePlan(nem int) bool {
	if c.before == c.after {
		return true
	}
	before, after := c.before.plans[nem], c.after.plans[nem]
	return c.before.structure == c.after.structure && (before == nil) == (after == nil) &&
		slices.EqualFunc(before, after, c.sameFrame)
}

func (c *scheduleComparison) sameFrame(before, after *frame) bool {
	key := [2]*frame{before, after}
	same, known := c.frames[key]
	if !known {
		same = slices.EqualFunc(before.cells, after.cells, func(b, a cell) bool {
			was, is := c.before.slots[b], c.after.slots[a]
			if was.OwnPower && is.OwnPower {
				was.PowerDBm = is.PowerDBm
			}
			return was == is
		})
		c.frames[key] = same
	}
	return same
}

// hasSelectiveSlots reports whether some slots do not take every frame.
func (m *Model) hasSelectiveSlots() bool {
	return m.config.Queue.StrictDequeue || m.config.Schedule.directed
}

// nextUsefulSlot returns the first slot, from one on, in which a station has frames to send, or never.
func (m *Model) nextUsefulSlot(s *station, from int64) int64 {
	if s.plan == nil || s.count == 0 {
		return never
	}
	from = max(from, s.resume)
	frame, index := m.time.position(from)
	begin := from - index
	// The search visits its first frame twice: its end now, and its beginning a multiframe later.
	for range m.time.frames + 1 {
		sends := s.plan[frame].sends
		i := 0
		if begin < from {
			i = sort.Search(len(sends), func(i int) bool { return begin+int64(sends[i]) >= from })
		}
		for ; i < len(sends); i++ {
			if m.serves(s, frame, sends[i]) {
				return begin + int64(sends[i])
			}
		}
		begin += m.time.slots
		frame = (frame + 1) % m.time.frames
	}
	return never
}

func (m *Model) serves(s *station, frame int64, index int32) bool {
	if !m.hasSelectiveSlots() {
		return true
	}
	slot := m.slot(s, frame, int64(index))
	return s.head(&m.config.Queue, slot.Class, slot.Destination) != nil
}

func (m *Model) slot(s *station, frame, index int64) *Slot {
	return &m.config.Schedule.slots[s.plan[frame].cells[index]]
}

// planSlots finds the next slots of stations that have none.
func (m *Model) planSlots(now int64) {
	m.nextSlot = never
	for _, s := range m.stations {
		if s.next == never {
			s.next = m.nextUsefulSlot(s, m.time.slotFrom(now))
		}
		m.nextSlot = min(m.nextSlot, s.next)
	}
	m.scheduleWake()
}

// scheduleWake schedules the model's wake-up, when the first busy slot ends or the next slot with frames to send
// begins.
func (m *Model) scheduleWake() {
	at := int64(never)
	if len(m.busy) > 0 {
		at = m.busy[0].end
	}
	if m.nextSlot != never && m.localSlot() == nil {
		at = min(at, m.time.start(m.nextSlot))
	}
	if at != m.wakeAt && at != never && m.network != nil {
		m.wakeAt = at
		m.network.WakeAt(at)
	}
}
