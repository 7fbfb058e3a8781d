// Package decide says how a campaign goes on. It is pure: a step changes the campaign's status, from its spec, from what is seen of its
// experiments and from the time, and gives the actions that are due. Actions are taken only once the status that asks for them has been
// written: a run is recorded as started before its experiment is made, so that no run is ever made twice.
package decide

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/campaign/matrix"
)

// ObservedExperiment is what is known of an experiment.
type ObservedExperiment struct {
	Name  string
	UID   types.UID
	Phase v1alpha1.ExperimentPhase
	// Owned tells that the campaign controls it.
	Owned bool
	// Gone tells that it is no longer there; Phase is then what the archive says of it, if anything.
	Gone bool
	// Deleting tells that it is being deleted.
	Deleting bool
	// Round that it is a run of; 1 without a schedule.
	Round          int64
	CompletionTime *metav1.Time
	Results        *v1alpha1.ResultsSummary
	Message        string
}

// Observed is what is seen of a campaign's experiments, by name: those that it controls, and others that have the name of one of its runs.
type Observed map[string]ObservedExperiment

// Actions that are due once the status has been written.
type Actions struct {
	// Create the experiments of these runs, by name.
	Create []string
	// Stop these experiments early.
	Stop []ObservedExperiment
	// Delete these experiments: they are more than the history keeps.
	Delete []ObservedExperiment
	// Compare the runs of the round that is over.
	Compare bool
	// RequeueAfter is the longest time until the next step; 0 for none.
	RequeueAfter time.Duration
	// Events are worth an event.
	Events []Event
}

// Event is worth an event.
type Event struct {
	Warning         bool
	Reason, Message string
}

// step is one step of a campaign.
type step struct {
	campaign *v1alpha1.Campaign
	spec     *v1alpha1.CampaignSpec
	status   *v1alpha1.CampaignStatus
	observed Observed
	now      time.Time
	accepted bool
	actions  Actions
	expanded *matrix.Plan
}

// Step takes a campaign on. Unless it is accepted nothing is begun, and what has been begun goes on to its end.
func Step(c *v1alpha1.Campaign, accepted bool, world Observed, now time.Time) (Actions, error) {
	before := c.Status.DeepCopy()
	s := &step{campaign: c, spec: &c.Spec, status: &c.Status, observed: world, now: now, accepted: accepted}
	s.observe()
	if accepted {
		if err := s.startDueRound(); err != nil {
			return s.actions, err
		}
		if err := s.continueRound(); err != nil {
			return s.actions, err
		}
	}
	s.completeRound()
	s.count()
	s.describe()
	s.estimate(before)
	s.addActions()
	return s.actions, nil
}

func (s *step) addEvent(warning bool, reason, format string, args ...any) {
	s.actions.Events = append(s.actions.Events, Event{warning, reason, fmt.Sprintf(format, args...)})
}

func (s *step) requeueAfter(d time.Duration) {
	if d = max(d, 10*time.Millisecond); s.actions.RequeueAfter == 0 || d < s.actions.RequeueAfter {
		s.actions.RequeueAfter = d
	}
}

// isStarted tells that a run has been recorded as started, whatever came of it.
func isStarted(run *v1alpha1.CampaignRun) bool { return run.StartTime != nil }

// IsDone tells that nothing will come of a run any more.
func IsDone(run *v1alpha1.CampaignRun) bool {
	switch run.Phase {
	case v1alpha1.RunSucceeded, v1alpha1.RunFailed, v1alpha1.RunSkipped, v1alpha1.RunLost:
		return true
	}
	return false
}

// IsActive tells that a run has been started and is not done.
func IsActive(run *v1alpha1.CampaignRun) bool { return isStarted(run) && !IsDone(run) }

func isFailed(run *v1alpha1.CampaignRun) bool {
	return run.Phase == v1alpha1.RunFailed || run.Phase == v1alpha1.RunLost
}

