package emane

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/radio/tdma"
)

// EventID is the kind of an event.
type EventID uint32

// The kinds that are published here.
const (
	LocationEvent EventID = 100
	PathlossEvent EventID = 101
	// AntennaProfileEvent tells which antenna profile NEMs have, and where their antennas point.
	AntennaProfileEvent EventID = 102
	ScheduleEvent       EventID = 105
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

// ScheduleFor makes the event with a NEM's schedule and its structure. The schedule must name the NEM.
func ScheduleFor(nem int, s *tdma.Schedule) Event {
	structure := s.Structure()
	var b []byte
	for f := range structure.Frames {
		frame := appendUint(nil, 1, uint64(f))
		for i := range structure.Slots {
			frame = appendMessage(frame, 6, slotMessage(i, s.Slot(nem, f, i)))
		}
		b = appendMessage(b, 1, frame)
	}
	var st []byte
	for i, v := range []uint64{uint64(structure.Slots), uint64(structure.Frames), uint64(structure.SlotDuration.Microseconds()),
		uint64(structure.SlotOverhead.Microseconds()), structure.BandwidthHertz} {
		st = appendUint(st, protowire.Number(i+1), v)
	}
	return Event{nem, ScheduleEvent, appendMessage(b, 2, st)}
}

func slotMessage(index int, s tdma.Slot) []byte {
	b := appendUint(nil, 1, uint64(index))
	switch s.Kind {
	case tdma.Transmit:
		tx := appendUint(appendUint(nil, 1, s.FrequencyHertz), 2, s.RateBitsPerSecond)
		tx = appendUint(tx, 3, uint64(s.Class))
		tx = protowire.AppendFixed64(protowire.AppendTag(tx, 4, protowire.Fixed64Type), math.Float64bits(s.PowerDBm))
		if s.Destination != 0 {
			tx = appendUint(tx, 5, uint64(s.Destination))
		}
		return appendMessage(appendUint(b, 2, slotTransmit), 3, tx)
	case tdma.Receive:
		return appendMessage(appendUint(b, 2, slotReceive), 4, appendUint(nil, 1, s.FrequencyHertz))
	default:
		return appendUint(b, 2, slotIdle)
	}
}

// usualDatagram is the size limit in bytes for several events, so that IP does not fragment the datagram.
// maxDatagram is UDP's, for a long schedule.
const (
	usualDatagram = 1300
	maxDatagram   = 65507
)

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
