package dataplane

import (
	"sync/atomic"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
)

// slotClock is the clock of a network's time slots: the CLOCK_REALTIME of one of its hosts, which the others
// follow. So all hosts have the same slots even if their clocks differ.
type slotClock struct {
	// followed is the other host's CLOCK_REALTIME minus this one's CLOCK_MONOTONIC in nanoseconds; 0 for this
	// host's own clock.
	followed atomic.Int64
}

// offset from CLOCK_MONOTONIC in nanoseconds.
func (c *slotClock) offset() int64 {
	if followed := c.followed.Load(); followed != 0 {
		return followed
	}
	return clock.EpochOffset()
}

// agrees reports whether another host's slot is the same here. Its index and its start by the measured
// difference of clocks may differ by at most half a slot.
func (c *slotClock) agrees(s *radio.Shipment) bool {
	if s.Slot == 0 {
		return true // the waveform has no slots
	}
	off := s.Start + c.offset() - s.Slot*s.SlotDuration
	return max(off, -off) <= s.SlotDuration/2
}
