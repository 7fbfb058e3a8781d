package emaned

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/radio"
)

// said is what a process has said of itself since its start.
func said(timers uint64, meanLateness time.Duration, rewritten, slotsMissed uint64) *emane.Statistics {
	s := &emane.Statistics{Timers: timers, TimerLateness: time.Duration(timers) * meanLateness, Rewritten: rewritten}
	s.SlotsMissed = slotsMissed
	return s
}

func TestAProcessIsLateByTheTimersBetweenTwoReadings(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		before, now *emane.Statistics
		worst       time.Duration // 0 for on time
	}{
		"timers in time":                    {said(100, ms, 0, 0), said(200, ms, 0, 0), 0},
		"late by less than counts":          {said(100, ms, 0, 0), said(200, 3*ms/2, 0, 0), 0},
		"late timers":                       {said(100, ms, 0, 0), said(200, 3*ms, 0, 0), 5 * ms},
		"late before, in time now":          {said(100, 9*ms, 0, 0), said(1000, 9*ms/10, 0, 0), 0},
		"no timers between":                 {said(100, 9*ms, 0, 0), said(100, 9*ms, 0, 0), 0},
		"frames whose time was given up":    {said(100, ms, 4, 0), said(200, ms, 5, 0), 10 * ms},
		"frames given up and later timers":  {said(100, ms, 4, 0), said(200, 11*ms, 5, 0), 21 * ms},
		"frames that were given up earlier": {said(100, ms, 5, 0), said(200, ms, 5, 0), 0},
	} {
		t.Run(name, func(t *testing.T) {
			var d Driver
			d.lateness.add(1, c.before, c.now, 1000, 2000)
			var want []radio.Interval
			if c.worst > 0 {
				want = []radio.Interval{{From: 1000, To: 2000, Worst: int64(c.worst)}}
			}
			if diff := cmp.Diff(want, d.Late(), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if again := d.Late(); len(again) > 0 {
				t.Errorf("%+v is reported twice", again)
			}
		})
	}
}

func TestARestartedProcessIsNotLateByItsPredecessor(t *testing.T) {
	var d Driver
	d.lateness.add(1, said(1000, time.Millisecond, 7, 50), said(10, time.Millisecond, 0, 0), 1000, 2000)
	if late, missed := d.Late(), d.MissedSlots(1); len(late)+len(missed) > 0 {
		t.Errorf("late %+v, missed slots %+v; want neither", late, missed)
	}
}

func TestMissedSlotsAreThoseOfTheirNode(t *testing.T) {
	var d Driver
	d.lateness.add(1, said(10, 0, 0, 2), said(20, 0, 0, 5), 1000, 2000)
	d.lateness.add(2, said(10, 0, 0, 4), said(20, 0, 0, 4), 1000, 2000)
	want := []radio.Interval{{From: 1000, To: 2000, Count: 3}}
	if diff := cmp.Diff(want, d.MissedSlots(1)); diff != "" {
		t.Errorf("node 1: %s", diff)
	}
	if missed := d.MissedSlots(2); len(missed) > 0 {
		t.Errorf("node 2 has missed slots %+v; want none", missed)
	}
	if again := d.MissedSlots(1); len(again) > 0 {
		t.Errorf("%+v is reported twice", again)
	}
}
