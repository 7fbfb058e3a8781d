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
func (s *step) mergePlan(plan *matrix.Plan) error {
	kept := s.keptRuns(plan)
	old, names := map[string]*v1alpha1.CampaignRun{}, map[string]bool{}
	for i := range s.status.Runs {
		old[repeatKey(key(&s.status.Runs[i]), s.status.Runs[i].Repeat)] = &s.status.Runs[i]
	}
	runs := make([]v1alpha1.CampaignRun, 0, len(plan.Runs))
	for _, run := range s.status.Runs {
		if kept[run.Name] {
			runs, names[run.Name] = append(runs, run), true
		}
	}
	for _, planned := range plan.Runs {
		before := old[plannedKey(planned)]
		if before != nil && kept[before.Name] || before == nil && startedUnderOtherAxes(runs, planned) {
			continue
		}
		if names[planned.Name] {
			planned.Rename(s.campaign.Name, s.roundInNames())
		}
		run := newPendingRun(planned)
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

// keptRuns are the started runs, except those without an experiment that are no longer in the plan.
func (s *step) keptRuns(plan *matrix.Plan) map[string]bool {
	wanted := map[string]bool{}
	for _, run := range plan.Runs {
		wanted[plannedKey(run)] = true
	}
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

// startedUnderOtherAxes reports whether a run of the same point name was started when the axes had other names.
func startedUnderOtherAxes(kept []v1alpha1.CampaignRun, planned matrix.Run) bool {
	return slices.ContainsFunc(kept, func(r v1alpha1.CampaignRun) bool {
		return isStarted(&r) && r.Point == planned.Point.Name && r.Repeat == planned.Repeat && r.Included == planned.Point.Included &&
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
