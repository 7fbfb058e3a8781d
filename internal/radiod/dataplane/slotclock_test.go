package dataplane

import (
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio"
)

func TestASlotThatLiesElsewhereByThisHostsClockIsOfNoUse(t *testing.T) {
	const slot = int64(5 * time.Millisecond)
	var c slotClock
	c.followed.Store(1_700_000_000_000_000_000)
	index := int64(1_700_000_000_000_000_000)/slot + 1000
	start := 1000 * slot
	for name, s := range map[string]struct {
		shipment radio.Shipment
		agrees   bool
	}{
		"where it should be":              {radio.Shipment{Slot: index, SlotDuration: slot, Start: start, Due: start + slot}, true},
		"off by the error of clocks":      {radio.Shipment{Slot: index, SlotDuration: slot, Start: start - 200e3, Due: start - 200e3 + slot}, true},
		"off by a slot":                   {radio.Shipment{Slot: index + 1, SlotDuration: slot, Start: start, Due: start + slot}, false},
		"off by a quarter of a second":    {radio.Shipment{Slot: index, SlotDuration: slot, Start: start + 250e6, Due: start + 250e6 + slot}, false},
		"slots of another length":         {radio.Shipment{Slot: index / 2, SlotDuration: 2 * slot, Start: start, Due: start + 2*slot}, true},
		"of a waveform that has no slots": {radio.Shipment{Start: start + 250e6, Due: start + 250e6}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.agrees(&s.shipment); got != s.agrees {
				t.Errorf("agrees: %v; want %v", got, s.agrees)
			}
		})
	}
}
