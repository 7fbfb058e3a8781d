package experiment

import (
	"testing"
	"time"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/run/argo"
)

// overlookResume makes Argo overlook the version of the workflow in which a step is over.
func (w *world) overlookResume(step string) {
	w.t.Helper()
	w.noArgo = true
	w.until("resumed", func(*v1alpha1.Experiment) bool { return argo.Read(w.workflow()).Steps[step].Phase == argo.Succeeded })
	w.overlooked, w.noArgo = w.workflow().GetResourceVersion(), false
}

func TestARunContinuesAlthoughArgoOverlooksThatAStepIsOver(t *testing.T) {
	w := newWorld(t)
	w.until("in step start", inStepStart)
	w.overlookResume(v1alpha1.StepStart)
	if e := w.untilFinished(); e.Status.Phase != v1alpha1.PhaseSucceeded {
		t.Errorf("%s: %s; want Succeeded", e.Status.Phase, e.Status.Message)
	}
}

func TestAFailedRunEndsAlthoughArgoOverlooksThatAStepIsOver(t *testing.T) {
	w := newWorld(t)
	w.until("in step start", inStepStart)
	w.server.failing = map[string]string{"nor/hub": "app hub on node nor exited with code 3: no"}
	w.overlookResume(v1alpha1.StepStart)
	if e := w.untilFinished(); e.Status.Phase != v1alpha1.PhaseFailed {
		t.Errorf("%s: %s; want Failed, as an app was", e.Status.Phase, e.Status.Message)
	}
}

func TestArgoIsNudgedOnlyAfterSomeSecondsAndNotTwiceInOne(t *testing.T) {
	w := newWorld(t)
	w.until("in step start", inStepStart)
	w.overlookResume(v1alpha1.StepStart)
	w.noArgo = true
	over := argo.Read(w.workflow()).Steps[v1alpha1.StepStart].Finished
	var nudges []string
	for w.clock.Since(over) < 3*argo.NudgeAfter {
		w.reconcile()
		at := w.workflow().GetAnnotations()[argo.NudgedAnnotation]
		switch {
		case at == "" && w.clock.Since(over) >= argo.NudgeAfter+time.Second:
			t.Fatalf("no nudge %v after the step", w.clock.Since(over))
		case at != "" && w.clock.Since(over) < argo.NudgeAfter:
			t.Fatalf("nudged after %v; want %v at least", w.clock.Since(over), argo.NudgeAfter)
		case at != "" && (len(nudges) == 0 || nudges[len(nudges)-1] != at):
			nudges = append(nudges, at)
		}
		w.clock.Step(500 * time.Millisecond)
	}
	if len(nudges) != 2 {
		t.Errorf("nudged at %v; want twice in %v", nudges, 3*argo.NudgeAfter)
	}
}
