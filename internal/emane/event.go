package emane

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/internal/scenario"
)

// EventID is the kind of an event.
type EventID uint32

// The kinds that are published here.
const (
	LocationEvent EventID = 100
	PathlossEvent EventID = 101
	// AntennaProfileEvent tells which antenna profile NEMs have, and where their antennas point.
	AntennaProfileEvent EventID = 102
	// CommEffectEvent has what EMANE's comm effect model does to the frames of links.
	CommEffectEvent EventID = 103
	ScheduleEvent   EventID = 105
	// PathlossExEvent has pathlosses by frequency, which go before those of PathlossEvent.
	PathlossExEvent EventID = 107
)

// Event for one NEM, or for all with NEM 0.
type Event struct {
	NEM  int
	ID   EventID
	Data []byte
}

// Pathloss in dB from one NEM to the NEM that an event is for, and Reverse in the other direction.
type Pathloss struct {
	From        int
	DB, Reverse float64
}

// Location of a NEM.
type Location struct {
	NEM int
	geo.Position
	// Velocity and Orientation are nil if unknown.
	Velocity    *geo.Velocity
	Orientation *geo.Orientation
}

// PathlossAt makes the event with the pathloss from others to a NEM.
func PathlossAt(nem int, all []Pathloss) Event {
	var b []byte
	for _, p := range all {
		var one []byte
		one = protowire.AppendVarint(protowire.AppendTag(one, 1, protowire.VarintType), uint64(p.From))
		one = protowire.AppendFixed32(protowire.AppendTag(one, 2, protowire.Fixed32Type), math.Float32bits(float32(p.DB)))
		one = protowire.AppendFixed32(protowire.AppendTag(one, 3, protowire.Fixed32Type), math.Float32bits(float32(p.Reverse)))
		b = appendMessage(b, 1, one)
	}
	return Event{nem, PathlossEvent, b}
}

// PathlossEx is the pathloss in dB from one NEM at a transmit frequency.
type PathlossEx struct {
	From           int
	FrequencyHertz uint64
	DB             float64
}

// PathlossExAt makes the event with the pathloss at frequencies from others to a NEM.
func PathlossExAt(nem int, all []PathlossEx) Event {
	var b []byte
	for _, p := range all {
		entry := appendUint(nil, 1, p.FrequencyHertz)
		entry = protowire.AppendFixed32(protowire.AppendTag(entry, 2, protowire.Fixed32Type), math.Float32bits(float32(p.DB)))
		b = appendMessage(b, 1, appendMessage(appendUint(nil, 1, uint64(p.From)), 2, entry))
	}
	return Event{nem, PathlossExEvent, b}
}

// ParsePathlossEx reads an event of PathlossExAt.
func ParsePathlossEx(e Event) (all []PathlossEx, err error) {
	err = fields(e.Data, func(_ protowire.Number, v value) error {
		from := 0
		return fields(v.bytes, func(number protowire.Number, v value) error {
			if number == 1 {
				from = int(v.number)
				return nil
			}
			p := PathlossEx{From: from}
			err := fields(v.bytes, func(number protowire.Number, v value) error {
				if number == 1 {
					p.FrequencyHertz = v.number
				} else {
					p.DB = float64(math.Float32frombits(uint32(v.number)))
				}
				return nil
			})
			all = append(all, p)
			return err
		})
	})
	return all, err
}

// CommEffect on the frames from a NEM.
type CommEffect struct {
	From int
	scenario.CommEffect
}

// CommEffectAt makes the event with the effects on frames from others to a NEM.
func CommEffectAt(nem int, all []CommEffect) Event {
	var b []byte
	for _, e := range all {
		one := appendUint(nil, 1, uint64(e.From))
		for i, v := range []float64{e.Latency.Seconds(), e.Jitter.Seconds(), e.LossPercent, e.DuplicationPercent} {
			one = protowire.AppendTag(one, protowire.Number(2+i), protowire.Fixed32Type)
			one = protowire.AppendFixed32(one, math.Float32bits(float32(v)))
		}
		b = appendMessage(b, 1, appendUint(appendUint(one, 6, e.UnicastBitsPerSecond), 7, e.BroadcastBitsPerSecond))
	}
	return Event{nem, CommEffectEvent, b}
}

// Locations makes the event with the locations of some NEMs, for all NEMs.
func Locations(all []Location) Event {
	var b []byte
	for i := range all {
		l := &all[i]
		one := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(l.NEM))
		one = appendMessage(one, 2, doubles(l.Latitude, l.Longitude, l.Altitude))
		if v := l.Velocity; v != nil {
			one = appendMessage(one, 3, doubles(v.Azimuth, v.Elevation, v.Speed))
		}
		if o := l.Orientation; o != nil {
			one = appendMessage(one, 4, doubles(o.Roll, o.Pitch, o.Yaw))
		}
		b = appendMessage(b, 1, one)
	}
	return Event{0, LocationEvent, b}
}

func appendMessage(b []byte, number protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), message)
}

