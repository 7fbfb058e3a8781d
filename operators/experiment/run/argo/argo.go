// Package argo reads and resumes an experiment's Argo Workflow. It does not use Argo's own Go types, which depend on its
// whole controller.
package argo

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	// MainContainer executes a step.
	MainContainer = "main"
	// annotationNode has a pod's place in its workflow, such as quickstart[5].analyse(0).
	annotationNode = "workflows.argoproj.io/node-name"
)

// StepOf is the step of a workflow's pod, empty if it has none.
func StepOf(pod *corev1.Pod) string {
	place := pod.Annotations[annotationNode]
	name, _, _ := strings.Cut(place[strings.LastIndexByte(place, '.')+1:], "(")
	if slices.Contains(Steps, name) {
		return name
	}
	return ""
}

// Steps in order.
var Steps = []string{v1alpha1.StepReplay, v1alpha1.StepStart, v1alpha1.StepStop, v1alpha1.StepDrain, v1alpha1.StepCollect, v1alpha1.StepAnalyse}

// Phases of workflows and of their nodes.
const (
	Running   = "Running"
	Succeeded = "Succeeded"
	Failed    = "Failed"
	Pending   = "Pending"
	Error     = "Error"
)

// Step is the state of one step of a workflow.
type Step struct {
	Name, ID, Phase, Message string
	// Suspend means that the step waits to be resumed. Others run a pod.
	Suspend bool
	// Started and Finished are zero if unknown.
	Started, Finished time.Time
}

// State of a workflow.
type State struct {
	// Phase of the workflow is empty until Argo's controller has read it.
	Phase, Message string
	// Steps that Argo has started, by name.
	Steps map[string]Step
	// Pending is an attempt at a step whose pod has not started, with the step's name; zero for none.
	Pending Step
}

// Finished reports whether the workflow has ended.
func (s State) Finished() bool { return s.Phase == Succeeded || s.Phase == Failed || s.Phase == Error }

// Current is the last step that Argo has started, the zero Step before the first.
func (s State) Current() Step {
	var current Step
	for _, name := range Steps {
		if step, begun := s.Steps[name]; begun {
			current = step
		}
	}
	return current
}

// Failure is the message of the failed step or of the workflow.
func (s State) Failure() string {
	for _, name := range Steps {
		if step := s.Steps[name]; step.Phase == Failed || step.Phase == Error {
			return "step " + name + ": " + step.Message
		}
	}
	return s.Message
}

// Read returns the state of a workflow. For a retried step only the step counts, not its attempts.
func Read(w *unstructured.Unstructured) State {
	state := State{Steps: map[string]Step{}}
	state.Phase, _, _ = unstructured.NestedString(w.Object, "status", "phase")
	state.Message, _, _ = unstructured.NestedString(w.Object, "status", "message")
	nodes, _, _ := unstructured.NestedMap(w.Object, "status", "nodes")
	for id, value := range nodes {
		node, ok := value.(map[string]any)
		if !ok {
			continue
		}
		step := Step{ID: id, Name: text(node, "displayName"), Phase: text(node, "phase"), Message: text(node, "message"),
			Started: moment(node, "startedAt"), Finished: moment(node, "finishedAt")}
		switch text(node, "type") {
		case "Suspend":
			step.Suspend = true
		case "Pod", "Retry":
		default:
			continue
		}
		if slices.Contains(Steps, step.Name) {
			state.Steps[step.Name] = step
		}
		if attempted, _, _ := strings.Cut(step.Name, "("); step.Phase == Pending && slices.Contains(Steps, attempted) {
			state.Pending, state.Pending.Name = step, attempted
		}
	}
	return state
}

func text(node map[string]any, field string) string { s, _ := node[field].(string); return s }

// moment parses a time in RFC 3339, zero if there is none.
func moment(node map[string]any, field string) time.Time {
	at, _ := time.Parse(time.RFC3339, text(node, field))
	return at
}

// Resume ends a suspended step as `argo resume` does, so that Argo's controller continues with the next.
func Resume(w *unstructured.Unstructured, step Step, now time.Time) error {
	fields := map[string]string{"phase": Succeeded, "finishedAt": now.UTC().Format(time.RFC3339)}
	for name, value := range fields {
		if err := unstructured.SetNestedField(w.Object, value, "status", "nodes", step.ID, name); err != nil {
			return err
		}
	}
	return nil
}
