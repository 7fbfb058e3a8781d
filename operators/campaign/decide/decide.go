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

// Seen is what is known of an experiment.
type Seen struct {
	Name  string
	UID   types.UID
	Phase v1alpha1.ExperimentPhase
	// Ours tells that the campaign controls it.
	Ours bool
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

// World is what is seen of a campaign's experiments, by name: those that it controls, and others that have the name of one of its runs.
type World map[string]Seen

// Actions that are due once the status has been written.
type Actions struct {
	// Create the experiments of these runs, by name.
	Create []string
	// Stop these experiments early.
	Stop []Seen
	// Delete these experiments: they are more than the history keeps.
	Delete []Seen
	// Compare the runs of the round that is over.
	Compare bool
	// Wait is the longest time until the next step; 0 for none.
	Wait time.Duration
	// Notes are worth an event.
	Notes []Note
}

// Note is worth an event.
type Note struct {
	Warning         bool
	Reason, Message string
}

// step is one step of a campaign.
type step struct {
	campaign *v1alpha1.Campaign
	spec     *v1alpha1.CampaignSpec
	status   *v1alpha1.CampaignStatus
	world    World
	now      time.Time
	accepted bool
	actions  Actions
	expanded *matrix.Plan
}

// Step takes a campaign on. Unless it is accepted nothing is begun, and what has been begun goes on to its end.
func Step(c *v1alpha1.Campaign, accepted bool, world World, now time.Time) (Actions, error) {
	before := c.Status.DeepCopy()
	s := &step{campaign: c, spec: &c.Spec, status: &c.Status, world: world, now: now, accepted: accepted}
	s.observe()
	if accepted {
		if err := s.begin(); err != nil {
			return s.actions, err
		}
		if err := s.goOn(); err != nil {
			return s.actions, err
		}
	}
	s.complete()
	s.count()
	s.describe()
	s.estimate(before)
	s.act()
	return s.actions, nil
}

func (s *step) note(warning bool, reason, format string, args ...any) {
	s.actions.Notes = append(s.actions.Notes, Note{warning, reason, fmt.Sprintf(format, args...)})
}

func (s *step) after(d time.Duration) {
	if d = max(d, 10*time.Millisecond); s.actions.Wait == 0 || d < s.actions.Wait {
		s.actions.Wait = d
	}
}

// started tells that a run has been recorded as started, whatever came of it.
func started(run *v1alpha1.CampaignRun) bool { return run.StartTime != nil }

// Done tells that nothing will come of a run any more.
func Done(run *v1alpha1.CampaignRun) bool {
	switch run.Phase {
	case v1alpha1.RunSucceeded, v1alpha1.RunFailed, v1alpha1.RunSkipped, v1alpha1.RunLost:
		return true
	}
	return false
}

// UnderWay tells that a run has been started and is not done.
func UnderWay(run *v1alpha1.CampaignRun) bool { return started(run) && !Done(run) }

func failed(run *v1alpha1.CampaignRun) bool {
	return run.Phase == v1alpha1.RunFailed || run.Phase == v1alpha1.RunLost
}

// observe what became of the runs that are under way. One that is done stays as it is, whatever becomes of its experiment.
func (s *step) observe() {
	for i := range s.status.Runs {
		run := &s.status.Runs[i]
		seen, found := s.world[run.Name]
		if !UnderWay(run) || !found {
			continue
		}
		if run.UID == "" && !seen.Ours {
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
		s.note(true, "Run"+string(phase), "%s: %s", run.Name, run.Message)
	}
}

// goOn with the round that is under way, or take up one that was over where the campaign has been edited.
func (s *step) goOn() error {
	status := s.status
	if status.Round == 0 || (s.spec.Schedule != nil && status.RoundCompletionTime != nil) {
		return nil
	}
	plan, err := s.plan()
	if err != nil {
		return err
	}
	if err := s.merge(plan); err != nil {
		return err
	}
	s.stop()
	if status.RoundCompletionTime != nil && slices.ContainsFunc(status.Runs, func(r v1alpha1.CampaignRun) bool { return r.Phase == v1alpha1.RunPending }) {
		status.RoundCompletionTime, status.Comparison = nil, nil
		status.Rounds = slices.DeleteFunc(status.Rounds, func(r v1alpha1.RoundSummary) bool { return r.Number == status.Round })
		s.note(false, "RoundReopened", "the campaign was edited: there are more runs to make")
	}
	return s.start(plan)
}

// plan of the round that is under way, expanded once: no other begins once it has been asked for.
func (s *step) plan() (*matrix.Plan, error) {
	if s.expanded == nil {
		plan, errs := matrix.Expand(s.campaign.Name, s.namedRound(), s.spec)
		if len(errs) > 0 {
			return nil, errs.ToAggregate()
		}
		s.expanded = plan
	}
	return s.expanded, nil
}

// namedRound is the round that names have; 0 for none.
func (s *step) namedRound() int64 {
	if s.spec.Schedule == nil {
		return 0
	}
	return s.status.Round
}

// start as many runs as may go on at once.
func (s *step) start(plan *matrix.Plan) error {
	room := int(max(1, s.spec.Parallelism))
	for i := range s.status.Runs {
		if UnderWay(&s.status.Runs[i]) {
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

// complete the round once all of its runs are done.
func (s *step) complete() {
	status := s.status
	if status.Round == 0 || len(status.Runs) == 0 {
		return
	}
	if status.RoundCompletionTime == nil {
		for i := range status.Runs {
			if !Done(&status.Runs[i]) {
				return
			}
		}
		now := metav1.NewTime(s.now)
		status.RoundCompletionTime = &now
	}
	if status.Comparison == nil || status.Comparison.Round != status.Round {
		return
	}
	s.conclude()
}

// conclude a round whose comparison is there, or is known to be none.
func (s *step) conclude() {
	status := s.status
	s.count()
	phase, message := s.verdict()
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
	if !s.over() {
		s.note(phase == v1alpha1.CampaignFailed, "Round"+string(phase), "round %d: %s", status.Round, message)
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

// over tells that the last round that was begun has been concluded.
func (s *step) over() bool {
	status := s.status
	return status.RoundCompletionTime != nil && len(status.Rounds) > 0 && status.Rounds[0].Number == status.Round
}

// verdict on a round that is over.
func (s *step) verdict() (v1alpha1.CampaignPhase, string) {
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
		if run := &s.status.Runs[i]; failed(run) {
			return run.Name + ": " + run.Message
		}
	}
	return ""
}