// doubles makes a message of values with field numbers from 1.
func doubles(values ...float64) (b []byte) {
	for i, v := range values {
		b = protowire.AppendFixed64(protowire.AppendTag(b, protowire.Number(i+1), protowire.Fixed64Type), math.Float64bits(v))
	}
	return b
}

func appendUint(b []byte, number protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), v)
}

// The types of slots in schedule events.
const (
	slotTransmit = 1
	slotReceive  = 2
	slotIdle     = 3
)

// ScheduleFor makes the event with a NEM's schedule and its structure. The schedule must name the NEM. It has only what
// EMANE does not assume: frames without slots are idle, and other slots of a frame listen on its frequency.
func ScheduleFor(nem int, s *tdma.Schedule) Event { return ScheduleAt(nem, s, 0) }

// ScheduleAt is ScheduleFor with another rate for all of the NEM's slots to send, unless it is 0.
func ScheduleAt(nem int, s *tdma.Schedule, bitsPerSecond uint64) Event {
	structure := s.Structure()
	usual := usualSlot(nem, s)
	var b []byte
	for f := range structure.Frames {
		if frame := frameMessage(nem, f, s, usual, bitsPerSecond); frame != nil {
			b = appendMessage(b, 1, frame)
		}
	}
	usual.RateBitsPerSecond = cmp.Or(bitsPerSecond, usual.RateBitsPerSecond)
	var st []byte
	for i, v := range []uint64{uint64(structure.Slots), uint64(structure.Frames), uint64(structure.SlotDuration.Microseconds()),
		uint64(structure.SlotOverhead.Microseconds()), structure.BandwidthHertz} {
		st = appendUint(st, protowire.Number(i+1), v)
	}
	b = appendMessage(b, 2, st)
	b = appendUint(appendUint(appendUint(b, 3, usual.FrequencyHertz), 4, usual.RateBitsPerSecond), 5, uint64(usual.Class))
	return Event{nem, ScheduleEvent, appendDouble(b, 6, usual.PowerDBm)}
}

// usualSlot returns the values that the schedule gives for all of a NEM's slots without their own: those of its first
// slot to send, else the first to listen.
func usualSlot(nem int, s *tdma.Schedule) (usual tdma.Slot) {
	structure := s.Structure()
	for f := range structure.Frames {
		for i := range structure.Slots {
			slot := s.Slot(nem, f, i)
			if slot.Kind == tdma.Transmit {
				return slot
			}
			if slot.Kind == tdma.Receive && usual.Kind == tdma.Idle {
				usual = slot
			}
		}
	}
	return usual
}

// frameMessage returns nil for a frame in which the NEM's radio is off.
func frameMessage(nem, frame int, s *tdma.Schedule, usual tdma.Slot, bitsPerSecond uint64) []byte {
	b, slots := appendUint(nil, 1, uint64(frame)), s.Structure().Slots
	off := true
	for i := range slots {
		slot := s.Slot(nem, frame, i)
		off = off && slot.Kind == tdma.Idle
		if bitsPerSecond != 0 { // no slot has a rate of its own
			slot.RateBitsPerSecond = usual.RateBitsPerSecond
		}
		if slot.Kind != tdma.Receive || slot.FrequencyHertz != usual.FrequencyHertz {
			b = appendMessage(b, 6, slotMessage(i, slot, usual))
		}
	}
	if off {
		return nil
	}
	return b
}

// slotMessage has what differs from the usual slot.
func slotMessage(index int, s, usual tdma.Slot) []byte {
	b := appendUint(nil, 1, uint64(index))
	switch s.Kind {
	case tdma.Transmit:
		return appendMessage(appendUint(b, 2, slotTransmit), 3, transmitMessage(s, usual))
	case tdma.Receive:
		return appendMessage(appendUint(b, 2, slotReceive), 4, appendUint(nil, 1, s.FrequencyHertz))
	default:
		return appendUint(b, 2, slotIdle)
	}
}

func transmitMessage(s, usual tdma.Slot) (tx []byte) {
	if s.FrequencyHertz != usual.FrequencyHertz {
		tx = appendUint(tx, 1, s.FrequencyHertz)
	}
	if s.RateBitsPerSecond != usual.RateBitsPerSecond {
		tx = appendUint(tx, 2, s.RateBitsPerSecond)
	}
	if s.Class != usual.Class {
		tx = appendUint(tx, 3, uint64(s.Class))
	}
	if s.PowerDBm != usual.PowerDBm {
		tx = appendDouble(tx, 4, s.PowerDBm)
	}
	if s.Destination != 0 {
		tx = appendUint(tx, 5, uint64(s.Destination))
	}
	return tx
}

func appendDouble(b []byte, number protowire.Number, v float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, number, protowire.Fixed64Type), math.Float64bits(v))
}

