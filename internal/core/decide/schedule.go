package decide

import (
	"fmt"
	"time"
	_ "time/tzdata" // the operator's image has no time zones

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// maxClockError is how far in the future the last scheduled time may be. Beyond it the operator's clock must have been wrong.
const maxClockError = 24 * time.Hour

// ParseSchedule reads a schedule and its time zone.
func ParseSchedule(s *v1alpha1.Schedule) (cron.Schedule, error) {
	zone := s.TimeZone
	if zone == "" {
		zone = "Etc/UTC"
	}
	location, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return nil, fmt.Errorf("spec.schedule.timeZone: %s is no IANA time zone such as Europe/Oslo", zone)
	}
	schedule, err := cron.ParseStandard(s.Cron)
	fields, ok := schedule.(*cron.SpecSchedule)
	if err != nil || !ok {
		return nil, fmt.Errorf("spec.schedule.cron: %q: use five fields (minute 0-59, hour 0-23, day of month 1-31, month 1-12, day of week 0-6) or @daily", s.Cron)
	}
	if fields.Location != time.Local {
		return nil, fmt.Errorf("spec.schedule.cron: %q: give the time zone in timeZone", s.Cron)
	}
	fields.Location = location
	if fields.Next(time.Now()).IsZero() {
		return nil, fmt.Errorf("spec.schedule.cron: %q never comes", s.Cron)
	}
	return schedule, nil
}

// lastDue is the last time of a schedule after one time and not after another, zero for none.
func lastDue(schedule cron.Schedule, after, now time.Time) (due time.Time) {
	from := now
	for window := time.Minute; from.After(after); window *= 2 {
		from = now.Add(-window)
		if from.Before(after) {
			from = after
		}
		if next := schedule.Next(from); !next.IsZero() && !next.After(now) {
			break
		}
	}
	for next := schedule.Next(from); !next.IsZero() && !next.After(now); next = schedule.Next(next) {
		due = next
	}
	return due
}

// startDueRound starts the next round if it is due.
func (s *step) startDueRound() error {
	if s.spec.Schedule == nil {
		s.status.NextScheduleTime, s.status.DueTime = nil, nil
		if s.status.Round == 0 && !s.spec.Suspend {
			s.beginRound()
		}
		return nil
	}
	schedule, err := ParseSchedule(s.spec.Schedule)
	if err != nil {
		return err
	}
	next := schedule.Next(s.now)
	s.status.NextScheduleTime = &metav1.Time{Time: next}
	s.requeueAfter(next.Sub(s.now))
	if due := lastDue(schedule, s.lastScheduled(), s.now); !due.IsZero() {
		s.scheduleRound(due)
	}
	if s.spec.Suspend {
		s.status.DueTime = nil
	}
	if s.status.DueTime != nil && !s.isRoundActive() {
		s.beginRound()
	}
	return nil
}

// isRoundActive reports whether a round is active.
func (s *step) isRoundActive() bool { return s.status.Round > 0 && !s.isRoundFinished() }

// lastScheduled is the time up to which the schedule is handled.
func (s *step) lastScheduled() time.Time {
	last := s.campaign.CreationTimestamp.Time
	if s.status.LastScheduleTime != nil {
		last = s.status.LastScheduleTime.Time
	}
	if last.Sub(s.now) > maxClockError {
		return s.now
	}
	return last
}

// scheduleRound decides about a due round.
func (s *step) scheduleRound(due time.Time) {
	deadline := s.spec.Schedule.StartingDeadline.Std()
	if deadline == 0 {
		deadline = time.Hour
	}
	moment := &metav1.Time{Time: due}
	switch {
	case s.now.Sub(due) > deadline:
		s.addEvent(true, "RoundLeftOut", "the round due at %s could not start within %s", due.UTC().Format(time.RFC3339), deadline)
	case s.spec.Suspend:
		return // it starts if the campaign is resumed before the deadline
	case s.isRoundActive() && s.spec.Schedule.ConcurrencyPolicy != v1alpha1.ConcurrencyReplace:
		s.addEvent(true, "RoundLeftOut", "the round due at %s was left out: round %d is still active", due.UTC().Format(time.RFC3339), s.status.Round)
	default:
		s.status.DueTime = moment
	}
	s.status.LastScheduleTime = moment
}

func (s *step) beginRound() {
	now := metav1.NewTime(s.now)
	s.status.Round++
	s.status.RoundStartTime, s.status.RoundCompletionTime, s.status.Runs, s.status.DueTime = &now, nil, nil, nil
	s.addEvent(false, "RoundStarted", "round %d starts", s.status.Round)
}
