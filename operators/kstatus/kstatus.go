// Package kstatus writes the conditions by which generic tools recognise an object's state. Flux and kubectl-based deployers
// read them as kstatus (https://github.com/kubernetes-sigs/cli-utils, pkg/kstatus), and Argo CD by the health check in
// charts/vignette/files/argocd.
package kstatus

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// State of an object. In each state exactly one of the three conditions is True.
type State string

// The states: the spec is being applied, it is applied, or a person must act.
const (
	InProgress State = v1alpha1.ConditionReconciling
	Current    State = v1alpha1.ConditionReady
	Failed     State = v1alpha1.ConditionStalled
)

// Set sets the conditions of a state at a generation of the spec. All three have the same reason and message. A condition's
// transition time changes only with its status.
func Set(conditions *[]metav1.Condition, state State, reason, message string, generation int64, now time.Time) {
	for _, kind := range []State{Current, InProgress, Failed} {
		status := metav1.ConditionFalse
		if kind == state {
			status = metav1.ConditionTrue
		}
		SetCondition(conditions, metav1.Condition{Type: string(kind), Status: status, Reason: reason, Message: message, ObservedGeneration: generation}, now)
	}
}

// SetCondition sets a condition and reports whether its status, reason or message changed. Its transition time changes only
// with its status.
func SetCondition(conditions *[]metav1.Condition, condition metav1.Condition, now time.Time) (changed bool) {
	before := meta.FindStatusCondition(*conditions, condition.Type)
	changed = before == nil || before.Status != condition.Status || before.Reason != condition.Reason || before.Message != condition.Message
	condition.LastTransitionTime = metav1.NewTime(now)
	meta.SetStatusCondition(conditions, condition)
	return changed
}