// CheckSchedule returns an error for a schedule that is too long for an event of EMANE.
func CheckSchedule(s *tdma.Schedule) error {
	structure := s.Structure()
	if structure.Frames*structure.Slots*longestSlot <= maxEvent {
		return nil
	}
	for _, nem := range s.NEMs() {
		if size := len(ScheduleFor(nem, s).Data); size > maxEvent {
			return fmt.Errorf("%d frames of %d slots are %d bytes for NEM id %d, and an event of EMANE has room for %d: use fewer frames or slots, or engine native",
				structure.Frames, structure.Slots, size, nem, maxEvent)
		}
	}
	return nil
}

// usualDatagram is the size limit in bytes for several events, so that IP does not fragment the datagram.
// maxDatagram is UDP's, for a long schedule.
// maxEvent is what a datagram has room for beside headers.
const (
	usualDatagram = 1300
	maxDatagram   = 65507
	maxEvent      = maxDatagram - 120
)

// longestSlot bounds the bytes of a slot in a schedule's event.
const longestSlot = 48

// Source numbers the datagrams of one publisher.
type Source struct {
	// ID of the publisher, a UUID.
	ID       [16]byte
	sequence uint64
}

// Datagrams of events on EMANE's event channel.
func (s *Source) Datagrams(events []Event) (all [][]byte, err error) {
	var data []byte
	flush := func() {
		if len(data) > 0 {
			all = append(all, s.datagram(data))
			data = nil
		}
	}
	for _, e := range events {
		one := appendUint(appendUint(nil, 1, uint64(e.NEM)), 2, uint64(e.ID))
		one = appendMessage(one, 3, e.Data)
		if len(one) > maxDatagram-100 {
			return nil, fmt.Errorf("event %d for NEM %d: %d bytes, more than a datagram has room for", e.ID, e.NEM, len(one))
		}
		if len(data)+len(one) > usualDatagram {
			flush()
		}
		data = appendMessage(data, 1, one)
	}
	flush()
	return all, nil
}

func (s *Source) datagram(serializations []byte) []byte {
	s.sequence++
	b := appendMessage(make([]byte, 2, 2+64+len(serializations)), 1, s.ID[:])
	b = appendUint(b, 2, s.sequence)
	b = appendMessage(b, 3, serializations)
	binary.BigEndian.PutUint16(b, uint16(len(b)-2))
	return b
}

// ParseDatagram reads the events, of any kind, of a datagram on the event channel.
func ParseDatagram(datagram []byte) (source [16]byte, sequence uint64, events []Event, err error) {
	if len(datagram) < 2 || int(binary.BigEndian.Uint16(datagram)) != len(datagram)-2 {
		return source, 0, nil, errors.New("event datagram: its length differs from the one in its header")
	}
	err = fields(datagram[2:], func(number protowire.Number, v value) error {
		switch number {
		case 1:
			if copy(source[:], v.bytes) != len(source) {
				return fmt.Errorf("event: uuid of %d bytes, want %d", len(v.bytes), len(source))
			}
		case 2:
			sequence = v.number
		case 3:
			return fields(v.bytes, func(number protowire.Number, v value) error {
				if number != 1 {
					return nil
				}
				e, err := parseEvent(v.bytes)
				events = append(events, e)
				return err
			})
		}
		return nil
	})
	return source, sequence, events, err
}

func parseEvent(message []byte) (e Event, err error) {
	err = fields(message, func(number protowire.Number, v value) error {
		switch number {
		case 1:
			e.NEM = int(v.number)
		case 2:
			e.ID = EventID(v.number)
		case 3:
			e.Data = v.bytes
		}
		return nil
	})
	return e, err
}

// ParsePathloss reads a pathloss event.
func ParsePathloss(e Event) (all []Pathloss, err error) {
	err = fields(e.Data, func(_ protowire.Number, v value) error {
		var p Pathloss
		err := fields(v.bytes, func(number protowire.Number, v value) error {
			switch number {
			case 1:
				p.From = int(v.number)
			case 2:
				p.DB = float64(math.Float32frombits(uint32(v.number)))
			case 3:
				p.Reverse = float64(math.Float32frombits(uint32(v.number)))
			}
			return nil
		})
		all = append(all, p)
		return err
	})
	return all, err
}

// value of a field: a number as encoded, or bytes.
type value struct {
	number uint64
	bytes  []byte
}

// fields calls each for the fields of a message in the encoding of Protocol Buffers.
func fields(message []byte, each func(protowire.Number, value) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return fmt.Errorf("message: %w", protowire.ParseError(n))
		}
		message = message[n:]
		var v value
		switch kind {
		case protowire.VarintType:
			v.number, n = protowire.ConsumeVarint(message)
		case protowire.Fixed32Type:
			var v32 uint32
			v32, n = protowire.ConsumeFixed32(message)
			v.number = uint64(v32)
		case protowire.Fixed64Type:
			v.number, n = protowire.ConsumeFixed64(message)
		case protowire.BytesType:
			v.bytes, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return fmt.Errorf("message: field %d: %w", number, protowire.ParseError(n))
		}
		message = message[n:]
		if err := each(number, v); err != nil {
			return err
		}
	}
	return nil
}
