package experiment

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// outcome is what must be the same wherever the operator was killed: what there is in the end, and
// how often everything but a status was written.
type outcome struct {
	Phase    v1alpha1.ExperimentPhase
	Message  string
	Objects  []string
	Writes   map[string]int
	Agents   []string
	Plan     v1alpha1.ExperimentPhase
	Incident []runapi.Incident
}

func (w *world) outcome(uid string) outcome {
	o := outcome{Objects: w.objects(), Writes: map[string]int{}}
	if e := w.experiment(); e != nil {
		o.Phase, o.Message = e.Status.Phase, e.Status.Message
	}
	for _, what := range w.writes {
		if !strings.HasPrefix(what, "patch status") {
			o.Writes[what]++
		}
	}
	if state := w.server.states[uid]; state != nil {
		o.Plan, o.Incident = state.Plan.Phase, state.Incidents
		for _, agent := range state.Agents {
			o.Agents = append(o.Agents, fmt.Sprint(agent.Node, agent.App, agent.Executed, agent.ArmedTooLate))
		}
		slices.Sort(o.Agents)
	}
	return o
}

// short has the shape of the quickstart and lasts seconds.
func short(e *v1alpha1.Experiment) {
	e.Spec.Duration = "6s"
	e.Spec.Timeline = []v1alpha1.TimelineEntry{{At: "2s", Start: []string{"nor-units"}}}
	e.Spec.Drain = v1alpha1.Drain{Max: "4s", QuietFor: "1s"}
	e.Spec.Nodes = e.Spec.Nodes[:2]
}

// sweep kills the operator after each of the writes of a run that nothing disturbs, and expects the same outcome.
func sweep(t *testing.T, live func(*world)) {
	t.Helper()
	const uid = "11111111-2222-3333-4444-555555555555"
	reference := newWorld(t, short)
	live(reference)
	want := reference.outcome(uid)
	t.Logf("the undisturbed run has %d writes", len(reference.writes))
	for k := 1; k < len(reference.writes); k++ {
		t.Run(fmt.Sprintf("after write %d, %s", k, reference.writes[k-1]), func(t *testing.T) {
			w := newWorld(t, short)
			w.killAfter = k
			w.onDeath = w.restart
			live(w)
			if diff := cmp.Diff(want, w.outcome(uid)); diff != "" {
				t.Errorf("the outcome differs (-undisturbed +killed):\n%s", diff)
			}
		})
	}
}

func TestAKillAfterAnyWriteOfARunChangesNothing(t *testing.T) {
	sweep(t, func(w *world) {
		w.untilFinished()
		w.settle()
	})
}

func TestAKillAfterAnyWriteOfADeletionLeavesNothing(t *testing.T) {
	for _, phase := range []v1alpha1.ExperimentPhase{v1alpha1.PhaseProvisioning, v1alpha1.PhaseRunning} {
		t.Run("in "+string(phase), func(t *testing.T) {
			sweep(t, func(w *world) {
				e := w.untilPhase(phase)
				w.step()
				w.step()
				w.must(w.api.Delete(w.t.Context(), e))
				w.until("gone", func(e *v1alpha1.Experiment) bool { return e == nil })
			})
		})
	}
}

func TestAKillAfterAnyWriteOfAFailureChangesNothing(t *testing.T) {
	sweep(t, func(w *world) {
		w.server.failing = map[string]string{"nor/hub": "boom"}
		w.untilFinished()
		w.settle()
	})
}
