package run

import (
	"fmt"
	"time"

	"vignette.dev/vignette/internal/core/timeline"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

const (
	// executionGrace is how long a step waits for agents to report an action after its time.
	executionGrace = 10 * time.Second
	// runningPoll is the time between two polls of the server while nothing is due and it reports no updates. It limits how
	// late a failed app is noticed.
	runningPoll = 2 * time.Second
)

// stepView is the input of the decision whether a step of a running experiment is done.
type stepView struct {
	timeline *timeline.Timeline
	armed    []runapi.Action
	agents   map[runapi.Target]runapi.AgentState
	// lost targets execute nothing any more, so no step waits for them.
	lost map[runapi.Target]bool
	t0   time.Time
	// elapsed is the time since t0, negative before.
	elapsed time.Duration
	// lastReceived is the offset from T0 of the newest received message.
	lastReceived time.Duration
	drain        v1alpha1.Drain
}

// stepResult says that a step is done, or after which time to check again.
type stepResult struct {
	done bool
	wait time.Duration
	// lateAgents names agents that have not received their actions in time.
	lateAgents string
	// unreported are actions that no agent has reported.
	unreported []string
	// drained is when the drain was over, as an offset from T0. The operator may come to it much later.
	drained time.Duration
}

// result decides whether a suspended step is done.
func (v stepView) result(step string) stepResult {
	switch step {
	case v1alpha1.StepReplay:
		return v.replayResult()
	case v1alpha1.StepStart:
		return v.executedResult(v.timeline.StartStepEnd(v.armed))
	case v1alpha1.StepStop:
		return v.executedResult(v.timeline.End(v.armed))
	default:
		return v.drainResult()
	}
}

// replayResult is done when every agent has confirmed its actions, because none needs the server from then on. Silent
// agents delay it only by the grace time. Agents that report after the first action's time without a confirmation are late.
func (v stepView) replayResult() stepResult {
	missing := v.unconfirmed(time.Time{})
	if len(missing) == 0 {
		return stepResult{done: true}
	}
	first := time.Duration(v.armed[0].AtNanoseconds)
	if v.elapsed <= first+executionGrace {
		return stepResult{wait: scope.ArmingPoll}
	}
	if late := v.unconfirmed(v.t0.Add(first + executionGrace/2)); len(late) > 0 {
		return stepResult{lateAgents: scope.SomeOf(late, "agents")}
	}
	return stepResult{done: true}
}

// unconfirmed lists living agents that have reported since a time and have no actions.
func (v stepView) unconfirmed(since time.Time) (missing []string) {
	seen := map[runapi.Target]bool{}
	for _, action := range v.armed {
		for _, target := range action.Targets {
			agent := v.agents[target]
			if !seen[target] && !v.lost[target] && agent.ArmedVersion == 0 && !agent.ReportedAt.Before(since) {
				missing = append(missing, target.Node+"/"+target.App)
			}
			seen[target] = true
		}
	}
	return missing
}

// executedResult is done at the end if every agent has reported the actions due by then, or else after the grace time.
func (v stepView) executedResult(end time.Duration) stepResult {
	if v.elapsed < end {
		return stepResult{wait: end - v.elapsed}
	}
	done := v.elapsed >= end+executionGrace || len(v.unreported(end)) == 0
	return stepResult{done: done, wait: scope.ArmingPoll}
}

// unreported lists the actions due by a time that living agents have not reported.
func (v stepView) unreported(until time.Duration) (missing []string) {
	due := map[runapi.Target]int{}
	for _, action := range v.armed { // in order of time
		if time.Duration(action.AtNanoseconds) > until {
			break
		}
		for _, target := range action.Targets {
			due[target]++
			if !v.lost[target] && v.agents[target].ExecutedActions < due[target] {
				missing = append(missing, fmt.Sprintf("%s of %s/%s", action.ID, target.Node, target.App))
			}
		}
	}
	return missing
}

// drainResult is done once nothing has been received for a while, or at the maximum time.
func (v stepView) drainResult() stepResult {
	end := v.timeline.End(v.armed)
	longest, quietFor := v.drain.Max.Std(), v.drain.QuietFor.Std()
	quietAt := max(v.lastReceived, end) + quietFor
	over := min(end+longest, quietAt)
	if v.elapsed < over {
		return stepResult{wait: min(over-v.elapsed, scope.PollInterval)}
	}
	if !v.archivedUntil(over) { // more may have been received, so only the maximum is certain
		over = end + longest
	}
	return stepResult{done: true, unreported: v.unreported(end), drained: min(over, v.elapsed)}
}

// archivedUntil reports whether the archive has all that living agents logged until an offset from T0.
func (v stepView) archivedUntil(offset time.Duration) bool {
	until := v.t0.Add(offset).UnixNano()
	for target, agent := range v.agents {
		if !v.lost[target] && agent.ArchivedUntilNanoseconds < until {
			return false
		}
	}
	return true
}

// describeTooLate names an agent that got an action after its time.
func describeTooLate(state runapi.State) string {
	for _, agent := range state.Agents {
		if len(agent.ArmedTooLate) > 0 {
			return fmt.Sprintf("app %s on node %s got action %s after its time", agent.App, agent.Node, agent.ArmedTooLate[0])
		}
	}
	return ""
}
