package tdma

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"vignette.dev/vignette/internal/radio/phy"
)

// ParseSchedule reads an EMANE TDMA schedule file. A file without structure updates base: its slots replace
// those of the nodes it names, which base must name too. Errors name the line, the element and its value.
//
// A node sends in slots that name it without another element, and listens in all other slots of a frame that
// names it. Its radio is off in frames that do not name it.
func ParseSchedule(text []byte, base *Schedule) (*Schedule, error) {
	r := &reader{decoder: xml.NewDecoder(bytes.NewReader(text)), base: base, frames: map[int]defaults{},
		defined: map[int]map[int][]int32{}}
	r.decoder.CharsetReader = phy.IgnoreEncoding
	if err := r.document(); err != nil {
		return nil, fmt.Errorf("TDMA schedule: line %d: %w", r.line(), phy.ExplainXML(err))
	}
	s, err := r.resolve()
	if err != nil {
		return nil, fmt.Errorf("TDMA schedule: %w", err)
	}
	return s, nil
}

// errNoBase is the error of an update without a schedule to update.
var errNoBase = errors.New("<multiframe> without <structure> updates a schedule, and there is none to update")

// IsUpdate reports whether a schedule was refused only because it is an update.
func IsUpdate(err error) bool { return errors.Is(err, errNoBase) }

// defaults that a multiframe, frame or tx element may give for its contents.
type defaults struct {
	frequency, rate *uint64
	power           *float64
	class           *int
}

// definition is one slot element.
type definition struct {
	line        int
	kind        Kind
	own         defaults
	destination int
}

// reader reads a schedule file. In EMANE the last frame element of an index gives the defaults of all of
// them, so slots are resolved at the end.
type reader struct {
	decoder     *xml.Decoder
	base        *Schedule
	structure   *Structure
	shape       Structure // the structure, or that of the base
	multiframe  *defaults
	frames      map[int]defaults
	definitions []definition
	// defined has the definition of a node's frame and slot, counted from 1; 0 if there is none.
	defined map[int]map[int][]int32
	cells   int
}

func (r *reader) line() int {
	line, _ := r.decoder.InputPos()
	return line
}

const rootElement = "emane-tdma-schedule"

