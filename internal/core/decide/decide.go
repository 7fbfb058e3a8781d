// Package decide decides the next step of a campaign. It is a pure function of the campaign, its observed experiments and the
// time. A step changes the status and returns actions. They are executed only once that status has been written. A run is
// recorded as started before its experiment is created, so that no run is created twice.
package decide

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/internal/core/matrix"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// ObservedExperiment is the state of an experiment.
type ObservedExperiment struct {
	Name  string
	UID   types.UID
	Phase v1alpha1.ExperimentPhase
	// Owned means that the campaign controls it.
	Owned bool
	// Gone means that it was deleted. Phase is then that of the archive, if any.
	Gone bool
	// Deleting means that it is being deleted, or will be because its campaign was.
	Deleting bool
	// Round is the round of its run, 1 without a schedule.
	Round          int64
	CompletionTime *metav1.Time
	Results        *v1alpha1.ResultsSummary
	Message        string
	// Stalled means that it waits for a person, as Message says.
	Stalled bool
}

// Observed are a campaign's experiments by name, and others with the name of one of its runs.
type Observed map[string]ObservedExperiment

// Actions to execute once the status has been written.
type Actions struct {
	// Create has the names of runs whose experiments to create.
	Create []string
	// Stop has experiments to stop early.
	Stop []ObservedExperiment
	// Delete has experiments beyond the history limits.
	Delete []ObservedExperiment
	// Compare means to compare the runs of the finished round.
	Compare bool
	// RequeueAfter is the time until the next step, 0 for none.
	RequeueAfter time.Duration
	// Events to record.
	Events []Event
}

// Event is a Kubernetes event.
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