// observe what became of the runs that are under way. One that is done stays as it is, whatever becomes of its experiment.
func (s *step) observe() {
	for i := range s.status.Runs {
		run := &s.status.Runs[i]
		seen, found := s.observed[run.Name]
		if !IsActive(run) || !found {
			continue
		}
		if run.UID == "" && !seen.Owned {
			s.end(run, v1alpha1.RunFailed, fmt.Sprintf("there is an experiment %s already, which is not this campaign's: delete or rename it", run.Name))
			continue
		}
		if run.UID == "" {
			run.UID, run.Message = seen.UID, ""
		}
		switch {
		case seen.Phase == v1alpha1.PhaseSucceeded || seen.Phase == v1alpha1.PhaseFailed:
			run.Results, run.CompletionTime = seen.Results, seen.CompletionTime
			s.end(run, v1alpha1.RunPhase(seen.Phase), seen.Message)
		case seen.Gone:
			s.end(run, v1alpha1.RunLost, "its experiment was deleted before it had finished")
		case seen.Phase == "":
			run.Phase = v1alpha1.RunPhase(v1alpha1.PhaseQueued)
		default:
			run.Phase = v1alpha1.RunPhase(seen.Phase)
		}
	}
}

// maxMessage of a run, of which a status has up to a thousand.
const maxMessage = 300

func (s *step) end(run *v1alpha1.CampaignRun, phase v1alpha1.RunPhase, message string) {
	run.Phase = phase
	if run.CompletionTime == nil {
		now := metav1.NewTime(s.now)
		run.CompletionTime = &now
	}
	if phase != v1alpha1.RunSucceeded {
		run.Message = shorten(message, maxMessage)
		s.addEvent(true, "Run"+string(phase), "%s: %s", run.Name, run.Message)
	}
}

// continueRound with the round that is under way, or take up one that was over where the campaign has been edited.
func (s *step) continueRound() error {
	status := s.status
	if status.Round == 0 || (s.spec.Schedule != nil && status.RoundCompletionTime != nil) {
		return nil
	}
	plan, err := s.plan()
	if err != nil {
		return err
	}
	if err := s.mergePlan(plan); err != nil {
		return err
	}
	s.applyStopConditions()
	if status.RoundCompletionTime != nil && slices.ContainsFunc(status.Runs, func(r v1alpha1.CampaignRun) bool { return r.Phase == v1alpha1.RunPending }) {
		status.RoundCompletionTime, status.Comparison = nil, nil
		status.Rounds = slices.DeleteFunc(status.Rounds, func(r v1alpha1.RoundSummary) bool { return r.Number == status.Round })
		s.addEvent(false, "RoundReopened", "the campaign was edited: there are more runs to make")
	}
	return s.start(plan)
}

// plan of the round that is under way, expanded once: no other begins once it has been asked for.
func (s *step) plan() (*matrix.Plan, error) {
	if s.expanded == nil {
		plan, errs := matrix.Expand(s.campaign.Name, s.roundInNames(), s.spec)
		if len(errs) > 0 {
			return nil, errs.ToAggregate()
		}
		s.expanded = plan
	}
	return s.expanded, nil
}

// roundInNames is the round that names have; 0 for none.
func (s *step) roundInNames() int64 {
	if s.spec.Schedule == nil {
		return 0
	}
	return s.status.Round
}

// start as many runs as may go on at once.
func (s *step) start(plan *matrix.Plan) error {
	room := int(max(1, s.spec.Parallelism))
	for i := range s.status.Runs {
		if IsActive(&s.status.Runs[i]) {
			room--
		}
	}
	if s.spec.Suspend || s.status.DueTime != nil {
		return nil
	}
	points := map[string]*matrix.Point{}
	for _, point := range plan.Points {
		points[matrix.Key(point.Name, point.Levels, point.Included)] = point
	}
	for i := range s.status.Runs {
		run := &s.status.Runs[i]
		if run.Phase != v1alpha1.RunPending || room <= 0 {
			continue
		}
		spec, err := points[key(run)].Spec(&s.spec.Template.Spec, run.Seed)
		if err != nil {
			return fmt.Errorf("point %s: %w", run.Point, err)
		}
		now := metav1.NewTime(s.now)
		run.Phase, run.StartTime, run.SpecDigest = v1alpha1.RunPhase(v1alpha1.PhaseQueued), &now, spec.Digest
		room--
	}
	return nil
}

