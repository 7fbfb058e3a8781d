package experiment

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

// workflowOf creates another's Workflow with the run's name.
func (w *world) workflowOf(owner *metav1.OwnerReference) {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(render.WorkflowKind)
	u.SetName(w.key.Name)
	u.SetNamespace(w.key.Namespace)
	if owner != nil {
		u.SetOwnerReferences([]metav1.OwnerReference{*owner})
	}
	w.must(w.api.Create(w.t.Context(), u))
}

func TestTheWorkflowOfAnEarlierNamesakeIsAwaited(t *testing.T) {
	w := newWorld(t)
	w.noArgo = true
	former := w.experiment()
	former.UID = types.UID("uid-of-a-former-one")
	owner := render.Owner(former)
	w.workflowOf(&owner)
	w.untilPhase(v1alpha1.PhaseRunning)
	w.settle()
	if e := w.experiment(); e.Status.Message != "waiting for the deletion of Workflow quickstart of an earlier experiment" {
		t.Errorf("phase %s, message %q", e.Status.Phase, e.Status.Message)
	}
	w.must(w.api.Delete(t.Context(), w.workflow()))
	w.noArgo = false
	w.untilPhase(v1alpha1.PhaseSucceeded)
}

func TestAWorkflowOfSomebodyElseFailsTheRun(t *testing.T) {
	w := newWorld(t)
	w.noArgo = true
	w.workflowOf(nil)
	w.wantFailed(scope.ReasonWorkflowNameTaken, "there is a Workflow quickstart that belongs to somebody else")
}

func TestTheReportOfAnEarlierPodsAgentDoesNotCount(t *testing.T) {
	w := newWorld(t)
	w.noAgents, w.noKubelet = true, true
	w.untilPhase(v1alpha1.PhaseProvisioning)
	w.settle()
	state := w.server.states[string(w.experiment().UID)]
	for _, node := range state.Plan.Nodes {
		for _, app := range append(node.Apps, runapi.PlannedApp{Name: render.IdleApp}) {
			state.Agents = append(state.Agents, runapi.AgentState{Node: node.Name, AgentReport: runapi.AgentReport{App: app.Name}})
		}
	}
	w.step()
	if e := w.experiment(); e.Status.Phase != v1alpha1.PhaseProvisioning || e.Status.Nodes.Ready != 0 {
		t.Errorf("%s with %s nodes ready, though no pod runs", e.Status.Phase, e.Status.Nodes.Summary)
	}
	w.noAgents, w.noKubelet = false, false
	w.untilPhase(v1alpha1.PhaseRunning)
}
