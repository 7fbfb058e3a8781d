package campaign

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// setCondition sets a condition and tells whether its status, reason or message changed.
func (s *scope) setCondition(kind string, status metav1.ConditionStatus, reason, message string) bool {
	c := s.campaign
	before := meta.FindStatusCondition(c.Status.Conditions, kind)
	changed := before == nil || before.Status != status || before.Reason != reason || before.Message != message
	condition := metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: c.Generation}
	if before == nil || before.Status != status {
		condition.LastTransitionTime = metav1.NewTime(s.now)
	}
	meta.SetStatusCondition(&c.Status.Conditions, condition)
	return changed
}

// summarise derives the kstatus conditions from the phase: exactly one of "in progress", "done" and "stuck".
func (s *scope) summarise() {
	status := &s.campaign.Status
	reason, message := string(status.Phase), status.Message
	ready, reconciling, stalled := metav1.ConditionFalse, metav1.ConditionTrue, metav1.ConditionFalse
	accepted := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAccepted)
	switch {
	case accepted != nil && accepted.Status == metav1.ConditionFalse:
		reason, message = accepted.Reason, accepted.Message
		reconciling, stalled = metav1.ConditionFalse, metav1.ConditionTrue
		status.Message = message
	case status.Phase == v1alpha1.CampaignSucceeded,
		status.Phase == v1alpha1.CampaignSuspended && status.Counts.Running == 0,
		status.Phase == v1alpha1.CampaignScheduled: // the message tells how the last round ended
		ready, reconciling = metav1.ConditionTrue, metav1.ConditionFalse
	case status.Phase == v1alpha1.CampaignFailed:
		reconciling, stalled = metav1.ConditionFalse, metav1.ConditionTrue
	}
	s.setCondition(v1alpha1.ConditionReady, ready, reason, message)
	s.setCondition(v1alpha1.ConditionReconciling, reconciling, reason, message)
	s.setCondition(v1alpha1.ConditionStalled, stalled, reason, message)
	status.ObservedGeneration = s.campaign.Generation
}
