package campaign

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/kstatus"
)

// setCondition sets a condition and reports whether its status, reason or message changed.
func (s *scope) setCondition(kind string, status metav1.ConditionStatus, reason, message string) bool {
	return kstatus.SetCondition(&s.campaign.Status.Conditions,
		metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: s.campaign.Generation}, s.now)
}

// setSummaryConditions derives the kstatus conditions from the phase.
func (s *scope) setSummaryConditions() {
	status := &s.campaign.Status
	state, reason := kstatus.InProgress, string(status.Phase)
	accepted := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAccepted)
	switch {
	case accepted != nil && accepted.Status == metav1.ConditionFalse:
		state, reason, status.Message = kstatus.Failed, accepted.Reason, accepted.Message
	case status.Phase == v1alpha1.CampaignSucceeded,
		status.Phase == v1alpha1.CampaignSuspended && status.Counts.Running == 0,
		status.Phase == v1alpha1.CampaignScheduled: // the message has the last round's result
		state = kstatus.Current
	case status.Phase == v1alpha1.CampaignFailed:
		state = kstatus.Failed
	}
	kstatus.Set(&status.Conditions, state, reason, status.Message, s.campaign.Generation, s.now)
	status.ObservedGeneration = s.campaign.Generation
}
