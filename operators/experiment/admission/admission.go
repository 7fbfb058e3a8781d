// Package admission accepts an experiment whose spec and references are valid, and admits it once its queue, or Kueue, has
// room for all of its nodes. It takes back an experiment whose nodes a quota refuses.
package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/core/checks"
	"vignette.dev/vignette/internal/core/queue"
	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/admission/references"
	"vignette.dev/vignette/operators/experiment/kueue"
	"vignette.dev/vignette/operators/experiment/objects"
	"vignette.dev/vignette/operators/experiment/scope"
)

// Admitter accepts and admits experiments.
type Admitter struct {
	Objects    *objects.Objects
	References *references.Resolver
	Workloads  *kueue.Workloads
	Queue      *Queue

	// kueueChecks are the times of the last checks of the Workloads of started experiments.
	kueueChecks checkTimes
}

// Forget forgets what is remembered of an experiment that is past admission, and how often it was refused once its nodes
// are ready. A deleted one also leaves the queue.
func (a *Admitter) Forget(s *scope.Scope) {
	uid, deleted := s.Experiment.UID, !s.Experiment.DeletionTimestamp.IsZero()
	starts := s.Phase() == "" || s.Phase() == v1alpha1.PhaseQueued || s.Phase() == v1alpha1.PhaseProvisioning
	if deleted || !starts {
		a.Queue.setbacks.forget(uid)
	}
	if deleted {
		a.Queue.forget(uid)
	}
}

// recheckInterval is the time until a missing ConfigMap, Secret or claim is looked for again, as users wait for it.
const recheckInterval = 5 * time.Second

// acceptedMessage is the message about an accepted experiment, with warnings about what is probably unintended.
func acceptedMessage(s *scope.Scope) string {
	message := "every reference is valid"
	for _, warning := range render.SpecWarnings(s.RenderInput(), s.Waveforms, s.Scenario) {
		message += "; " + warning.Error()
	}
	return message
}

// Accept sets the Accepted condition. Until it is true, nothing is created.
func (a *Admitter) Accept(ctx context.Context, s *scope.Scope) (bool, error) {
	status := &s.Experiment.Status
	switch s.Phase() {
	case "":
		status.Phase = v1alpha1.PhaseQueued
		s.NormalEvent(string(v1alpha1.PhaseQueued), "waiting to be admitted")
		if s.Experiment.Spec.Stop {
			s.RequeueAfter(0)
			return true, nil
		}
	case v1alpha1.PhaseQueued:
		if s.Experiment.Spec.Stop { // a stop does not wait for references
			s.FailIfStopped()
			return s.JustFailed, nil // the server may have a record of an earlier start, which is closed next
		}
	case v1alpha1.PhaseProvisioning:
		if len(s.Findings) > 0 {
			s.Fail(scope.ReasonReferenceLost, "%s", describeFindings(s.Findings))
		}
		return s.JustFailed, nil
	default:
		return false, nil
	}
	for _, check := range []func(context.Context, *scope.Scope) error{a.References.CheckSubnets, a.References.CheckLimits} {
		if err := check(ctx, s); err != nil {
			return true, err
		}
	}
	s.SetNodes(0, len(s.Topology.Nodes))
	if len(s.Findings) == 0 {
		s.SetCondition(v1alpha1.ConditionAccepted, metav1.ConditionTrue, scope.ReasonAccepted, acceptedMessage(s))
		return false, nil
	}
	status.Message = describeFindings(s.Findings)
	if s.SetCondition(v1alpha1.ConditionAccepted, metav1.ConditionFalse, s.Findings[0].Reason, status.Message) {
		s.WarningEvent("NotAccepted", "%s", status.Message)
	}
	s.RequeueAfter(time.Minute) // cluster ranges are not watched
	notWatched := []string{scope.ReasonConfigMapNotFound, scope.ReasonKeyNotFound, checks.ReasonScriptInvalid, checks.ReasonPayloadTooLarge,
		scope.ReasonSecretNotFound, scope.ReasonSecretNotAllowed, scope.ReasonDiskNotFound, scope.ReasonDiskNotAllowed, scope.ReasonOpenNotAllowed, scope.ReasonLimitsMissing}
	if slices.Contains(notWatched, s.Findings[0].Reason) {
		s.RequeueAfter(recheckInterval)
	}
	return true, a.Workloads.Leave(ctx, s.Experiment) // others may wait for what Kueue has reserved for it
}

func describeFindings(findings []scope.Finding) string {
	messages := make([]string, len(findings))
	for i, f := range findings {
		messages[i] = f.Message
	}
	return scope.Shorten(strings.Join(messages, "; "))
}