// Step does one step of a campaign. Unless it is accepted nothing new starts, but active runs continue to their end.
func Step(c *v1alpha1.Campaign, accepted bool, world Observed, now time.Time) (Actions, error) {
	before := c.Status.DeepCopy()
	s := &step{campaign: c, spec: &c.Spec, status: &c.Status, observed: world, now: now, accepted: accepted}
	s.observe()
	s.takeBack()
	if accepted {
		if err := s.startDueRound(); err != nil {
			return s.actions, err
		}
		if err := s.continueRound(); err != nil {
			return s.actions, err
		}
		s.status.AcceptedGeneration = c.Generation
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

// isStarted reports whether a run is recorded as started, whatever its result.
func isStarted(run *v1alpha1.CampaignRun) bool { return run.StartTime != nil }

// IsDone reports whether a run has its final phase.
func IsDone(run *v1alpha1.CampaignRun) bool {
	switch run.Phase {
	case v1alpha1.RunSucceeded, v1alpha1.RunFailed, v1alpha1.RunSkipped, v1alpha1.RunLost:
		return true
	}
	return false
}

// IsActive reports whether a run is started and not done.
func IsActive(run *v1alpha1.CampaignRun) bool { return isStarted(run) && !IsDone(run) }

func isFailed(run *v1alpha1.CampaignRun) bool {
	return run.Phase == v1alpha1.RunFailed || run.Phase == v1alpha1.RunLost
}

// observe updates the active runs. A run that is done does not change, even if its experiment is deleted.
func (s *step) observe() {
	for i := range s.status.Runs {
		run := &s.status.Runs[i]
		seen, found := s.observed[run.Name]
		if !IsActive(run) || !found {
			continue
		}
		if run.UID == "" && !seen.Owned && seen.Deleting {
			run.Message = "waiting until the earlier experiment of this name is deleted"
			continue
		}
		if run.UID == "" && !seen.Owned {
			s.end(run, v1alpha1.RunFailed, fmt.Sprintf("there is an experiment %s already, which is not this campaign's: delete or rename it", run.Name))
			continue
		}
		if run.UID == "" {
			run.UID = seen.UID
		}
		switch {
		case seen.Phase == v1alpha1.PhaseSucceeded || seen.Phase == v1alpha1.PhaseFailed:
			run.Results, run.CompletionTime = seen.Results, seen.CompletionTime
			s.end(run, v1alpha1.RunPhase(seen.Phase), seen.Message)
		case seen.Gone:
			s.end(run, v1alpha1.RunLost, "its experiment was deleted before it had finished")
		default:
			run.Phase, run.Message = v1alpha1.RunPhase(cmp.Or(seen.Phase, v1alpha1.PhaseQueued)), ""
			if seen.Stalled {
				run.Message = wording.Shorten(seen.Message, maxMessage)
			}
		}
	}
}

// maxMessage limits the message of a run, because a status has up to a thousand runs.
const maxMessage = 300

func (s *step) end(run *v1alpha1.CampaignRun, phase v1alpha1.RunPhase, message string) {
	run.Phase, run.Message = phase, ""
	if run.CompletionTime == nil {
		now := metav1.NewTime(s.now)
		run.CompletionTime = &now
	}
	if phase != v1alpha1.RunSucceeded {
		run.Message = wording.Shorten(message, maxMessage)
		s.addEvent(true, "Run"+string(phase), "%s: %s", run.Name, run.Message)
	}
}

// takeBack makes runs pending again that could not be created, such as for a quota, while no run may start.
func (s *step) takeBack() {
	if s.accepted && !s.spec.Suspend && !s.replaces() {
		return
	}
	for i := range s.status.Runs {
		run := &s.status.Runs[i]
		if _, found := s.observed[run.Name]; IsActive(run) && run.UID == "" && !found {
			run.Phase, run.StartTime, run.SpecDigest, run.Message = v1alpha1.RunPending, nil, "", ""
		}
	}
}

// continueRound continues the active round, or reopens a finished one if the campaign has been edited.
func (s *step) continueRound() error {
	status := s.status
	if status.Round == 0 || (s.spec.Schedule != nil && status.RoundCompletionTime != nil) {
		return nil
	}
	plan, err := s.plan()
	if err != nil {
		return err
	}
	wanted := wantedRuns(plan)
	if err := s.mergePlan(plan, wanted); err != nil {
		return err
	}
	s.retry(wanted)
	s.applyStopConditions()
	if status.RoundCompletionTime != nil && slices.ContainsFunc(status.Runs, func(r v1alpha1.CampaignRun) bool { return r.Phase == v1alpha1.RunPending }) {
		status.RoundCompletionTime, status.Comparison = nil, nil
		status.Rounds = slices.DeleteFunc(status.Rounds, func(r v1alpha1.RoundSummary) bool { return r.Number == status.Round })
		s.addEvent(false, "RoundReopened", "the campaign was edited: there are more runs to make")
	}
	return s.start(plan)
}

// plan is the plan of the active round. It is expanded once, because no other round starts after the first call.
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

// roundInNames is the round in the names of experiments, 0 for none. A later round has it even if its schedule was removed, as
// experiments of an earlier one may have the names without it.
func (s *step) roundInNames() int64 {
	if s.spec.Schedule == nil && s.status.Round <= 1 {
		return 0
	}
	return s.status.Round
}

// start starts runs up to the limit of parallel ones.
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

// completeRound ends the round once all of its runs are done.
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

// finishRound finishes a round that has its comparison, or that needs none.
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

// maxUIDs limits the UIDs that are kept of a finished round.
const maxUIDs = 100

func (s *step) roundsKept() int32 {
	const byDefault = 3
	if s.spec.History.Rounds == nil {
		return byDefault
	}
	return *s.spec.History.Rounds
}

// isRoundFinished reports whether the last started round is finished.
func (s *step) isRoundFinished() bool {
	status := s.status
	return status.RoundCompletionTime != nil && len(status.Rounds) > 0 && status.Rounds[0].Number == status.Round
}

// roundResult is the result of a finished round.
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
		return v1alpha1.CampaignFailed, wording.Shorten(message, 1000)
	}
	return v1alpha1.CampaignSucceeded, wording.Shorten(message, 1000)
}

func (s *step) firstFailure() string {
	for i := range s.status.Runs {
		if run := &s.status.Runs[i]; isFailed(run) {
			return run.Name + ": " + run.Message
		}
	}
	return ""
}
