package experiment

import (
	"fmt"
	"slices"
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

// view is all that the decision about a step of a running experiment looks at.
type view struct {
	timeline *timeline.Timeline
	armed    []runapi.Action
	agents   map[runapi.Target]runapi.AgentState
	// lost targets carry nothing out any more, and nobody waits for them.
	lost map[runapi.Target]bool
	// elapsed since T0, negative before.
	elapsed time.Duration
	// lastReceived is the offset from T0 of the newest received message.
	lastReceived time.Duration
	lookAhead    time.Duration
	drain        v1alpha1.Drain
}

// decision about a step: done, or come back after wait.
type decision struct {
	done bool
	wait time.Duration
	// late names agents that did not confirm an action in time.
	late string
	// silent are actions that agents did not say to have carried out.
	silent []string
}

// decide whether a suspended step is over.
func (v view) decide(step string) decision {
	switch step {
	case argo.StepReplay:
		return v.replay()
	case argo.StepStart:
		return v.carriedOut(v.timeline.StartsEnd(v.armed, v.lookAhead))
	case argo.StepStop:
		return v.carriedOut(v.timeline.End(v.armed))
	default:
		return v.drained()
	}
}

// replay ends when every agent has confirmed what is armed: from there on none needs the server.
func (v view) replay() decision {
	missing := v.pending(v.armed, func(a runapi.AgentState) []string { return a.Armed })
	if len(missing) == 0 {
		return decision{done: true}
	}
	if first := time.Duration(v.armed[0].AtNanoseconds); v.elapsed > first {
		return decision{late: someOf(missing, "confirmations")}
	}
	return decision{wait: armingPoll}
}

// carriedOut ends once the moment has come and every agent has done what was due by then.
func (v view) carriedOut(moment time.Duration) decision {
	if v.elapsed < moment {
		return decision{wait: moment - v.elapsed}
	}
	due := slices.DeleteFunc(slices.Clone(v.armed), func(a runapi.Action) bool { return time.Duration(a.AtNanoseconds) > moment })
	missing := v.pending(due, func(a runapi.AgentState) []string { return a.Executed })
	if len(missing) > 0 && v.elapsed < moment+executionGrace {
		return decision{wait: armingPoll}
	}
	return decision{done: true, silent: missing}
}

// pending lists the actions that living agents have not reported by the given list of ids.
func (v view) pending(actions []runapi.Action, reported func(runapi.AgentState) []string) (missing []string) {
	for _, action := range actions {
		for _, target := range action.Targets {
			if !v.lost[target] && !slices.Contains(reported(v.agents[target]), action.ID) {
				missing = append(missing, fmt.Sprintf("%s of %s/%s", action.ID, target.Node, target.App))
			}
		}
	}
	return missing
}

// drained ends once nothing has been received for a while, or at the longest time.
func (v view) drained() decision {
	end := v.timeline.End(v.armed)
	most, quietFor := v.drain.Max.Std(), v.drain.QuietFor.Std()
	quietAt := max(v.lastReceived, end) + quietFor
	over := min(end+most, quietAt)
	if v.elapsed >= over {
		return decision{done: true}
	}
	return decision{wait: min(over-v.elapsed, pollInterval)}
}

// tooLate names an agent that got an action after its time.
func tooLate(state runapi.State) string {
	for _, agent := range state.Agents {
		if len(agent.ArmedTooLate) > 0 {
			return fmt.Sprintf("app %s on node %s got action %s after its time", agent.App, agent.Node, agent.ArmedTooLate[0])
		}
	}
	return ""
}
