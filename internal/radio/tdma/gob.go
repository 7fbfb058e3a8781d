package tdma

import (
	"bytes"
	"encoding/gob"
	"errors"
)

// encodedSchedule is a Schedule on its way to another process.
type encodedSchedule struct {
	Structure Structure
	Slots     []Slot
	// Frames are the distinct frames: for each slot an index into Slots.
	Frames [][]uint16
	// Plans are the nodes' frames by NEM id: indexes into Frames.
	Plans map[int][]int
	// Generated reports whether Generate made it.
	Generated bool
}

// GobEncode implements gob.GobEncoder.
func (s *Schedule) GobEncode() ([]byte, error) {
	e := encodedSchedule{Structure: s.structure, Slots: s.slots, Plans: make(map[int][]int, len(s.plans)), Generated: s.generated}
	known := map[*frame]int{}
	for nem, p := range s.plans {
		for _, f := range p {
			i, ok := known[f]
			if !ok {
				i = len(e.Frames)
				known[f] = i
				cells := make([]uint16, len(f.cells))
				for k, c := range f.cells {
					cells[k] = uint16(c)
				}
				e.Frames = append(e.Frames, cells)
			}
			e.Plans[nem] = append(e.Plans[nem], i)
		}
	}
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(&e)
	return b.Bytes(), err
}

var errEncodedSchedule = errors.New("schedule: it refers to slots or frames that it does not have")

// GobDecode implements gob.GobDecoder.
func (s *Schedule) GobDecode(encoded []byte) error {
	var e encodedSchedule
	if err := gob.NewDecoder(bytes.NewReader(encoded)).Decode(&e); err != nil {
		return err
	}
	if err := e.Structure.Check(); err != nil {
		return err
	}
	b := newBuilder(e.Structure)
	b.schedule.slots, b.schedule.generated = e.Slots, e.Generated
	for _, slot := range e.Slots {
		b.schedule.directed = b.schedule.directed || slot.Destination != 0
	}
	frames := make([]*frame, len(e.Frames))
	for i, encoded := range e.Frames {
		cells := make([]cell, len(encoded))
		for k, c := range encoded {
			if int(c) >= len(e.Slots) {
				return errEncodedSchedule
			}
			cells[k] = cell(c)
		}
		if len(cells) != e.Structure.Slots {
			return errEncodedSchedule
		}
		frames[i] = b.frame(cells)
	}
	for nem, indexes := range e.Plans {
		p := make(plan, len(indexes))
		for k, i := range indexes {
			if i < 0 || i >= len(frames) {
				return errEncodedSchedule
			}
			p[k] = frames[i]
		}
		if len(p) != e.Structure.Frames {
			return errEncodedSchedule
		}
		b.schedule.plans[nem] = p
	}
	*s = *b.schedule
	return nil
}