// Admit admits a queued experiment once it is the first of its queue and there is room for all of its nodes.
func (a *Admitter) Admit(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Phase() != v1alpha1.PhaseQueued || s.Failure() != nil {
		return false, nil
	}
	if s.Experiment.Spec.QueueName != "" {
		return a.admitByKueue(ctx, s)
	}
	if err := a.Workloads.Leave(ctx, s.Experiment); err != nil {
		return true, err
	}
	decision, decided, err := a.Queue.decision(ctx, s)
	if err != nil || !decided {
		return true, err
	}
	s.Experiment.Status.Queue = queueStatus(&decision)
	if !decision.Admitted {
		a.stayQueued(s, &decision)
		return true, nil
	}
	beginProvisioning(s, decision.Message)
	return true, nil
}

// stayQueued keeps the experiment in the queue and reports why.
func (a *Admitter) stayQueued(s *scope.Scope, decision *queue.Decision) {
	if decision.Reason == queue.ReasonQuotaRefused { // the message of the refusal stays
		if refusal := meta.FindStatusCondition(s.Experiment.Status.Conditions, v1alpha1.ConditionAdmitted); refusal != nil {
			s.Experiment.Status.Message = refusal.Message
		}
		// The decision may be older than the end of the wait.
		s.RequeueAfter(max(a.Queue.setbacks.retryInUnchanged(s.Experiment.UID, s.Now), minQueueInterval))
		return
	}
	reportWaiting(s, decision.Reason, decision.Message)
}

// reportWaiting says why the experiment waits. Only a new reason makes an event, because the message may change often.
func reportWaiting(s *scope.Scope, reason, message string) {
	s.Experiment.Status.Message = message
	before := meta.FindStatusCondition(s.Experiment.Status.Conditions, v1alpha1.ConditionAdmitted)
	isNew := before == nil || before.Reason != reason
	s.SetCondition(v1alpha1.ConditionAdmitted, metav1.ConditionFalse, reason, message)
	switch {
	case !isNew:
	case slices.Contains([]string{queue.ReasonNoRoom, queue.ReasonWaitingForTurn, scope.ReasonWaitingForKueue}, reason):
		s.NormalEvent(reason, "%s", message)
	default: // somebody must act
		s.WarningEvent(reason, "%s", message)
	}
}

// beginProvisioning admits the experiment and starts its provisioning.
func beginProvisioning(s *scope.Scope, message string) {
	status := &s.Experiment.Status
	s.SetCondition(v1alpha1.ConditionAdmitted, metav1.ConditionTrue, queue.ReasonAdmitted, message)
	s.NormalEvent(queue.ReasonAdmitted, "%s", message)
	now := metav1.NewTime(s.Now)
	status.Phase, status.StartTime, status.Message, status.Queue = v1alpha1.PhaseProvisioning, &now, scope.CreatingNodes, nil
	if !s.Timeline.Live() {
		status.Progress = "0%"
	}
	// Objects are created only in the next reconciliation, because the written phase is what freezes the spec.
}

// maxStarts is how often an experiment's nodes are started, if hosts are too busy for it.
const maxStarts = 3

// TakeBack queues an experiment again whose nodes a quota has refused, or a busy host has not started. It must have all
// nodes or none, so those that were created are deleted once the phase is written.
func (a *Admitter) TakeBack(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Setback == nil {
		return false, nil
	}
	if s.Failure() != nil {
		return s.JustFailed, nil
	}
	quotas, err := a.Queue.quotaFingerprint(ctx, s.Experiment)
	if err != nil {
		return true, err
	}
	status := &s.Experiment.Status
	refused := s.Setback.Reason == ""
	times, wait := a.Queue.setbacks.add(s.Experiment.UID, refused, ptr.Deref(status.StartTime, metav1.Time{}).Time, s.Now, quotas)
	reason, message := queue.ReasonQuotaRefused, fmt.Sprintf("not all nodes could be created, so all are deleted (refused %s; next try in %s, or when a quota or the spec changes): %v",
		timesInWords(times), wait, s.Setback.Err)
	if !refused {
		reason, message = scope.ReasonNotStarted, fmt.Sprintf("not all nodes have started, so all are deleted (tried %s; next try in %s): %v", timesInWords(times), wait, s.Setback.Err)
		if times >= maxStarts {
			s.Fail(s.Setback.Reason, "tried %s: %v", timesInWords(times), s.Setback.Err)
			return true, nil
		}
	}
	message = scope.Shorten(message)
	a.Queue.forget(s.Experiment.UID)
	status.Phase, status.StartTime, status.Message, status.Progress = v1alpha1.PhaseQueued, nil, message, ""
	s.SetCondition(v1alpha1.ConditionAdmitted, metav1.ConditionFalse, reason, message)
	s.WarningEvent(reason, "%s", message)
	s.RequeueAfter(0) // to delete the nodes
	return true, nil
}
