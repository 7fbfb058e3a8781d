// Package argo reads and resumes Argo Workflows as far as an experiment's needs go. Argo's own Go
// types would pull in its whole controller.
package argo

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Steps of the template vignette-experiment, in order.
const (
	StepReplay  = "replay"
	StepStart   = "start"
	StepStop    = "stop"
	StepDrain   = "drain"
	StepCollect = "collect"
	StepAnalyse = "analyse"
)

// LabelWorkflow is on every pod of a workflow, and MainContainer is the one that does its step's work.
const (
	LabelWorkflow = "workflows.argoproj.io/workflow"
	MainContainer = "main"
	// annotationNode has a pod's place in its workflow, such as quickstart[5].analyse(0).
	annotationNode = "workflows.argoproj.io/node-name"
)

// StepOf a workflow's pod; empty where it is of none.
func StepOf(pod *corev1.Pod) string {
	place := pod.Annotations[annotationNode]
	name, _, _ := strings.Cut(place[strings.LastIndexByte(place, '.')+1:], "(")
	if slices.Contains(Steps, name) {
		return name
	}
	return ""
}

// Steps in order.
var Steps = []string{StepReplay, StepStart, StepStop, StepDrain, StepCollect, StepAnalyse}

// Phases of workflows and of their nodes.
const (
	Running   = "Running"
	Succeeded = "Succeeded"
	Failed    = "Failed"
	Pending   = "Pending"
	Error     = "Error"
)

// Step is one step of a workflow, as far as Argo has come.
type Step struct {
	Name, ID, Phase, Message string
	// Suspend tells that the step waits to be resumed; others run a pod.
	Suspend bool
	// Started and Finished are zero where they are not known, or not yet.
	Started, Finished time.Time
}

// State of a workflow.
type State struct {
	// Phase of the workflow; empty until Argo's controller has seen it.
	Phase, Message string
	// Steps by name, those that Argo has begun.
	Steps map[string]Step
	// Pending is the attempt at a step whose pod has not started, under the step's name; zero for none.
	Pending Step
}

// Finished tells that Argo will do nothing more.
func (s State) Finished() bool { return s.Phase == Succeeded || s.Phase == Failed || s.Phase == Error }

// Current is the last step that Argo has begun; the zero Step before the first.
func (s State) Current() Step {
	var current Step
	for _, name := range Steps {
		if step, begun := s.Steps[name]; begun {
			current = step
		}
	}
	return current
}

// Failure of a workflow in the words of the step that failed.
func (s State) Failure() string {
	for _, name := range Steps {
		if step := s.Steps[name]; step.Phase == Failed || step.Phase == Error {
			return "step " + name + ": " + step.Message
		}
	}
	return s.Message
}

// Read a workflow. Of a step that Argo retries only the step counts, not its attempts.
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
		if isStep(step.Name) {
			state.Steps[step.Name] = step
		}
		if attempted, _, _ := strings.Cut(step.Name, "("); step.Phase == Pending && isStep(attempted) {
			state.Pending, state.Pending.Name = step, attempted
		}
	}
	return state
}

func isStep(name string) bool {
	for _, s := range Steps {
		if s == name {
			return true
		}
	}
	return false
}

func text(node map[string]any, field string) string { s, _ := node[field].(string); return s }

// moment in RFC 3339; zero where there is none.
func moment(node map[string]any, field string) time.Time {
	at, _ := time.Parse(time.RFC3339, text(node, field))
	return at
}

// Resume lets a suspended step end, as `argo resume` does: Argo's controller goes on with what follows.
func Resume(w *unstructured.Unstructured, step Step, now time.Time) error {
	fields := map[string]string{"phase": Succeeded, "finishedAt": now.UTC().Format(time.RFC3339)}
	for name, value := range fields {
		if err := unstructured.SetNestedField(w.Object, value, "status", "nodes", step.ID, name); err != nil {
			return err
		}
	}
	return nil
}
