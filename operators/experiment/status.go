package experiment

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/internal/core/queue"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
	"vignette.dev/vignette/operators/kstatus"
)

// setSummaryConditions derives the kstatus conditions from the phase.
func setSummaryConditions(s *scope.Scope) {
	status := &s.Experiment.Status
	if status.Phase != v1alpha1.PhaseQueued || !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionAccepted) {
		status.Queue = nil
	}
	state, reason := kstatus.InProgress, string(status.Phase)
	switch {
	case status.Phase == v1alpha1.PhaseSucceeded:
		state = kstatus.Current
	case status.Phase == v1alpha1.PhaseFailed:
		state = kstatus.Failed
		if failure := s.Failure(); failure != nil {
			reason = failure.Reason
		}
	case status.Phase == v1alpha1.PhaseQueued:
		if stuck := stuckReason(s); stuck != "" {
			state, reason = kstatus.Failed, stuck
		}
	case isLiveCluster(s):
		state, reason = kstatus.Current, scope.ReasonLive
	}
	kstatus.Set(&status.Conditions, state, reason, status.Message, s.Experiment.Generation, s.Now)
	status.ObservedGeneration = s.Experiment.Generation
}

// isLiveCluster reports whether a cluster without an end runs completely and is not being stopped.
func isLiveCluster(s *scope.Scope) bool {
	return s.IsRunning() && s.Timeline != nil && s.Timeline.Live() && s.Experiment.Status.Step == v1alpha1.StepStop && !s.Experiment.Spec.Stop
}

// stuckReason is why a queued experiment needs a change by the user, empty if it does not.
func stuckReason(s *scope.Scope) string {
	conditions := s.Experiment.Status.Conditions
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionAccepted); c != nil && c.Status == metav1.ConditionFalse {
		return c.Reason
	}
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionAdmitted)
	if c != nil && (c.Reason == queue.ReasonQuotaTooSmall || c.Reason == queue.ReasonClusterTooSmall || c.Reason == scope.ReasonKueueInactive) {
		return c.Reason
	}
	return ""
}
