package emane

import (
	"cmp"
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/proto"

	"vignette.dev/vignette/internal/emane/emanepb"
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
	// CommEffectEvent has what EMANE's comm effect model does to the frames of links.
	CommEffectEvent EventID = 103
	ScheduleEvent   EventID = 105
	// FadingSelectionEvent tells which fading a NEM applies to what it receives from others.
	FadingSelectionEvent EventID = 106
	// PathlossExEvent has pathlosses by frequency, which go before those of PathlossEvent.
	PathlossExEvent EventID = 107
)

// Event for one NEM, or for all with NEM 0.
type Event struct {
	NEM  int
	ID   EventID
	Data []byte
}

// event with data, which has all required fields.
func event(nem int, id EventID, data proto.Message) Event {
	encoded, err := proto.Marshal(data)
	if err != nil {
		panic(err) // a field is missing
	}
	return Event{nem, id, encoded}
}

// ScheduleFor makes the event with a NEM's schedule and its structure. It has only what EMANE does not assume: frames without
// slots are idle, so all are of a NEM that the schedule does not name, and other slots of a frame listen on its frequency. A NEM
// restarts a schedule that it receives again, so only NEMs without it should get it.
func ScheduleFor(nem int, s *tdma.Schedule) Event { return ScheduleAt(nem, s, 0) }

// ScheduleAt is ScheduleFor with another rate for all of the NEM's slots to send, unless it is 0.
func ScheduleAt(nem int, s *tdma.Schedule, bitsPerSecond uint64) Event {
	structure, usual := s.Structure(), usualSlot(nem, s)
	var frames []*emanepb.Frame
	for f := range structure.Frames {
		if frame := frameAt(nem, f, s, usual, bitsPerSecond); frame != nil {
			frames = append(frames, frame)
		}
	}
	return event(nem, ScheduleEvent, &emanepb.Schedule{
		Frames: frames,
		Structure: &emanepb.Structure{
			Slots:                new(uint32(structure.Slots)),
			Frames:               new(uint32(structure.Frames)),
			SlotMicroseconds:     new(uint64(structure.SlotDuration.Microseconds())),
			OverheadMicroseconds: new(uint64(structure.SlotOverhead.Microseconds())),
			BandwidthHertz:       &structure.BandwidthHertz,
		},
		FrequencyHertz:    &usual.FrequencyHertz,
		RateBitsPerSecond: new(cmp.Or(bitsPerSecond, usual.RateBitsPerSecond)),
		Class:             new(uint32(usual.Class)),
		PowerDbm:          &usual.PowerDBm,
	})
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

// frameAt returns nil for a frame in which the NEM's radio is off.
func frameAt(nem, index int, s *tdma.Schedule, usual tdma.Slot, bitsPerSecond uint64) *emanepb.Frame {
	frame, off := &emanepb.Frame{Index: new(uint32(index))}, true
	for i := range s.Structure().Slots {
		slot := s.Slot(nem, index, i)
		off = off && slot.Kind == tdma.Idle
		if bitsPerSecond != 0 { // no slot has a rate of its own
			slot.RateBitsPerSecond = usual.RateBitsPerSecond
		}
		if slot.Kind != tdma.Receive || slot.FrequencyHertz != usual.FrequencyHertz {
			frame.Slots = append(frame.Slots, slotAt(i, slot, usual))
		}
	}
	if off {
		return nil
	}
	return frame
}

// slotAt has what differs from the usual slot.
func slotAt(index int, s, usual tdma.Slot) *emanepb.Slot {
	slot := &emanepb.Slot{Index: new(uint32(index)), Kind: emanepb.Slot_IDLE.Enum()}
	switch s.Kind {
	case tdma.Transmit:
		slot.Kind = emanepb.Slot_TRANSMIT.Enum()
		slot.Transmit = &emanepb.Transmit{
			FrequencyHertz:    unless(usual.FrequencyHertz, s.FrequencyHertz),
			RateBitsPerSecond: unless(usual.RateBitsPerSecond, s.RateBitsPerSecond),
			Class:             unless(uint32(usual.Class), uint32(s.Class)),
			PowerDbm:          unless(usual.PowerDBm, s.PowerDBm),
			Destination:       unless(0, uint32(s.Destination)),
		}
	case tdma.Receive:
		slot.Kind, slot.Receive = emanepb.Slot_RECEIVE.Enum(), &emanepb.Receive{FrequencyHertz: new(s.FrequencyHertz)}
	}
	return slot
}

// unless returns nil for the usual value.
func unless[T comparable](usual, v T) *T {
	if v == usual {
		return nil
	}
	return &v
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
	// eventHeader bounds the bytes of an event's tag and length.
	eventHeader = 4
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
	var some []*emanepb.Event
	size := 0
	flush := func() error {
		if len(some) == 0 {
			return nil
		}
		d, err := s.datagram(some)
		all, some, size = append(all, d), nil, 0
		return err
	}
	for _, e := range events {
		one := &emanepb.Event{Nem: new(uint32(e.NEM)), Kind: new(uint32(e.ID)), Data: e.Data}
		n := proto.Size(one)
		if n > maxDatagram-100 {
			return nil, fmt.Errorf("event %d for NEM %d: %d bytes, more than a datagram has room for", e.ID, e.NEM, n)
		}
		if size+n > usualDatagram {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		some, size = append(some, one), size+n+eventHeader
	}
	return all, flush()
}

func (s *Source) datagram(events []*emanepb.Event) ([]byte, error) {
	s.sequence++
	b, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, 2), &emanepb.Datagram{Publisher: s.ID[:], Sequence: new(s.sequence), Events: &emanepb.Events{Events: events}})
	if err != nil {
		return nil, fmt.Errorf("datagram of %d events: %w", len(events), err)
	}
	binary.BigEndian.PutUint16(b, uint16(len(b)-2))
	return b, nil
}
