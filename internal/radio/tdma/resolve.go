package tdma

import (
	"fmt"
	"maps"
	"slices"
)

// resolve makes the schedule from the file's definitions.
func (r *reader) resolve() (*Schedule, error) {
	b := r.start()
	resolved := map[[2]int]cell{} // by frame and definition
	for _, nem := range slices.Sorted(maps.Keys(r.defined)) {
		p := slices.Clone(b.schedule.plans[nem])
		if p == nil {
			p = b.idle()
		}
		for _, index := range slices.Sorted(maps.Keys(r.defined[nem])) {
			cells := slices.Clone(p[index].cells)
			if err := r.resolveFrame(b, resolved, nem, index, cells); err != nil {
				return nil, err
			}
			p[index] = b.frame(cells)
		}
		b.schedule.plans[nem] = p
	}
	return b.schedule, nil
}

func (r *reader) resolveFrame(b *builder, resolved map[[2]int]cell, nem, frame int, cells []cell) (err error) {
	for slot, definition := range r.defined[nem][frame] {
		if definition == 0 && r.structure == nil {
			continue // an update keeps what it does not list
		}
		key := [2]int{frame, int(definition)}
		c, known := resolved[key]
		if !known {
			if c, err = r.resolveSlot(b, nem, frame, slot, definition); err != nil {
				return err
			}
			resolved[key] = c
		}
		cells[slot] = c
	}
	return nil
}

// start returns an empty schedule, or a copy of the one to update.
func (r *reader) start() *builder {
	b := newBuilder(r.shape)
	if r.structure != nil {
		return b
	}
	b.schedule.slots, b.schedule.directed = slices.Clone(r.base.slots), r.base.directed
	b.schedule.plans = maps.Clone(r.base.plans) // changed plans are cloned too
	for c, s := range b.schedule.slots {
		b.cells[s] = cell(c)
	}
	return b
}

func (b *builder) idle() plan {
	idle := b.frame(make([]cell, b.schedule.structure.Slots))
	p := make(plan, b.schedule.structure.Frames)
	for i := range p {
		p[i] = idle
	}
	return p
}

func (r *reader) resolveSlot(b *builder, nem, frame, slot int, index int32) (cell, error) {
	d := definition{kind: Receive}
	if index > 0 {
		d = r.definitions[index-1]
	}
	s, missing := r.slot(d, r.frames[frame])
	if missing != "" && index == 0 {
		return 0, fmt.Errorf("frame %d leaves slot %d of node %d out, which then listens, and neither <frame> nor <multiframe> has %s",
			frame, slot, nem, missing)
	}
	if missing != "" {
		return 0, fmt.Errorf("line %d: <slot> in frame %d has no %s, nor has its <frame> or <multiframe>", d.line, frame, missing)
	}
	c, err := b.cell(s)
	if err != nil {
		return 0, fmt.Errorf("line %d: <slot>: %w", d.line, err)
	}
	return c, nil
}

// slot returns a definition's slot in a frame, or the name of what it lacks.
func (r *reader) slot(d definition, frame defaults) (s Slot, missing string) {
	s = Slot{Kind: d.kind, Destination: d.destination}
	if d.kind == Idle {
		return s, ""
	}
	whole := *r.multiframe
	if !firstGiven(&s.FrequencyHertz, d.own.frequency, frame.frequency, whole.frequency) {
		return s, "frequency"
	}
	if d.kind == Receive {
		return s, ""
	}
	switch {
	case !firstGiven(&s.RateBitsPerSecond, d.own.rate, frame.rate, whole.rate):
		return s, "datarate"
	case !firstGiven(&s.PowerDBm, d.own.power, frame.power, whole.power):
		return s, "power"
	case !firstGiven(&s.Class, d.own.class, frame.class, whole.class):
		return s, "class"
	}
	return s, ""
}

// firstGiven assigns the first value that is given.
func firstGiven[T any](to *T, values ...*T) bool {
	for _, v := range values {
		if v != nil {
			*to = *v
			return true
		}
	}
	return false
}
