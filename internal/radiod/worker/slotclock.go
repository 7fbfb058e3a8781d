package worker

import (
	"sync/atomic"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/tdma"
)

// slotClock is what a network's time slots go by: the CLOCK_REALTIME of one of its hosts, whom the others follow by what they
// measure of it. Where hosts' clocks differ, all have the same slots nevertheless.
type slotClock struct {
	// followed is the other host's CLOCK_REALTIME less this one's CLOCK_MONOTONIC in nanoseconds; 0 where this host's own holds.
	followed atomic.Int64
}

// offset from CLOCK_MONOTONIC in nanoseconds.
func (c *slotClock) offset() int64 {
	if followed := c.followed.Load(); followed != 0 {
		return followed
	}
	return tdma.EpochOffset()
}

// agrees tells that another host's slot lies where it lies here: the time that it begins at by the measured difference of
// clocks, and the index that the other host counts for it, are no more than half a slot apart.
func (c *slotClock) agrees(s *radio.Shipment) bool {
	if s.Slot == 0 {
		return true // the waveform has none
	}
	off := s.Start + c.offset() - s.Slot*s.SlotDuration
	return max(off, -off) <= s.SlotDuration/2
}

// followClocks has each network's slots go by the clock of that host which has the first name of those that can be reached.
func (h *Hosts) followClocks() {
	h.wiring.RLock()
	defer h.wiring.RUnlock()
	now := clock.Monotonic()
	ahead := h.Told(now) - now
	for _, s := range h.spreads {
		first, epoch := h.Host, int64(0)
		for name, far := range s.hosts {
			if _, lost := h.lost[name]; lost || name >= first || far.peer == nil {
				continue
			}
			if there := far.peer.Clock(); there.Known {
				first, epoch = name, there.Epoch+ahead
			}
		}
		s.clock.followed.Store(epoch)
	}
}
