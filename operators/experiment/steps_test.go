package experiment

import (
	"testing"
	"time"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/argo"
	"vignette.dev/vignette/operators/experiment/timeline"
	"vignette.dev/vignette/operators/experiment/topology"
)

// runOf one publisher that starts at 0 s and stops at 60 s, with both actions armed.
func runOf(t *testing.T, elapsed time.Duration, report runapi.AgentReport) view {
	t.Helper()
	spec := &v1alpha1.ExperimentSpec{Duration: "60s", Apps: []v1alpha1.App{{Name: "bft", Publisher: &v1alpha1.Publisher{}}}, Nodes: []v1alpha1.Node{{Name: "nor", Apps: []string{"bft"}}}}
	expanded, _ := topology.Expand(spec)
	compiled, errs := timeline.Compile(spec, expanded)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return view{
		timeline: compiled, armed: compiled.Actions, elapsed: elapsed, lookAhead: 30 * time.Second,
		agents: map[runapi.Target]runapi.AgentState{{Node: "nor", App: "bft"}: {AgentReport: report}},
		drain:  v1alpha1.Drain{Max: "30s", QuietFor: "5s"},
	}
}

func TestWhenASuspendedStepIsDone(t *testing.T) {
	const start, stop = "001-start", "002-stop"
	both := []string{start, stop}
	cases := map[string]struct {
		step         string
		elapsed      time.Duration
		report       runapi.AgentReport
		lastReceived time.Duration
		lost         bool
		want         bool
	}{
		"replay waits for confirmations":             {step: argo.StepReplay, elapsed: -3 * time.Second},
		"replay ends with them, before T0":           {step: argo.StepReplay, elapsed: -3 * time.Second, report: runapi.AgentReport{Armed: both}, want: true},
		"replay waits for no lost node":              {step: argo.StepReplay, elapsed: -3 * time.Second, lost: true, want: true},
		"start lasts until shortly before the stop":  {step: argo.StepStart, elapsed: 29 * time.Second, report: runapi.AgentReport{Executed: []string{start}}},
		"start ends then":                            {step: argo.StepStart, elapsed: 30 * time.Second, report: runapi.AgentReport{Executed: []string{start}}, want: true},
		"stop waits for the stop to be carried out":  {step: argo.StepStop, elapsed: 61 * time.Second, report: runapi.AgentReport{Executed: []string{start}}},
		"stop ends once it is":                       {step: argo.StepStop, elapsed: 61 * time.Second, report: runapi.AgentReport{Executed: both}, want: true},
		"stop never ends early":                      {step: argo.StepStop, elapsed: 59 * time.Second, report: runapi.AgentReport{Executed: both}},
		"drain waits while messages arrive":          {step: argo.StepDrain, elapsed: 70 * time.Second, lastReceived: 66 * time.Second},
		"drain ends when it has been quiet":          {step: argo.StepDrain, elapsed: 71 * time.Second, lastReceived: 66 * time.Second, want: true},
		"drain counts quiet from the end of the run": {step: argo.StepDrain, elapsed: 64 * time.Second, lastReceived: 10 * time.Second},
		"drain ends at its longest, quiet or not":    {step: argo.StepDrain, elapsed: 90 * time.Second, lastReceived: 90 * time.Second, want: true},
		"drain without any message lasts the quiet":  {step: argo.StepDrain, elapsed: 65 * time.Second, want: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v := runOf(t, c.elapsed, c.report)
			v.lastReceived = c.lastReceived
			v.lost = map[runapi.Target]bool{{Node: "nor", App: "bft"}: c.lost}
			got := v.decide(c.step)
			if got.done != c.want || !got.done && got.wait <= 0 {
				t.Errorf("got %+v, want done=%v", got, c.want)
			}
		})
	}
}

func TestAConfirmationThatDoesNotComeBeforeItsActionIsLate(t *testing.T) {
	if got := runOf(t, time.Second, runapi.AgentReport{}).decide(argo.StepReplay); got.late == "" {
		t.Errorf("got %+v, want a late confirmation", got)
	}
}

func TestAnAgentThatSaysNothingHoldsAStepForItsGraceOnly(t *testing.T) {
	if got := runOf(t, 60*time.Second+executionGrace, runapi.AgentReport{}).decide(argo.StepStop); !got.done || len(got.silent) != 2 {
		t.Errorf("got %+v, want done, with two silent actions", got)
	}
}
