package scope

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/kstatus"
)

// SetCondition sets a condition and reports whether its status, reason or message changed.
func (s *Scope) SetCondition(kind string, status metav1.ConditionStatus, reason, message string) bool {
	return kstatus.SetCondition(&s.Experiment.Status.Conditions,
		metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: s.Experiment.Generation}, s.Now)
}

// Failure is the run's failure, nil for none.
func (s *Scope) Failure() *metav1.Condition {
	condition := meta.FindStatusCondition(s.Experiment.Status.Conditions, ConditionFailure)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return nil
	}
	return condition
}

// Fail records that the run fails. The first reason stays.
func (s *Scope) Fail(reason, format string, args ...any) {
	if s.Failure() != nil {
		return
	}
	message := Shorten(fmt.Sprintf(format, args...))
	s.SetCondition(ConditionFailure, metav1.ConditionTrue, reason, message)
	s.Experiment.Status.Message = message
	s.WarningEvent(reason, "%s", message)
	s.JustFailed = true
	s.RequeueAfter(0)
}

// FailUnrecoverably fails the run. If it has failed before, it gives up the workflow, and only the logs are archived.
func (s *Scope) FailUnrecoverably(reason, format string, args ...any) {
	s.Unrecoverable = s.Failure() != nil
	s.Fail(reason, format, args...)
}

// FailIfStopped fails an experiment that is stopped before T0. Users and campaigns stop it.
func (s *Scope) FailIfStopped() {
	if s.Experiment.Spec.Stop && s.Experiment.Status.T0 == nil {
		s.Fail(ReasonStoppedBeforeStart, "stopped before it started, by spec.stop: nothing was measured")
	}
}

// Finish sets the final phase of a run.
func (s *Scope) Finish(phase v1alpha1.ExperimentPhase, message string) {
	status := &s.Experiment.Status
	status.Phase, status.Message, status.Step = phase, message, ""
	now := metav1.NewTime(s.Now)
	status.CompletionTime = &now
	s.RequeueAfter(0) // to remove its nodes
	if phase == v1alpha1.PhaseSucceeded {
		status.Progress = "100%"
		s.NormalEvent(string(phase), "%s", message)
		return
	}
	s.WarningEvent(string(phase), "%s", message)
}

// SetNodes sets the number of nodes in the status.
func (s *Scope) SetNodes(ready, total int) {
	s.Experiment.Status.Nodes = v1alpha1.NodesStatus{Ready: int32(ready), Total: int32(total), Summary: fmt.Sprintf("%d/%d", ready, total)}
}

// SetStep sets the workflow's step. Only a change of the status makes an event, so there is one for each step.
func (s *Scope) SetStep(step string) {
	if step != "" && step != s.Experiment.Status.Step {
		s.NormalEvent("Step", "step %s has begun", step)
	}
	s.Experiment.Status.Step = step
}

// IsRunning reports whether the experiment has its radios and has not failed.
func (s *Scope) IsRunning() bool { return s.Phase() == v1alpha1.PhaseRunning && s.Failure() == nil }
