package decide

import (
	"fmt"
	"maps"
	"slices"

	"vignette.dev/vignette/internal/core/matrix"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// mergePlan merges a plan into the round's runs. Started runs stay, even if their point is no longer in the plan. The others
// are replaced by the runs of the plan that have not been started.
func (s *step) mergePlan(plan *matrix.Plan, wanted map[string]bool) error {
	kept := s.keptRuns(wanted)
	old, names := map[string]*v1alpha1.CampaignRun{}, map[string]bool{}
	for i := range s.status.Runs {
		old[repeatKey(key(&s.status.Runs[i]), s.status.Runs[i].Repeat)] = &s.status.Runs[i]
	}
	runs := make([]v1alpha1.CampaignRun, 0, len(plan.Runs))
	for _, run := range s.status.Runs {
		if !kept[run.Name] && run.Retry > 0 && !wanted[repeatKey(key(&run), run.Repeat)] {
			run = skippedRetry(run)
			kept[run.Name] = true
		}
		if kept[run.Name] {
			runs = append(runs, run)
		}
		names[run.Name] = names[run.Name] || kept[run.Name] || run.Retry > 0
	}
	for _, planned := range plan.Runs {
		before := old[plannedKey(planned)]
		if before != nil && kept[before.Name] || before == nil && startedUnderOtherAxes(runs, planned) {
			continue
		}
		if isTaken(names, planned.Name) {
			planned.Rename(s.campaign.Name, s.roundInNames())
		}
		run := newPendingRun(planned)
		if before != nil && before.Retry > 0 {
			run.Name, run.Retry = before.Name, before.Retry
		}
		if before != nil && before.Phase == v1alpha1.RunSkipped && s.status.AcceptedGeneration == s.campaign.Generation {
			run.Phase, run.Message = before.Phase, before.Message // a skipped run stays skipped until the campaign is edited
		}
		runs = append(runs, run)
	}
	if len(runs) > matrix.MaxRuns {
		return fmt.Errorf("with the runs that were started before the campaign was edited, a round has %d runs: %d are allowed", len(runs), matrix.MaxRuns)
	}
	s.status.Runs = runs
	return nil
}

// isTaken reports whether one of the names is that of a run, or of one of its retries.
func isTaken(names map[string]bool, run string) bool {
	for retry := range int32(v1alpha1.MaxRetries) {
		if names[run] {
			return true
		}
		run = matrix.RetryName(run, retry)
	}
	return names[run]
}

// retry makes failed runs of the plan again, as often as the campaign says. Their entries become those of the next tries: events and the
// archive have the earlier ones.
func (s *step) retry(wanted map[string]bool) {
	for i := range s.status.Runs {
		run := &s.status.Runs[i]
		if !isFailed(run) || run.Retry >= s.spec.Retries || !wanted[repeatKey(key(run), run.Repeat)] || s.replaces() {
			continue
		}
		next := newTry(*run)
		next.Name, next.Retry = matrix.RetryName(run.Name, run.Retry), run.Retry+1
		s.addEvent(false, "RunRetried", "%s is made again as %s: retry %d of %d", run.Name, next.Name, next.Retry, s.spec.Retries)
		*run = next
	}
}

// skippedRetry is a retry whose point is no longer in the plan. It stays, as a point that comes back goes on after its earlier tries.
func skippedRetry(run v1alpha1.CampaignRun) v1alpha1.CampaignRun {
	skipped := newTry(run)
	skipped.Phase, skipped.Message = v1alpha1.RunSkipped, "its point was taken out of the matrix before the run was made again"
	return skipped
}

// newTry is a run without what a try leaves.
func newTry(run v1alpha1.CampaignRun) v1alpha1.CampaignRun {
	return v1alpha1.CampaignRun{
		Name: run.Name, Point: run.Point, Repeat: run.Repeat, Retry: run.Retry, Seed: run.Seed, Levels: run.Levels, Included: run.Included, Phase: v1alpha1.RunPending,
	}
}

// keptRuns are the started runs, except those without an experiment that are no longer in the plan.
func (s *step) keptRuns(wanted map[string]bool) map[string]bool {
	kept := map[string]bool{}
	for i := range s.status.Runs {
		run := &s.status.Runs[i]
		made := s.observed[run.Name].Owned
		if isStarted(run) && (IsDone(run) || run.UID != "" || made || wanted[repeatKey(key(run), run.Repeat)]) {
			kept[run.Name] = true
		}
	}
	return kept
}

// wantedRuns are those of a plan, by repeatKey.
func wantedRuns(plan *matrix.Plan) map[string]bool {
	wanted := map[string]bool{}
	for _, run := range plan.Runs {
		wanted[plannedKey(run)] = true
	}
	return wanted
}

// startedUnderOtherAxes reports whether a run of the same point name was started when the axes had other names.
func startedUnderOtherAxes(kept []v1alpha1.CampaignRun, planned matrix.Run) bool {
	return slices.ContainsFunc(kept, func(r v1alpha1.CampaignRun) bool {
		return (isStarted(&r) || r.Retry > 0) && r.Point == planned.Point.Name && r.Repeat == planned.Repeat && r.Included == planned.Point.Included &&
			!slices.Equal(slices.Sorted(maps.Keys(r.Levels)), slices.Sorted(maps.Keys(planned.Point.Levels)))
	})
}

func plannedKey(run matrix.Run) string {
	return repeatKey(matrix.Key(run.Point.Name, run.Point.Levels, run.Point.Included), run.Repeat)
}

func repeatKey(point string, repeat int32) string { return fmt.Sprintf("%s#%d", point, repeat) }

func newPendingRun(planned matrix.Run) v1alpha1.CampaignRun {
	run := v1alpha1.CampaignRun{
		Name: planned.Name, Point: planned.Point.Name, Included: planned.Point.Included, Repeat: planned.Repeat, Seed: planned.Seed, Phase: v1alpha1.RunPending,
	}
	if len(planned.Point.Levels) > 0 {
		run.Levels = planned.Point.Levels
	}
	return run
}
