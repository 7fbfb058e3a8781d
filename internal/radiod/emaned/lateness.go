package emaned

import (
	"time"

	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/radio"
)

// rewrittenAfter is EMANE's default of timesyncthreshold: a frame that arrives later counts as sent when it arrived.
const rewrittenAfter = 10 * time.Millisecond

// lateness has the times in which processes were late, by the differences of their counters. Times are those of the
// monotonic clock.
type lateness struct {
	missed map[int32]*radio.Intervals // of time slots, by NEM id
	late   radio.Intervals
}

// add notes what happened to a process between two readings of its counters.
func (l *lateness) add(nem int32, before, now *emane.Statistics, from, to int64) {
	if slots := now.SlotsMissed - min(before.SlotsMissed, now.SlotsMissed); slots > 0 {
		if l.missed == nil {
			l.missed = map[int32]*radio.Intervals{}
		}
		if l.missed[nem] == nil {
			l.missed[nem] = &radio.Intervals{}
		}
		l.missed[nem].Add(radio.Interval{From: from, To: to, Count: int64(slots)}) //nolint:gosec // slots of half a second
	}
	if worst := worstLateness(before, now); worst > radio.LateThreshold {
		l.late.Add(radio.Interval{From: from, To: to, Worst: worst})
	}
}

// worstLateness is the mean lateness of the process's timers, as EMANE reports no more, and at least that of frames whose
// times it gave up.
func worstLateness(before, now *emane.Statistics) (nanoseconds int64) {
	if timers := now.Timers - min(before.Timers, now.Timers); timers > 0 {
		nanoseconds = int64(now.TimerLateness-before.TimerLateness) / int64(timers) //nolint:gosec // timers of half a second
	}
	if now.Rewritten > before.Rewritten {
		nanoseconds = max(nanoseconds, int64(rewrittenAfter))
	}
	return nanoseconds
}

// MissedSlots returns when a member's slots were missed since the last call.
func (d *Driver) MissedSlots(nem int32) []radio.Interval {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := d.lateness.missed[nem]; i != nil {
		return i.Take()
	}
	return nil
}

// Late returns when processes were late since the last call.
func (d *Driver) Late() []radio.Interval {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lateness.late.Take()
}