func (r *reader) document() error {
	found := false
	for {
		token, err := r.decoder.Token()
		switch {
		case err == io.EOF && !found:
			return fmt.Errorf("no <%s> element", rootElement)
		case err == io.EOF && r.multiframe == nil:
			return fmt.Errorf("<%s> has no <multiframe>", rootElement)
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local != rootElement {
			return fmt.Errorf("<%s>: want <%s>", start.Name.Local, rootElement)
		}
		found = true
		if err := r.root(start); err != nil {
			return err
		}
	}
}

func (r *reader) root(start xml.StartElement) error {
	if _, err := attributes(start); err != nil {
		return err
	}
	return r.children(start, func(child xml.StartElement) error {
		switch {
		case r.multiframe != nil:
			return fmt.Errorf("<%s> after <multiframe>: want nothing more", child.Name.Local)
		case child.Name.Local == "structure" && r.structure == nil:
			return r.readStructure(child)
		case child.Name.Local == "multiframe":
			return r.readMultiframe(child)
		}
		return fmt.Errorf("<%s>: want one <structure>, or none for an update, and one <multiframe>", child.Name.Local)
	})
}

func (r *reader) readStructure(start xml.StartElement) error {
	a, err := attributes(start, "frames", "slots", "slotduration", "slotoverhead", "bandwidth")
	if err != nil {
		return err
	}
	s := Structure{}
	var duration, overhead int
	for _, each := range []struct {
		name string
		to   *int
		most int
	}{
		{"frames", &s.Frames, maxFrames}, {"slots", &s.Slots, maxSlots},
		{"slotduration", &duration, int(maxSlotDuration / time.Microsecond)},
		{"slotoverhead", &overhead, int(maxSlotDuration / time.Microsecond)},
	} {
		if *each.to, err = a.number(each.name, 0, each.most); err != nil {
			return err
		}
	}
	bandwidth, err := a.scaled("bandwidth", MaxFrequency)
	if err != nil {
		return err
	}
	if bandwidth == nil {
		return a.missing("bandwidth")
	}
	s.SlotDuration, s.SlotOverhead = time.Duration(duration)*time.Microsecond, time.Duration(overhead)*time.Microsecond
	s.BandwidthHertz = *bandwidth
	if err := s.Check(); err != nil {
		return fmt.Errorf("<structure>: %w", err)
	}
	r.structure = &s
	return r.empty(start)
}

func (r *reader) readMultiframe(start xml.StartElement) error {
	switch {
	case r.structure != nil:
		r.shape = *r.structure
	case r.base != nil:
		r.shape = r.base.structure
	default:
		return errNoBase
	}
	a, err := attributes(start, "frequency", "power", "class", "datarate")
	if err != nil {
		return err
	}
	d, err := a.defaults(Classes - 1)
	if err != nil {
		return err
	}
	r.multiframe = &d
	frames := 0
	err = r.children(start, func(child xml.StartElement) error {
		frames++
		return r.readFrame(child)
	})
	if err == nil && frames == 0 {
		return errors.New("<multiframe>: want at least one <frame>")
	}
	return err
}

func (r *reader) readFrame(start xml.StartElement) error {
	if start.Name.Local != "frame" {
		return fmt.Errorf("<%s> in <multiframe>: want <frame>", start.Name.Local)
	}
	a, err := attributes(start, "index", "frequency", "power", "class", "datarate")
	if err != nil {
		return err
	}
	indexes, err := a.list("index", 0, r.shape.Frames-1)
	if err != nil {
		return err
	}
	d, err := a.defaults(Classes - 2)
	if err != nil {
		return err
	}
	for _, index := range indexes {
		r.frames[index] = d
	}
	slots := 0
	err = r.children(start, func(child xml.StartElement) error {
		slots++
		return r.readSlot(child, indexes)
	})
	if err == nil && slots == 0 {
		return fmt.Errorf("<frame index=%q>: want at least one <slot>", a.values["index"])
	}
	return err
}

func (r *reader) readSlot(start xml.StartElement, frames []int) error {
	if start.Name.Local != "slot" {
		return fmt.Errorf("<%s> in <frame>: want <slot>", start.Name.Local)
	}
	a, err := attributes(start, "index", "nodes")
	if err != nil {
		return err
	}
	slots, err := a.list("index", 0, r.shape.Slots-1)
	if err != nil {
		return err
	}
	nems, err := a.list("nodes", 1, MaxNEM)
	if err != nil {
		return err
	}
	definition := definition{line: r.line(), kind: Transmit}
	given := false
	err = r.children(start, func(child xml.StartElement) error {
		if given {
			return fmt.Errorf("<%s> in <slot>: want one of <tx>, <rx> and <idle>", child.Name.Local)
		}
		given = true
		return r.readKind(child, &definition)
	})
	if err != nil {
		return err
	}
	r.definitions = append(r.definitions, definition)
	for _, nem := range nems {
		if err := r.define(nem, frames, slots); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) readKind(start xml.StartElement, d *definition) (err error) {
	var a elementAttributes
	switch start.Name.Local {
	case "tx":
		if a, err = attributes(start, "frequency", "power", "class", "datarate", "destination"); err != nil {
			return err
		}
		if _, ok := a.values["destination"]; ok {
			if d.destination, err = a.number("destination", 1, BroadcastNEM); err != nil {
				return err
			}
		}
		d.own, err = a.defaults(Classes - 2)
	case "rx":
		d.kind = Receive
		if a, err = attributes(start, "frequency"); err != nil {
			return err
		}
		d.own.frequency, err = a.scaled("frequency", MaxFrequency)
	case "idle":
		d.kind = Idle
		_, err = attributes(start)
	default:
		err = fmt.Errorf("<%s> in <slot>: want <tx>, <rx> or <idle>", start.Name.Local)
	}
	if err != nil {
		return err
	}
	return r.empty(start)
}

// define assigns the last definition to slots of a node.
func (r *reader) define(nem int, frames, slots []int) error {
	if r.structure == nil && r.base.plans[nem] == nil {
		return fmt.Errorf("<slot nodes> has %d: the schedule that is updated does not name this node", nem)
	}
	if r.defined[nem] == nil {
		r.defined[nem] = map[int][]int32{}
		r.cells += r.shape.Frames
	}
	for _, frame := range frames {
		cells := r.defined[nem][frame]
		if cells == nil {
			if r.cells += r.shape.Slots; r.cells > maxCells {
				return fmt.Errorf("<slot> for node %d in frame %d: more than %d slots in all", nem, frame, maxCells)
			}
			cells = make([]int32, r.shape.Slots)
			r.defined[nem][frame] = cells
		}
		for _, slot := range slots {
			if cells[slot] != 0 {
				return fmt.Errorf("<slot index> has %d: defined twice for node %d in frame %d", slot, nem, frame)
			}
			cells[slot] = int32(len(r.definitions))
		}
	}
	return nil
}

// children calls read for each element inside start, which must contain nothing else.
func (r *reader) children(start xml.StartElement, read func(xml.StartElement) error) error {
	for {
		token, err := r.decoder.Token()
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if err := read(t); err != nil {
				return err
			}
		case xml.EndElement:
			return nil
		case xml.CharData:
			if text := strings.TrimSpace(string(t)); text != "" {
				return fmt.Errorf("<%s> contains text %q: want elements only", start.Name.Local, shorten(text))
			}
		}
	}
}

func (r *reader) empty(start xml.StartElement) error {
	return r.children(start, func(child xml.StartElement) error {
		return fmt.Errorf("<%s> in <%s>: want nothing inside it", child.Name.Local, start.Name.Local)
	})
}
