package experiment

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/render"
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
	w.wantFailed(ReasonWorkflowNameTaken, "there is a Workflow quickstart that belongs to somebody else")
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

func TestTheDelayAfterRefusalsGrowsUntilAQuotaChanges(t *testing.T) {
	var l quotaRefusals
	now := start
	var waits []string
	for range 7 {
		_, wait := l.add("a", now, "pods 1")
		waits = append(waits, wait.String())
		if got := l.retryIn("a", now.Add(wait-time.Second), "pods 1"); got != time.Second {
			t.Errorf("a second before the next try it waits %s", got)
		}
		now = now.Add(wait)
		if got := l.retryIn("a", now, "pods 1"); got != 0 {
			t.Errorf("at the next try it waits %s", got)
		}
	}
	if got := strings.Join(waits, " "); got != "15s 30s 1m0s 2m0s 4m0s 5m0s 5m0s" {
		t.Errorf("waits %s", got)
	}
	l.add("a", now, "pods 1")
	if got := l.retryIn("a", now, "pods 9"); got != 0 {
		t.Errorf("waits %s although the quota has changed", got)
	}
	if got := l.retryIn("b", now, "pods 1"); got != 0 {
		t.Errorf("another experiment waits %s", got)
	}
	l.forget("a")
	if times, _ := l.add("a", now, "pods 1"); times != 1 {
		t.Errorf("counts %d refusals after it was forgotten", times)
	}
}
