package tdma

import (
	"bytes"
	"encoding/gob"
	"reflect"
	"testing"
	"time"
)

func sentOn(t *testing.T, s *Schedule) *Schedule {
	t.Helper()
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(s); err != nil {
		t.Fatal(err)
	}
	got := &Schedule{}
	if err := gob.NewDecoder(&b).Decode(got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestAScheduleIsTheSameInAnotherProcess(t *testing.T) {
	generated, err := Generate(Structure{Frames: 3, Slots: 7, SlotDuration: time.Millisecond, BandwidthHertz: 1e6}, []int{1, 2, 9}, 1e6, 300e6, nil)
	if err != nil {
		t.Fatal(err)
	}
	written, err := ParseSchedule([]byte(`<emane-tdma-schedule><structure frames="1" slots="3" slotoverhead="0" slotduration="20000" bandwidth="1M"/>`+
		`<multiframe frequency="300M" power="0" class="0" datarate="1M"><frame index="0"><slot index="0" nodes="1"><tx destination="2"/></slot>`+
		`<slot index="1:2" nodes="2"/></frame></multiframe></emane-tdma-schedule>`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*Schedule{"generated": generated, "written": written} {
		if got := sentOn(t, s); !reflect.DeepEqual(got, s) {
			t.Errorf("%s: got %+v; want %+v", name, got, s)
		}
	}
}

func TestAnIncompleteEncodedScheduleIsRefused(t *testing.T) {
	structure := Structure{Frames: 1, Slots: 1, SlotDuration: time.Millisecond, BandwidthHertz: 1e6}
	for name, e := range map[string]encodedSchedule{
		"no structure":      {},
		"an unknown slot":   {Structure: structure, Slots: []Slot{{}}, Frames: [][]uint16{{1}}},
		"too many slots":    {Structure: structure, Slots: []Slot{{}}, Frames: [][]uint16{{0, 0}}},
		"an unknown frame":  {Structure: structure, Slots: []Slot{{}}, Plans: map[int][]int{1: {0}}},
		"a plan too long":   {Structure: structure, Slots: []Slot{{}}, Frames: [][]uint16{{0}}, Plans: map[int][]int{1: {0, 0}}},
		"a negative number": {Structure: structure, Slots: []Slot{{}}, Frames: [][]uint16{{0}}, Plans: map[int][]int{1: {-1}}},
	} {
		var b bytes.Buffer
		if err := gob.NewEncoder(&b).Encode(&e); err != nil {
			t.Fatal(err)
		}
		if err := new(Schedule).GobDecode(b.Bytes()); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
