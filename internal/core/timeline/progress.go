package timeline

import (
	"maps"
	"slices"
	"time"

	"vignette.dev/vignette/internal/runapi"
)

// EarlyStopLead is how far ahead an early stop is set, enough for every agent's long poll.
const EarlyStopLead = 2 * time.Second

// Versions of the armed actions: the compiled timeline, and the one changed by an early stop.
const (
	TimelineVersion = 1
	StoppedVersion  = 2
)

// StopEarly are the actions up to EarlyStopLead from now (an offset from T0), and then one stop of every publisher. It stops
// all, because agents that receive it late may have started any of them.
func (t *Timeline) StopEarly(now time.Duration) []runapi.Action {
	stop := max(now, 0) + EarlyStopLead
	armed := slices.Clone(t.Actions)
	armed = slices.DeleteFunc(armed, func(a runapi.Action) bool { return offsetOf(a) > stop })
	targets := slices.AppendSeq([]runapi.Target{}, maps.Keys(t.publishers))
	slices.SortFunc(targets, compareTargets)
	return append(armed, runapi.Action{ID: EarlyStopID, AtNanoseconds: int64(stop), Verb: runapi.VerbStop, Targets: targets})
}

func sameID(id string) func(runapi.Action) bool {
	return func(a runapi.Action) bool { return a.ID == id }
}

func offsetOf(a runapi.Action) time.Duration { return time.Duration(a.AtNanoseconds) }

// End of the run, before the drain, is the duration or the last action, or the early stop. It is Never for a live cluster
// before its stop.
func (t *Timeline) End(armed []runapi.Action) time.Duration {
	if i := slices.IndexFunc(armed, sameID(EarlyStopID)); i >= 0 {
		return offsetOf(armed[i])
	}
	end := t.Duration
	for _, action := range t.Actions {
		end = max(end, offsetOf(action))
	}
	return end
}

// StartStepEnd is the end of the step `start`: the first stop, or the last start if nothing is stopped.
func (t *Timeline) StartStepEnd(armed []runapi.Action) time.Duration {
	firstStop := t.End(armed)
	for _, action := range t.Actions {
		if action.Verb == runapi.VerbStop {
			firstStop = min(firstStop, offsetOf(action))
		}
	}
	if firstStop < Never {
		return firstStop
	}
	end := time.Duration(0)
	for _, action := range t.Actions {
		end = max(end, offsetOf(action))
	}
	return end
}

// MeasureStart is the first start of a publisher, from which data volumes are counted.
func (t *Timeline) MeasureStart() time.Duration {
	for _, action := range t.Actions {
		for _, target := range action.Targets {
			if action.Verb == runapi.VerbStart && t.publishers[target] {
				return offsetOf(action)
			}
		}
	}
	return 0
}
