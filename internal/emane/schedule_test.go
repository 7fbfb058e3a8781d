package emane

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"vignette.dev/vignette/internal/radio/tdma"
)

// ownSchedule has all kinds of slots, with values of their own, and frames without a node.
const ownSchedule = `<emane-tdma-schedule>
  <structure frames="3" slots="6" slotoverhead="5" slotduration="5000" bandwidth="1000000"/>
  <multiframe frequency="300M" power="10" class="0" datarate="1M">
    <frame index="0">
      <slot index="0" nodes="1"/>
      <slot index="1" nodes="2"><tx frequency="310M" power="-3.5" class="3" datarate="250K" destination="1"/></slot>
      <slot index="1" nodes="1"><rx frequency="310M"/></slot>
      <slot index="2" nodes="1,2"><idle/></slot>
    </frame>
    <frame index="2" frequency="320M">
      <slot index="5" nodes="2"/>
    </frame>
  </multiframe>
</emane-tdma-schedule>`

// slotsOf reads an event as EMANE does, by the numbers of its tdmascheduleevent.proto.
func slotsOf(t *testing.T, event Event, s *tdma.Schedule) map[[2]int]tdma.Slot {
	t.Helper()
	structure, common := s.Structure(), tdma.Slot{}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	all := map[[2]int]tdma.Slot{}
	for f := range structure.Frames {
		for i := range structure.Slots {
			all[[2]int{f, i}] = tdma.Slot{}
		}
	}
	must(fields(event.Data, func(number protowire.Number, v value) error {
		switch number {
		case 3:
			common.FrequencyHertz = v.number
		case 4:
			common.RateBitsPerSecond = v.number
		case 5:
			common.Class = int(v.number)
		case 6:
			common.PowerDBm = math.Float64frombits(v.number)
		}
		return nil
	}))
	must(fields(event.Data, func(number protowire.Number, v value) error {
		if number != 1 {
			return nil
		}
		frame, given := -1, map[int]tdma.Slot{}
		err := fields(v.bytes, func(number protowire.Number, v value) error {
			if number == 1 {
				frame = int(v.number)
				return nil
			}
			i, slot, err := slotOf(v.bytes, common)
			given[i] = slot
			return err
		})
		for i := range structure.Slots {
			slot, is := given[i]
			if !is {
				slot = tdma.Slot{Kind: tdma.Receive, FrequencyHertz: common.FrequencyHertz}
			}
			all[[2]int{frame, i}] = slot
		}
		return err
	}))
	return all
}

func slotOf(message []byte, common tdma.Slot) (index int, slot tdma.Slot, err error) {
	err = fields(message, func(number protowire.Number, v value) error {
		switch number {
		case 1:
			index = int(v.number)
		case 2:
			slot.Kind = map[uint64]tdma.Kind{1: tdma.Transmit, 2: tdma.Receive, 3: tdma.Idle}[v.number]
			if slot.Kind == tdma.Transmit {
				slot = common
				slot.Kind = tdma.Transmit
			}
		case 3:
			return fields(v.bytes, func(number protowire.Number, v value) error {
				switch number {
				case 1:
					slot.FrequencyHertz = v.number
				case 2:
					slot.RateBitsPerSecond = v.number
				case 3:
					slot.Class = int(v.number)
				case 4:
					slot.PowerDBm = math.Float64frombits(v.number)
				case 5:
					slot.Destination = int(v.number)
				}
				return nil
			})
		case 4:
			return fields(v.bytes, func(_ protowire.Number, v value) error {
				slot.FrequencyHertz = v.number
				return nil
			})
		}
		return nil
	})
	return index, slot, err
}

func TestAScheduleEventSaysWhatANodeDoesInEachSlot(t *testing.T) {
	own, err := tdma.ParseSchedule([]byte(ownSchedule), nil)
	if err != nil {
		t.Fatal(err)
	}
	generated, err := Schedule(slotted())
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*tdma.Schedule{"own": own, "generated": generated} {
		for _, nem := range s.NEMs() {
			want := map[[2]int]tdma.Slot{}
			for f := range s.Structure().Frames {
				for i := range s.Structure().Slots {
					slot := s.Slot(nem, f, i)
					slot.OwnPower = false
					if slot.Kind == tdma.Receive {
						slot = tdma.Slot{Kind: tdma.Receive, FrequencyHertz: slot.FrequencyHertz}
					}
					want[[2]int{f, i}] = slot
				}
			}
			if diff := cmp.Diff(want, slotsOf(t, ScheduleFor(nem, s), s)); diff != "" {
				t.Errorf("%s, NEM id %d: %s", name, nem, diff)
			}
		}
	}
}

func TestAScheduleHasRoomInAnEventUpToItsSlotsToSend(t *testing.T) {
	spec := slotted()
	six := int32(1000)
	spec.Waveform.TDMA.Structure.Frames, spec.Waveform.TDMA.Structure.Slots = 6, &six
	s, err := Schedule(spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckSchedule(s); err != nil {
		t.Errorf("6000 slots of 3 nodes: %v; want room, as a third of them are a node's own", err)
	}
	if _, err := (&Source{}).Datagrams([]Event{ScheduleFor(1, s)}); err != nil {
		t.Error(err)
	}
	spec.Waveform.TDMA.Structure.Frames = 60
	if s, err = Schedule(spec); err != nil {
		t.Fatal(err)
	}
	err = CheckSchedule(s)
	if err == nil || !strings.Contains(err.Error(), "60 frames of 1000 slots are") {
		t.Fatalf("60000 slots: error %v", err)
	}
	if _, err := (&Source{}).Datagrams([]Event{ScheduleFor(1, s)}); err == nil {
		t.Error("60000 slots have room in a datagram after all")
	}
}
