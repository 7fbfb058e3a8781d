package experiment

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/collection"
	"vignette.dev/vignette/operators/experiment/run/argo"
	"vignette.dev/vignette/operators/experiment/scope"
)

// shutdown is the workflow's spec.shutdown, empty if it continues.
func (w *world) shutdown() string {
	text, _, _ := unstructured.NestedString(w.workflow().Object, "spec", "shutdown")
	return text
}

func (w *world) wantFailed(reason, message string) {
	w.t.Helper()
	e := w.untilFinished()
	ready := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReady)
	if e.Status.Phase != v1alpha1.PhaseFailed || ready.Reason != reason || !strings.Contains(e.Status.Message, message) {
		w.t.Errorf("phase %s, reason %s, message %q; want Failed, %s, %q", e.Status.Phase, ready.Reason, e.Status.Message, reason, message)
	}
	w.settle()
	if left := slices.DeleteFunc(w.objects(), func(o string) bool { return o == "Workflow quickstart" }); len(left) > 0 {
		w.t.Errorf("left behind: %v", left)
	}
}

func inStepStart(e *v1alpha1.Experiment) bool { return e.Status.Step == v1alpha1.StepStart }

func TestARunWhoseRecordTheServerHasLostFails(t *testing.T) {
	for name, failing := range map[string]map[string]string{"a sound run": nil, "a run that is failing": {"nor/hub": "boom"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			e := w.until("in step start", inStepStart)
			reason, message := scope.ReasonRunRecordLost, "the server has no record of this run any more"
			if w.server.failing = failing; failing != nil {
				w.until("failing", func(e *v1alpha1.Experiment) bool {
					return meta.IsStatusConditionTrue(e.Status.Conditions, scope.ConditionFailure)
				})
				reason, message = scope.ReasonAppFailed, "boom"
			}
			delete(w.server.states, string(e.UID))
			w.wantFailed(reason, message)
			if got := w.shutdown(); got != "Terminate" {
				t.Errorf("the workflow's shutdown is %q: it would wait for ever", got)
			}
		})
	}
}

func TestARunWhoseRecordIsLostBeforeItsResultsAreReadFails(t *testing.T) {
	w := newWorld(t)
	e := w.untilPhase(v1alpha1.PhaseAnalysing)
	delete(w.server.states, string(e.UID))
	w.wantFailed(scope.ReasonRunRecordLost, "the server has no record of this run any more")
}

func TestARunFailsWhenArgoGoesAwayBetweenTwoSteps(t *testing.T) {
	w := newWorld(t)
	w.until("in step start", inStepStart)
	w.noArgo = true
	w.until("resumed", func(*v1alpha1.Experiment) bool {
		return argo.Read(w.workflow()).Steps[v1alpha1.StepStart].Phase == argo.Succeeded
	})
	w.clock.Step(argo.StepTimeout - time.Minute)
	w.settle()
	if phase := w.experiment().Status.Phase; phase != v1alpha1.PhaseRunning {
		t.Fatalf("%s before Argo's timeout", phase)
	}
	w.clock.Step(2 * time.Minute)
	w.wantFailed(scope.ReasonArgoStalled, "Argo has not gone on after step start of Workflow quickstart within 10m0s")
	if w.shutdown() != "Terminate" {
		t.Error("the workflow would go on once Argo is back")
	}
}

func TestTheLogsOfARunWhoseWorkflowEndsBeforeItCollectsAreSealed(t *testing.T) {
	for _, phase := range []v1alpha1.ExperimentPhase{v1alpha1.PhaseRunning, v1alpha1.PhaseCollecting} {
		t.Run(string(phase), func(t *testing.T) {
			w := newWorld(t)
			e := w.until("begun", func(e *v1alpha1.Experiment) bool { return e.Status.Phase == phase && e.Status.T0 != nil })
			w.noArgo = true
			u := w.workflow()
			w.must(unstructured.SetNestedField(u.Object, argo.Failed, "status", "phase"))
			w.must(unstructured.SetNestedField(u.Object, "Stopped with strategy 'Stop'", "status", "message"))
			w.must(w.api.Update(t.Context(), u))
			w.wantFailed(scope.ReasonWorkflowFailed, "Stopped with strategy 'Stop'")
			if state := w.server.states[string(e.UID)]; !state.Sealed || state.Plan.Phase != v1alpha1.PhaseFailed {
				t.Errorf("sealed: %t, and the run is %s in the archive", state.Sealed, state.Plan.Phase)
			}
		})
	}
}

