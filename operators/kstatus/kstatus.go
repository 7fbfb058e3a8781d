// Package kstatus writes the conditions by which tools that know nothing of vignette tell what an object's controller is at: kstatus,
// which Flux and kubectl-based deployers read (https://github.com/kubernetes-sigs/cli-utils, pkg/kstatus), and by the health check in
// charts/vignette/files/argocd Argo CD.
package kstatus

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// State of an object. In each exactly one of the three conditions is True.
type State string

// The states: on the way to what the spec asks for; there; or not there, and waiting for a person.
const (
	InProgress State = v1alpha1.ConditionReconciling
	Current    State = v1alpha1.ConditionReady
	Failed     State = v1alpha1.ConditionStalled
)

// Set the conditions of a state, seen at a generation of the spec. Reason and message are the same for all three; a condition's time of
// transition changes only with its status.
func Set(conditions *[]metav1.Condition, state State, reason, message string, generation int64, now time.Time) {
	for _, kind := range []State{Current, InProgress, Failed} {
		status := metav1.ConditionFalse
		if kind == state {
			status = metav1.ConditionTrue
		}
		SetCondition(conditions, metav1.Condition{Type: string(kind), Status: status, Reason: reason, Message: message, ObservedGeneration: generation}, now)
	}
}

// SetCondition sets a condition and tells whether its status, reason or message changed. Its time of transition changes only with its status.
func SetCondition(conditions *[]metav1.Condition, condition metav1.Condition, now time.Time) (changed bool) {
	before := meta.FindStatusCondition(*conditions, condition.Type)
	changed = before == nil || before.Status != condition.Status || before.Reason != condition.Reason || before.Message != condition.Message
	condition.LastTransitionTime = metav1.NewTime(now)
	meta.SetStatusCondition(conditions, condition)
	return changed
}
