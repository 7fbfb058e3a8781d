package decide

import (
	"cmp"
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
	zone := cmp.Or(s.TimeZone, "Etc/UTC")
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
	if s.StartingDeadline != "" && s.StartingDeadline.Std() == 0 {
		return nil, fmt.Errorf("spec.schedule.startingDeadline: %s leaves out every round: use a time such as 10m", s.StartingDeadline)
	}
	return everyDay{fields}, nil
}

// everyDay is a schedule that leaves out no day.
type everyDay struct{ *cron.SpecSchedule }

// Next corrects the library's, which east of Greenwich leaves out a whole day if spring skips its midnight.
func (s everyDay) Next(after time.Time) time.Time {
	next, local := s.SpecSchedule.Next(after), after.In(s.Location)
	for day := 1; ; day++ {
		begins := time.Date(local.Year(), local.Month(), local.Day()+day, 0, 0, 0, 0, s.Location)
		if !begins.Before(next) {
			return next
		}
		if begins.Hour() != 1 {
			continue
		}
		if found := s.SpecSchedule.Next(begins.Add(-time.Second)); found.Before(next) {
			return found
		}
	}
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
	if s.lastScheduled().Sub(s.now) > maxClockError {
		s.status.LastScheduleTime = &metav1.Time{Time: s.now} // kept, as the next round is due after it
	}
	rescheduled := s.isRescheduled()
	next := schedule.Next(s.now)
	s.status.NextScheduleTime = &metav1.Time{Time: next}
	s.requeueAfter(next.Sub(s.now))
	switch due := lastDue(schedule, s.lastScheduled(), s.now); {
	case due.IsZero():
	case rescheduled:
		s.status.LastScheduleTime = &metav1.Time{Time: due}
	default:
		s.scheduleRound(due)
	}
	s.leaveOutHeldRound()
	if s.replaces() && !s.isRoundActive() {
		s.beginRound()
	}
	return nil
}

// isRescheduled reports whether the campaign was edited before its next round was due. Times up to now that the edited schedule
// names were not due then.
func (s *step) isRescheduled() bool {
	accepted, next := s.status.AcceptedGeneration, s.status.NextScheduleTime
	return accepted != 0 && accepted != s.campaign.Generation && (next == nil || next.After(s.now))
}

// leaveOutHeldRound leaves out a due round that could not start before its deadline, because the campaign was suspended.
func (s *step) leaveOutHeldRound() {
	if s.status.DueTime == nil || !s.spec.Suspend && s.status.Phase != v1alpha1.CampaignSuspended {
		return
	}
	due := s.status.DueTime.Time
	if s.isTooLate(due) {
		s.status.DueTime = nil
		return
	}
	s.requeueAfter(due.Add(s.startingDeadline()).Sub(s.now) + time.Second)
}

// replaces reports whether the active round gives way to one that is due. While the campaign is suspended it does not.
func (s *step) replaces() bool { return s.status.DueTime != nil && !s.spec.Suspend }

// isRoundActive reports whether a round is active.
func (s *step) isRoundActive() bool { return s.status.Round > 0 && !s.isRoundFinished() }

// lastScheduled is the time up to which the schedule is handled.
func (s *step) lastScheduled() time.Time {
	if s.status.LastScheduleTime != nil {
		return s.status.LastScheduleTime.Time
	}
	return s.campaign.CreationTimestamp.Time
}

// startingDeadline is the time within which a due round must start.
func (s *step) startingDeadline() time.Duration {
	if given := s.spec.Schedule.StartingDeadline; given != "" {
		return given.Std()
	}
	return time.Hour
}

// isTooLate reports whether a due round is past its deadline, with an event if it is.
func (s *step) isTooLate(due time.Time) bool {
	deadline := s.startingDeadline()
	if s.now.Sub(due) <= deadline {
		return false
	}
	s.addEvent(true, "RoundLeftOut", "the round due at %s could not start within %s", due.UTC().Format(time.RFC3339), deadline)
	return true
}

// scheduleRound decides about a due round. A suspended campaign begins it once it is resumed.
func (s *step) scheduleRound(due time.Time) {
	moment := &metav1.Time{Time: due}
	switch {
	case s.isTooLate(due):
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