func key(run *v1alpha1.CampaignRun) string { return matrix.Key(run.Point, run.Levels, run.Included) }

// completeRound the round once all of its runs are done.
func (s *step) completeRound() {
	status := s.status
	if status.Round == 0 || len(status.Runs) == 0 {
		return
	}
	if status.RoundCompletionTime == nil {
		for i := range status.Runs {
			if !IsDone(&status.Runs[i]) {
				return
			}
		}
		now := metav1.NewTime(s.now)
		status.RoundCompletionTime = &now
	}
	if status.Comparison == nil || status.Comparison.Round != status.Round {
		return
	}
	s.finishRound()
}

// finishRound a round whose comparison is there, or is known to be none.
func (s *step) finishRound() {
	status := s.status
	s.count()
	phase, message := s.roundResult()
	summary := v1alpha1.RoundSummary{
		Number: status.Round, Phase: phase, Message: message, Runs: status.Counts,
		StartTime: *status.RoundStartTime, CompletionTime: *status.RoundCompletionTime,
	}
	for i := range status.Runs {
		if run := &status.Runs[i]; run.Phase == v1alpha1.RunSucceeded && len(summary.UIDs) < maxUIDs {
			summary.UIDs = append(summary.UIDs, run.UID)
		}
	}
	rounds := slices.DeleteFunc(slices.Clone(status.Rounds), func(r v1alpha1.RoundSummary) bool { return r.Number == status.Round })
	rounds = slices.Insert(rounds, 0, summary)
	if !s.isRoundFinished() {
		s.addEvent(phase == v1alpha1.CampaignFailed, "Round"+string(phase), "round %d: %s", status.Round, message)
	}
	status.Rounds = rounds[:min(len(rounds), 1+int(s.roundsKept()))]
}

// maxUIDs of a round that is over.
const maxUIDs = 100

func (s *step) roundsKept() int32 {
	const byDefault, most = 3, 49
	if s.spec.History.Rounds == nil {
		return byDefault
	}
	return min(most, *s.spec.History.Rounds)
}

// isRoundFinished tells that the last round that was begun has been concluded.
func (s *step) isRoundFinished() bool {
	status := s.status
	return status.RoundCompletionTime != nil && len(status.Rounds) > 0 && status.Rounds[0].Number == status.Round
}

// roundResult on a round that is over.
func (s *step) roundResult() (v1alpha1.CampaignPhase, string) {
	counts, message := s.status.Counts, ""
	message = fmt.Sprintf("%d of %d runs succeeded", counts.Succeeded, counts.Total)
	if counts.Skipped > 0 {
		message += fmt.Sprintf(", %d were skipped", counts.Skipped)
	}
	if counts.Failed > 0 {
		message += fmt.Sprintf(", %d failed: %s", counts.Failed, s.firstFailure())
	}
	if c := s.status.Comparison; c != nil && c.Round == s.status.Round && c.Message != "" {
		message += "; " + c.Message
	}
	tolerated := int32(0)
	if s.spec.StopWhen.Failures != nil {
		tolerated = *s.spec.StopWhen.Failures - 1
	}
	if counts.Failed > tolerated || counts.Succeeded == 0 {
		return v1alpha1.CampaignFailed, shorten(message, 1000)
	}
	return v1alpha1.CampaignSucceeded, shorten(message, 1000)
}

func (s *step) firstFailure() string {
	for i := range s.status.Runs {
		if run := &s.status.Runs[i]; isFailed(run) {
			return run.Name + ": " + run.Message
		}
	}
	return ""
}
