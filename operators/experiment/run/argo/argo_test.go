package argo

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"vignette.dev/vignette/operators/api/v1alpha1"
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
