package decide

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// resyncInterval is the time after which an active campaign is reconciled if an event is lost.
const resyncInterval = 15 * time.Second

// addActions adds the actions for after the write of the status.
func (s *step) addActions() {
	for i := range s.status.Runs {
		run := &s.status.Runs[i]
		if !IsActive(run) {
			continue
		}
		s.requeueAfter(resyncInterval)
		seen, found := s.observed[run.Name]
		if run.UID == "" && !found {
			s.actions.Create = append(s.actions.Create, run.Name)
		}
		if found && s.replaces() && !seen.Gone && !seen.Deleting {
			s.actions.Stop = append(s.actions.Stop, seen)
		}
	}
	s.actions.Compare = s.status.RoundCompletionTime != nil && !s.isRoundFinished() && len(s.status.Runs) > 0
	s.pruneHistory()
}

// pruneHistory deletes experiments beyond the history limits, except those that are not recorded as done.
func (s *step) pruneHistory() {
	done := map[v1alpha1.ExperimentPhase][]ObservedExperiment{}
	for _, name := range slices.Sorted(maps.Keys(s.observed)) {
		seen := s.observed[name]
		if !seen.Owned || seen.Gone || seen.Deleting || !s.isRecorded(seen) {
			continue
		}
		if seen.Round < s.status.Round-int64(s.roundsKept()) {
			s.actions.Delete = append(s.actions.Delete, seen)
			continue
		}
		done[seen.Phase] = append(done[seen.Phase], seen)
	}
	for phase, kept := range map[v1alpha1.ExperimentPhase]*int32{
		v1alpha1.PhaseSucceeded: s.spec.History.Succeeded, v1alpha1.PhaseFailed: s.spec.History.Failed,
	} {
		if kept == nil || len(done[phase]) <= int(*kept) {
			continue
		}
		slices.SortStableFunc(done[phase], newestFirst)
		s.actions.Delete = append(s.actions.Delete, done[phase][*kept:]...)
	}
	slices.SortFunc(s.actions.Delete, func(a, b ObservedExperiment) int { return cmp.Compare(a.Name, b.Name) })
}

// isRecorded reports whether no run waits for an experiment's result.
func (s *step) isRecorded(seen ObservedExperiment) bool {
	if seen.Phase != v1alpha1.PhaseSucceeded && seen.Phase != v1alpha1.PhaseFailed {
		return false
	}
	return seen.Round < s.status.Round || !slices.ContainsFunc(s.status.Runs, func(r v1alpha1.CampaignRun) bool {
		return r.Name == seen.Name && !IsDone(&r)
	})
}

func newestFirst(a, b ObservedExperiment) int {
	if a.CompletionTime == nil || b.CompletionTime == nil {
		return 0
	}
	return b.CompletionTime.Compare(a.CompletionTime.Time)
}
