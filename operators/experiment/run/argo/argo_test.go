package argo

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

func workflow(nodes map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": "Running", "nodes": nodes}}}
}

func node(name, kind, phase string) map[string]any {
	return map[string]any{"displayName": name, "type": kind, "phase": phase, "message": "message of " + name}
}

func TestTheCurrentStepIsTheLastThatHasStarted(t *testing.T) {
	state := Read(workflow(map[string]any{
		"a": node("quickstart", "Steps", "Running"), "b": node("[0]", "StepGroup", "Succeeded"),
		"c": node("replay", "Suspend", "Succeeded"), "d": node("start", "Suspend", "Running"),
	}))
	if got := state.Current(); got.Name != v1alpha1.StepStart || got.ID != "d" || !got.Suspend || got.Phase != Running {
		t.Errorf("current step is %+v", got)
	}
	if Read(workflow(nil)).Current().Name != "" || Read(&unstructured.Unstructured{}).Phase != "" {
		t.Error("a workflow that Argo has not begun has a step")
	}
}

func TestARetriedStepCountsAndNotItsAttempts(t *testing.T) {
	state := Read(workflow(map[string]any{
		"a": node("collect", "Retry", "Running"), "b": node("collect(0)", "Pod", "Failed"), "c": node("collect(1)", "Pod", "Running"),
	}))
	if got := state.Steps[v1alpha1.StepCollect]; got.ID != "a" || len(state.Steps) != 1 {
		t.Errorf("steps are %+v", state.Steps)
	}
}

func TestAnAttemptWhosePodHasNotStartedIsKnownWithItsTime(t *testing.T) {
	attempt := node("collect(1)", "Pod", "Pending")
	attempt["startedAt"] = "2026-11-20T12:00:00Z"
	state := Read(workflow(map[string]any{"a": node("collect", "Retry", "Running"), "b": node("collect(0)", "Pod", "Failed"), "c": attempt}))
	want := Step{Name: v1alpha1.StepCollect, ID: "c", Phase: Pending, Message: "message of collect(1)", Started: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	if state.Pending != want {
		t.Errorf("pending is %+v, want %+v", state.Pending, want)
	}
}

func TestAFailureHasTheStepsMessage(t *testing.T) {
	state := Read(workflow(map[string]any{"a": node("analyse", "Retry", "Failed")}))
	if got := state.Failure(); got != "step analyse: message of analyse" {
		t.Errorf("failure is %q", got)
	}
}

func TestResumeEndsExactlyTheSuspendedStep(t *testing.T) {
	w := workflow(map[string]any{"c": node("replay", "Suspend", "Running"), "d": node("start", "Suspend", "Running")})
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	if err := Resume(w, Read(w).Steps[v1alpha1.StepReplay], now); err != nil {
		t.Fatal(err)
	}
	state := Read(w)
	if state.Steps[v1alpha1.StepReplay].Phase != Succeeded || state.Steps[v1alpha1.StepStart].Phase != Running {
		t.Errorf("steps are %+v", state.Steps)
	}
	if at, _, _ := unstructured.NestedString(w.Object, "status", "nodes", "c", "finishedAt"); at != "2026-11-20T12:00:00Z" {
		t.Errorf("finishedAt is %q", at)
	}
}

func TestARefusedAccountOfTheWorkflowIsNamed(t *testing.T) {
	refused := func(why string) error {
		return apierrors.NewForbidden(corev1.Resource("serviceaccounts"), "vignette-workflow", errors.New(why))
	}
	for name, c := range map[string]struct {
		phase                  v1alpha1.ExperimentPhase
		refusal                error
		reason, message        string // of the failure
		setback, waits, errors bool
	}{
		"by a policy, before the start": {phase: v1alpha1.PhaseProvisioning, refusal: refused("denied by policy"), reason: scope.ReasonPodRefused, message: "the cluster refuses ServiceAccount vignette-workflow"},
		"by a quota, before the start":  {phase: v1alpha1.PhaseProvisioning, refusal: refused("exceeded quota: team"), setback: true},
		"by a policy, after the run":    {phase: v1alpha1.PhaseRunning, refusal: refused("denied by policy"), waits: true, errors: true},
		"by nobody, as it is away":      {phase: v1alpha1.PhaseProvisioning, refusal: errors.New("connection refused"), errors: true},
	} {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientBuilder().WithScheme(testkube.Scheme()).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return c.refusal }}).Build()
			e := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "run", UID: "u1"}}
			e.Status.Phase = c.phase
			s := &scope.Scope{Experiment: e, Topology: &topology.Topology{Nodes: make([]topology.Node, 1)}}
			stop, err := (&Workflows{Client: kube, Live: kube}).EnsureAccount(t.Context(), s)
			if !stop || (err != nil) != c.errors || (s.Setback != nil) != c.setback {
				t.Errorf("stop %t, error %v, setback %v", stop, err, s.Setback)
			}
			failure := s.Failure()
			if (failure != nil) != (c.reason != "") || failure != nil && (failure.Reason != c.reason || !strings.Contains(failure.Message, c.message) || !strings.Contains(failure.Message, "denied by policy")) {
				t.Errorf("failure %+v; want %s, %q", failure, c.reason, c.message)
			}
			if waits := strings.Contains(e.Status.Message, "waiting, as the cluster refuses ServiceAccount vignette-workflow"); waits != c.waits {
				t.Errorf("message %q", e.Status.Message)
			}
		})
	}
}
