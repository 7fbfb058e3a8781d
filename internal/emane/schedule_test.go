package emane

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"vignette.dev/vignette/internal/emane/emanepb"
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

// slotsOf reads an event as EMANE does: frames that it leaves out are idle, and slots listen.
func slotsOf(t *testing.T, event Event, s *tdma.Schedule) map[[2]int]tdma.Slot {
	t.Helper()
	read := &emanepb.Schedule{}
	if err := proto.Unmarshal(event.Data, read); err != nil {
		t.Fatal(err)
	}
	all := map[[2]int]tdma.Slot{}
	for f := range s.Structure().Frames {
		for i := range s.Structure().Slots {
			all[[2]int{f, i}] = tdma.Slot{}
		}
	}
	for _, frame := range read.GetFrames() {
		f := int(frame.GetIndex())
		for i := range s.Structure().Slots {
			all[[2]int{f, i}] = tdma.Slot{Kind: tdma.Receive, FrequencyHertz: read.GetFrequencyHertz()}
		}
		for _, slot := range frame.GetSlots() {
			all[[2]int{f, int(slot.GetIndex())}] = slotOf(slot, read)
		}
	}
	return all
}

func slotOf(slot *emanepb.Slot, usual *emanepb.Schedule) tdma.Slot {
	tx := slot.GetTransmit()
	switch slot.GetKind() {
	case emanepb.Slot_TRANSMIT:
		return tdma.Slot{
			Kind:              tdma.Transmit,
			FrequencyHertz:    *given(tx.FrequencyHertz, usual.FrequencyHertz),
			RateBitsPerSecond: *given(tx.RateBitsPerSecond, usual.RateBitsPerSecond),
			Class:             int(*given(tx.Class, usual.Class)),
			PowerDBm:          *given(tx.PowerDbm, usual.PowerDbm),
			Destination:       int(tx.GetDestination()),
		}
	case emanepb.Slot_RECEIVE:
		return tdma.Slot{Kind: tdma.Receive, FrequencyHertz: slot.GetReceive().GetFrequencyHertz()}
	default:
		return tdma.Slot{}
	}
}

func given[T any](own, usual *T) *T {
	if own != nil {
		return own
	}
	return usual
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
