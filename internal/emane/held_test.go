package emane

import (
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/internal/scenario/scenariotest"
)

func own(t *testing.T, replacements ...string) *tdma.Schedule {
	t.Helper()
	s, err := tdma.ParseSchedule([]byte(strings.NewReplacer(replacements...).Replace(ownSchedule)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// heldBy is what EMANE's tables say of a NEM's schedule.
func heldBy(nem int, s *tdma.Schedule) *HeldSchedule {
	structure := s.Structure()
	h := &HeldSchedule{structure: Table{Labels: []string{"Name", "Value"}}, slots: Table{Labels: []string{"Index", "Frame", "Slot", "Type", "Frequency", "Data Rate", "Power", "Class", "Destination"}}}
	for name, value := range map[string]any{"bandwidth": structure.BandwidthHertz, "frames": uint64(structure.Frames), "slots": uint64(structure.Slots),
		"slotduration": structure.SlotDuration.Microseconds(), "slotoverhead": structure.SlotOverhead.Microseconds()} {
		h.structure.Rows = append(h.structure.Rows, []any{name, value})
	}
	for f := range structure.Frames {
		for i := range structure.Slots {
			row := []any{uint64(len(h.slots.Rows)), uint64(f), uint64(i), "IDLE", "", "", "", "", ""}
			switch slot := s.Slot(nem, f, i); slot.Kind {
			case tdma.Receive:
				row[3], row[4] = "RX", slot.FrequencyHertz
			case tdma.Transmit:
				row = append(row[:3], "TX", slot.FrequencyHertz, slot.RateBitsPerSecond, slot.PowerDBm, uint64(slot.Class), uint64(slot.Destination))
			}
			h.slots.Rows = append(h.slots.Rows, row)
		}
	}
	return h
}

func TestAScheduleThatAProcessHasIsKnownByItsStructureAndSlots(t *testing.T) {
	for name, c := range map[string]struct {
		now         *tdma.Schedule
		rate        uint64
		first, then bool // of NEM 1 and NEM 2
	}{
		"the same":            {own(t), 0, true, true},
		"another rate":        {own(t), 380e3, false, false},
		"the rate of NEM 1":   {own(t), 1e6, true, false},
		"another overhead":    {own(t, `slotoverhead="5"`, `slotoverhead="6"`), 0, false, false},
		"another bandwidth":   {own(t, `bandwidth="1000000"`, `bandwidth="500000"`), 0, false, false},
		"a frame more":        {own(t, `frames="3"`, `frames="4"`), 0, false, false},
		"another power":       {own(t, `power="-3.5"`, `power="-3"`), 0, true, false},
		"another destination": {own(t, `destination="1"`, `destination="65535"`), 0, true, false},
		"another frequency":   {own(t, "310M", "311M"), 0, false, false},
	} {
		for nem, want := range map[int]bool{1: c.first, 2: c.then} {
			if got := heldBy(nem, own(t)).Is(nem, c.now, c.rate); got != want {
				t.Errorf("%s: NEM %d has it: %t, want %t", name, nem, got, want)
			}
		}
	}
	if none := (&HeldSchedule{}); none.Is(1, own(t), 0) || none.Rate() != 0 {
		t.Error("a process without a schedule has it")
	}
	if rate := heldBy(1, own(t)).Rate(); rate != 1e6 {
		t.Errorf("NEM 1 sends at %d bit/s, want 1000000", rate)
	}
}

func TestARealEMANEHasTheScheduleThatItWasSent(t *testing.T) {
	spec := slotted()
	spec.Radios = nil
	a := onAir(t, scenariotest.Open(t, inARow(t)), spec)
	for _, rate := range []uint64{0, 380e3} {
		a.repeat = func() []Event {
			return []Event{ScheduleAt(1, own(t), rate), ScheduleAt(2, own(t), rate), ScheduleAt(3, own(t), rate)}
		}
		for nem := 1; nem <= 3; nem++ { // the schedule does not name NEM 3, which EMANE lets be idle
			one := a.stations[nem]
			a.until(t, "the schedule", func() (bool, any) {
				held, err := ReadSchedule(one.control, []Component{{BuildID: one.layers[MAC], Layer: MAC}})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond)
				return held.Is(nem, own(t), rate), held
			})
		}
	}
}