func TestARunWhoseStepsSomebodyElseResumesIsNoSuccess(t *testing.T) {
	w := newWorld(t)
	w.until("in step start", inStepStart)
	for range 3 {
		u := w.workflow()
		w.must(argo.Resume(u, argo.Read(u).Current(), w.clock.Now()))
		w.must(w.api.Update(t.Context(), u))
		w.argo()
	}
	w.wantFailed(scope.ReasonWorkflowFailed, "the workflow came to step collect before the run was over")
	if w.experiment().Status.Results == nil {
		t.Error("what was measured is not analysed")
	}
}

func TestAStepWhosePodCannotStartIsReportedAndEnds(t *testing.T) {
	w := newWorld(t)
	w.untilPhase(v1alpha1.PhaseCollecting)
	w.until("at collect", func(e *v1alpha1.Experiment) bool { return e.Status.Step == v1alpha1.StepCollect })
	w.noArgo = true
	u := w.workflow()
	w.must(unstructured.SetNestedMap(u.Object, map[string]any{"displayName": "collect", "type": "Retry", "phase": argo.Running}, "status", "nodes", "id-collect"))
	w.must(unstructured.SetNestedMap(u.Object, map[string]any{"displayName": "collect(0)", "type": "Pod", "phase": argo.Pending,
		"message": "ImagePullBackOff: no such image", "startedAt": w.clock.Now().Format(time.RFC3339)}, "status", "nodes", "id-attempt"))
	w.must(w.api.Update(t.Context(), u))
	const why = "the pod of step collect has not started: ImagePullBackOff: no such image"
	w.step()
	if message := w.experiment().Status.Message; message == why {
		t.Error("it complains of a pod that has just been made")
	}
	w.until("reported", func(e *v1alpha1.Experiment) bool { return e.Status.Message == why })
	if w.shutdown() != "" {
		t.Error("the workflow is ended before the registry had time to come back")
	}
	w.clock.Step(collection.StepPodTimeout)
	w.killAfter, w.onDeath = len(w.writes)+1, w.restart // the next operator does not know why the workflow ended
	e := w.until("terminated", func(*v1alpha1.Experiment) bool { return w.shutdown() == "Terminate" })
	if !meta.IsStatusConditionTrue(e.Status.Conditions, scope.ConditionFailure) {
		t.Error("the workflow is ended before the reason is written")
	}
	u = w.workflow()
	w.must(unstructured.SetNestedField(u.Object, argo.Failed, "status", "phase"))
	w.must(w.api.Update(t.Context(), u))
	w.wantFailed(scope.ReasonWorkflowFailed, why)
}

func TestActionsThatNobodyReportsAreNamedInOneIncident(t *testing.T) {
	w := newWorld(t)
	w.untilAfterT0(10 * time.Second)
	w.noAgents = true
	e := w.untilPhase(v1alpha1.PhaseSucceeded)
	want := []runapi.Incident{{What: "NotReported", FromSeconds: 60,
		Reason: "no agent reported action 003-stop of veh-1/radio-udp, 003-stop of veh-2/radio-udp, 004-stop of nor/nor-units and 1 more actions"}}
	if diff := cmp.Diff(want, w.server.states[string(e.UID)].Incidents); diff != "" {
		t.Errorf("incidents (-want +got):\n%s", diff)
	}
}

func TestAHostThatIsNotReadyIsNamedWhereItsAgentsAreSilent(t *testing.T) {
	since := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	lose := func(w *world) {
		h := host("n1")
		w.must(w.api.Get(t.Context(), client.ObjectKeyFromObject(h), h))
		h.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(since)}}
		w.must(w.api.Status().Update(t.Context(), h))
		w.noAgents = true
	}
	const trouble = "(host n1 of nodes nor, observer, prt and 2 more has not been ready since 2026-05-01T12:00:00Z)"
	t.Run("during the run", func(t *testing.T) {
		w := newWorld(t)
		w.untilAfterT0(10 * time.Second)
		lose(w)
		e := w.untilPhase(v1alpha1.PhaseSucceeded)
		if all := w.server.states[string(e.UID)].Incidents; len(all) != 1 || !strings.HasSuffix(all[0].Reason, trouble) {
			t.Errorf("incidents %+v; want one that ends with %s", all, trouble)
		}
	})
	t.Run("before it", func(t *testing.T) {
		w := newWorld(t)
		w.noAgents = true
		w.untilPhase(v1alpha1.PhaseProvisioning)
		w.until("pods placed", func(*v1alpha1.Experiment) bool { return len(w.pods()) == 5 })
		lose(w)
		w.clock.Step(5 * time.Minute)
		w.wantFailed(scope.ReasonProvisioningTimeout, trouble)
	})
}
