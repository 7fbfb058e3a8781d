package timeline

import (
	"slices"
	"time"

	"vignette.dev/vignette/internal/runapi"
)

// EarlyStopLead is how far ahead an early stop is armed: enough for every agent's long poll.
const EarlyStopLead = 2 * time.Second

// Armed are the actions that agents must have now (an offset from T0): those they have already,
// and those due within the look-ahead. What was armed once stays as it was.
func (t *Timeline) Armed(already []runapi.Action, now, lookAhead time.Duration) []runapi.Action {
	armed := slices.Clone(already)
	if stopped(already) {
		return armed
	}
	for _, action := range t.Actions {
		if at(action) <= now+lookAhead && !slices.ContainsFunc(armed, sameID(action.ID)) {
			armed = append(armed, action)
		}
	}
	return armed
}

// StopEarly adds one stop, EarlyStopLead from now, of every publisher that would run then or later; it
// changes nothing where that was done before. An armed start cannot be taken back, so the stop comes
// no sooner than the last of them, whatever it starts: nothing starts once the run has been stopped.
// Stops that are armed for later meet an app that has stopped.
func (t *Timeline) StopEarly(already []runapi.Action, now time.Duration) []runapi.Action {
	if stopped(already) {
		return already
	}
	stop := max(now, 0) + EarlyStopLead
	for _, action := range already {
		if action.Verb == runapi.VerbStart {
			stop = max(stop, at(action))
		}
	}
	targets := []runapi.Target{}
	for target := range t.publishers {
		if runsAt(already, target, stop) {
			targets = append(targets, target)
		}
	}
	slices.SortFunc(targets, compareTargets)
	return append(slices.Clone(already), runapi.Action{
		ID: EarlyStopID, AtNanoseconds: int64(stop), Verb: runapi.VerbStop, Targets: targets,
	})
}

// runsAt tells whether a target runs at a moment by what is armed.
func runsAt(armed []runapi.Action, target runapi.Target, moment time.Duration) (runs bool) {
	for _, action := range armed { // in order of time
		if slices.Contains(action.Targets, target) && at(action) <= moment {
			runs = action.Verb == runapi.VerbStart
		}
	}
	return runs
}

func stopped(armed []runapi.Action) bool { return slices.ContainsFunc(armed, sameID(EarlyStopID)) }

func sameID(id string) func(runapi.Action) bool {
	return func(a runapi.Action) bool { return a.ID == id }
}

func at(a runapi.Action) time.Duration { return time.Duration(a.AtNanoseconds) }

// End of the run, before the drain: the duration or the last action, or the early stop; Never for a live
// cluster that has not been stopped.
func (t *Timeline) End(armed []runapi.Action) time.Duration {
	if i := slices.IndexFunc(armed, sameID(EarlyStopID)); i >= 0 {
		return at(armed[i])
	}
	end := t.Duration
	for _, action := range t.Actions {
		end = max(end, at(action))
	}
	return end
}

// StartsEnd is when the step `start` gives way to `stop`: once the last action before the first stop
// is due, but not long before that stop. Where nothing will be stopped, it is over with the last action.
func (t *Timeline) StartsEnd(armed []runapi.Action, lookAhead time.Duration) time.Duration {
	firstStop := t.End(armed)
	for _, action := range t.Actions {
		if action.Verb == runapi.VerbStop {
			firstStop = min(firstStop, at(action))
		}
	}
	end := time.Duration(0)
	if firstStop != Never {
		end = max(firstStop-lookAhead, 0)
	}
	for _, action := range t.Actions {
		if at(action) < firstStop {
			end = max(end, at(action))
		}
	}
	return min(end, firstStop)
}

// MeasureStart is the first start of a publisher, from which data volumes count.
func (t *Timeline) MeasureStart() time.Duration {
	for _, action := range t.Actions {
		for _, target := range action.Targets {
			if action.Verb == runapi.VerbStart && t.publishers[target] {
				return at(action)
			}
		}
	}
	return 0
}
