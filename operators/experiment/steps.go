package experiment

import (
	"fmt"
	"time"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/argo"
	"vignette.dev/vignette/operators/experiment/timeline"
)

const (
	// executionGrace after an action's time: so long a step waits for agents to say that they did it.
	executionGrace = 10 * time.Second
	// armingPoll while agents confirm what they were told.
	armingPoll = 300 * time.Millisecond
	// runningPoll of the server's state while nothing is due and its news cannot be followed: it bounds how late a failed app is seen.
	runningPoll = 2 * time.Second
)

// stepView is all that the decision about a step of a running experiment looks at.
type stepView struct {
	timeline *timeline.Timeline
	armed    []runapi.Action
	agents   map[runapi.Target]runapi.AgentState
	// lost targets carry nothing out any more, and nobody waits for them.
	lost map[runapi.Target]bool
	t0   time.Time
	// elapsed since t0, negative before.
	elapsed time.Duration
	// lastReceived is the offset from T0 of the newest received message.
	lastReceived time.Duration
	drain        v1alpha1.Drain
}

// stepResult about a step: done, or come back after wait.
type stepResult struct {
	done bool
	wait time.Duration
	// lateAgents names agents that have not heard of their actions in time.
	lateAgents string
	// unreported are actions that agents did not say to have carried out.
	unreported []string
}

// result whether a suspended step is over.
func (v stepView) result(step string) stepResult {
	switch step {
	case argo.StepReplay:
		return v.replayResult()
	case argo.StepStart:
		return v.executedResult(v.timeline.StartStepEnd(v.armed))
	case argo.StepStop:
		return v.executedResult(v.timeline.End(v.armed))
	default:
		return v.drainResult()
	}
}

// replayResult ends when every agent has confirmed what is armed: from there on none needs the server. Those that are silent hold it for their grace
// only. Agents that report after the first action's time, but no confirmation, have started nothing.
func (v stepView) replayResult() stepResult {
	missing := v.unconfirmed(time.Time{})
	if len(missing) == 0 {
		return stepResult{done: true}
	}
	first := time.Duration(v.armed[0].AtNanoseconds)
	if v.elapsed <= first+executionGrace {
		return stepResult{wait: armingPoll}
	}
	if late := v.unconfirmed(v.t0.Add(first + executionGrace/2)); len(late) > 0 {
		return stepResult{lateAgents: someOf(late, "agents")}
	}
	return stepResult{done: true}
}

// unconfirmed lists living agents that have reported since a time and hold no actions.
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

// executedResult ends once the moment has come and every agent has done what was due by then, or its grace is over.
func (v stepView) executedResult(moment time.Duration) stepResult {
	if v.elapsed < moment {
		return stepResult{wait: moment - v.elapsed}
	}
	done := v.elapsed >= moment+executionGrace || len(v.unreported(moment)) == 0
	return stepResult{done: done, wait: armingPoll}
}

// unreported lists actions due by a moment that living agents do not say to have carried out.
func (v stepView) unreported(moment time.Duration) (missing []string) {
	due := map[runapi.Target]int{}
	for _, action := range v.armed { // in order of time
		if time.Duration(action.AtNanoseconds) > moment {
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

// drainResult ends once nothing has been received for a while, or at the longest time.
func (v stepView) drainResult() stepResult {
	end := v.timeline.End(v.armed)
	most, quietFor := v.drain.Max.Std(), v.drain.QuietFor.Std()
	quietAt := max(v.lastReceived, end) + quietFor
	over := min(end+most, quietAt)
	if v.elapsed >= over {
		return stepResult{done: true, unreported: v.unreported(end)}
	}
	return stepResult{wait: min(over-v.elapsed, pollInterval)}
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
