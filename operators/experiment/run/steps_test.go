package run

import (
	"testing"
	"time"

	"vignette.dev/vignette/internal/core/timeline"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// runOf is a run with one publisher that starts at 0 s and stops at 60 s, with both actions armed.
func runOf(t *testing.T, elapsed time.Duration, report runapi.AgentReport) stepView {
	t.Helper()
	spec := &v1alpha1.ExperimentSpec{Duration: "60s", Apps: []v1alpha1.App{{Name: "bft", Publisher: &v1alpha1.Publisher{}}}, Nodes: []v1alpha1.Node{{Name: "nor", Apps: []string{"bft"}}}}
	expanded, _ := topology.Expand(spec)
	compiled, errs := timeline.Compile(spec, expanded)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return stepView{
		timeline: compiled, armed: compiled.Actions, t0: time.Unix(1000, 0), elapsed: elapsed,
		agents: map[runapi.Target]runapi.AgentState{{Node: "nor", App: "bft"}: {AgentReport: report}},
		drain:  v1alpha1.Drain{Max: "30s", QuietFor: "5s"},
	}
}

func TestWhenASuspendedStepIsDone(t *testing.T) {
	armed, started := runapi.AgentReport{ArmedVersion: 1}, runapi.AgentReport{ArmedVersion: 1, ExecutedActions: 1}
	both := runapi.AgentReport{ArmedVersion: 1, ExecutedActions: 2}
	cases := map[string]struct {
		step         string
		elapsed      time.Duration
		report       runapi.AgentReport
		lastReceived time.Duration
		lost         bool
		want         bool
	}{
		"replay waits for confirmations":             {step: v1alpha1.StepReplay, elapsed: -3 * time.Second},
		"replay ends with them, before T0":           {step: v1alpha1.StepReplay, elapsed: -3 * time.Second, report: armed, want: true},
		"replay waits for no lost node":              {step: v1alpha1.StepReplay, elapsed: -3 * time.Second, lost: true, want: true},
		"replay waits for silent agents a while":     {step: v1alpha1.StepReplay, elapsed: executionGrace},
		"replay goes on without silent agents then":  {step: v1alpha1.StepReplay, elapsed: executionGrace + 1, want: true},
		"start lasts until the first stop":           {step: v1alpha1.StepStart, elapsed: 59 * time.Second, report: started},
		"start ends once that is carried out":        {step: v1alpha1.StepStart, elapsed: 60 * time.Second, report: both, want: true},
		"stop waits for the stop to be carried out":  {step: v1alpha1.StepStop, elapsed: 61 * time.Second, report: started},
		"stop ends once it is":                       {step: v1alpha1.StepStop, elapsed: 61 * time.Second, report: both, want: true},
		"stop never ends early":                      {step: v1alpha1.StepStop, elapsed: 59 * time.Second, report: both},
		"drain waits while messages arrive":          {step: v1alpha1.StepDrain, elapsed: 70 * time.Second, lastReceived: 66 * time.Second},
		"drain ends when it has been quiet":          {step: v1alpha1.StepDrain, elapsed: 71 * time.Second, lastReceived: 66 * time.Second, want: true},
		"drain counts quiet from the end of the run": {step: v1alpha1.StepDrain, elapsed: 64 * time.Second, lastReceived: 10 * time.Second},
		"drain ends at its longest, quiet or not":    {step: v1alpha1.StepDrain, elapsed: 90 * time.Second, lastReceived: 90 * time.Second, want: true},
		"drain without any message lasts the quiet":  {step: v1alpha1.StepDrain, elapsed: 65 * time.Second, want: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v := runOf(t, c.elapsed, c.report)
			v.lastReceived = c.lastReceived
			v.lost = map[runapi.Target]bool{{Node: "nor", App: "bft"}: c.lost}
			got := v.result(c.step)
			if got.done != c.want || !got.done && got.wait <= 0 {
				t.Errorf("got %+v, want done=%v", got, c.want)
			}
		})
	}
}

func TestAnAgentThatReportsAfterItsStartWithoutActionsIsLate(t *testing.T) {
	for _, armed := range []int64{0, 1} {
		v := runOf(t, executionGrace+time.Second, runapi.AgentReport{ArmedVersion: armed})
		target := runapi.Target{Node: "nor", App: "bft"}
		agent := v.agents[target]
		agent.ReportedAt = v.t0.Add(executionGrace)
		v.agents[target] = agent
		if got := v.result(v1alpha1.StepReplay); (got.lateAgents != "") != (armed == 0) || got.done != (armed == 1) {
			t.Errorf("holds version %d: %+v", armed, got)
		}
	}
}

func TestASilentAgentDelaysAStepByTheGraceTimeAndIsNamedAtTheEnd(t *testing.T) {
	if got := runOf(t, 60*time.Second+executionGrace, runapi.AgentReport{}).result(v1alpha1.StepStop); !got.done {
		t.Errorf("got %+v, want done", got)
	}
	for executed, silent := range []int{2, 1, 0} {
		if got := runOf(t, 90*time.Second, runapi.AgentReport{ExecutedActions: executed}).result(v1alpha1.StepDrain); !got.done || len(got.unreported) != silent {
			t.Errorf("got %+v, want done, with %d silent actions", got, silent)
		}
	}
}

func TestTheDrainEndsWhenItIsOverHoweverLateTheOperatorComes(t *testing.T) {
	const end, longest, quietFor = 60 * time.Second, 30 * time.Second, 5 * time.Second
	for name, c := range map[string]struct {
		elapsed, lastReceived, archived, want time.Duration
		lost                                  bool
	}{
		"in time":                                {elapsed: 66 * time.Second, archived: end, want: 66 * time.Second},
		"after an outage of the operator":        {elapsed: 3 * time.Minute, lastReceived: 62 * time.Second, archived: 3 * time.Minute, want: 62*time.Second + quietFor},
		"after that, with messages all the time": {elapsed: 3 * time.Minute, lastReceived: 3 * time.Minute, archived: 3 * time.Minute, want: end + longest},
		"while agents still archive what came":   {elapsed: 3 * time.Minute, lastReceived: 50 * time.Second, archived: 50 * time.Second, want: end + longest},
		"with an agent that is lost":             {elapsed: 3 * time.Minute, archived: 50 * time.Second, lost: true, want: end + quietFor},
	} {
		t.Run(name, func(t *testing.T) {
			v := runOf(t, c.elapsed, runapi.AgentReport{ExecutedActions: 2, ArchivedUntilNanoseconds: time.Unix(1000, 0).Add(c.archived).UnixNano()})
			v.lastReceived, v.lost = c.lastReceived, map[runapi.Target]bool{{Node: "nor", App: "bft"}: c.lost}
			if got := v.result(v1alpha1.StepDrain); !got.done || got.drained != c.want {
				t.Errorf("got %+v; want the end of the drain at %s", got, c.want)
			}
		})
	}
}
