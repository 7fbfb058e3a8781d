package experiment

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/argo"
	"vignette.dev/vignette/operators/experiment/queue"
	"vignette.dev/vignette/operators/kstatus"
)

// Condition types beside those of the API package.
const (
	// ConditionFailure is True as soon as it is certain that a run fails, while its logs are still being collected. It
	// keeps the reason.
	ConditionFailure = "Failure"
	// ConditionCleanedUp is False if a deletion could not remove everything in time.
	ConditionCleanedUp = "CleanedUp"
)

// ReasonLive is the reason of Ready while a live cluster runs.
const ReasonLive = "Live"

// Reasons of Failure.
const (
	ReasonStoppedBeforeStart  = "StoppedBeforeStart"
	ReasonProvisioningTimeout = "ProvisioningTimeout"
	ReasonPodRefused          = "PodRefused"
	ReasonSecretRefused       = "SecretRefused"
	ReasonImage               = "ImageNotAvailable"
	ReasonContainer           = "ContainerNotStarted"
	ReasonUnschedulable       = "Unschedulable"
	ReasonNodeFailed          = "NodeFailed"
	ReasonAllNodesFailed      = "AllNodesFailed"
	ReasonAppFailed           = "AppFailed"
	ReasonArmedTooLate        = "ArmedTooLate"
	ReasonWorkflowNameTaken   = "WorkflowNameTaken"
	ReasonWorkflowDeleted     = "WorkflowDeleted"
	ReasonWorkflowFailed      = "WorkflowFailed"
	ReasonReferenceLost       = "ReferenceLost"
	ReasonRunRecordLost       = "RunRecordLost"
	ReasonArgoStalled         = "ArgoStalled"
	ReasonRadioNetworkDeleted = "RadioNetworkDeleted"
	ReasonRadioNetworkChanged = "RadioNetworkChanged"
	ReasonRadioRefused        = "RadioRefused"
	ReasonArchiveFull         = "ArchiveFull"
)

func finished(phase v1alpha1.ExperimentPhase) bool {
	return phase == v1alpha1.PhaseSucceeded || phase == v1alpha1.PhaseFailed
}

// setCondition sets a condition and reports whether its status, reason or message changed.
func (s *scope) setCondition(kind string, status metav1.ConditionStatus, reason, message string) bool {
	return kstatus.SetCondition(&s.experiment.Status.Conditions,
		metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: s.experiment.Generation}, s.now)
}

// failure is the run's failure, nil for none.
func (s *scope) failure() *metav1.Condition {
	condition := meta.FindStatusCondition(s.experiment.Status.Conditions, ConditionFailure)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return nil
	}
	return condition
}

// fail records that the run fails. The first reason stays.
func (s *scope) fail(reason, format string, args ...any) {
	if s.failure() != nil {
		return
	}
	message := shorten(fmt.Sprintf(format, args...))
	s.setCondition(ConditionFailure, metav1.ConditionTrue, reason, message)
	s.experiment.Status.Message = message
	s.warningEvent(reason, "%s", message)
	s.justFailed = true
	s.requeueAfter(0)
}

// failUnrecoverably fails the run. If it has failed before, it gives up the workflow, and archiveLogs saves the logs.
func (s *scope) failUnrecoverably(reason, format string, args ...any) {
	s.unrecoverable = s.failure() != nil
	s.fail(reason, format, args...)
}

// shorten cuts messages to what events accept.
func shorten(message string) string {
	const most = 1000
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:most-3], "") + "…"
}

func (s *scope) setNodes(ready, total int) {
	s.experiment.Status.Nodes = v1alpha1.NodesStatus{Ready: int32(ready), Total: int32(total), Summary: fmt.Sprintf("%d/%d", ready, total)}
}

// finish sets the final phase of a run.
func (s *scope) finish(phase v1alpha1.ExperimentPhase, message string) {
	status := &s.experiment.Status
	status.Phase, status.Message, status.Step = phase, message, ""
	now := metav1.NewTime(s.now)
	status.CompletionTime = &now
	s.requeueAfter(0) // to remove its nodes
	if phase == v1alpha1.PhaseSucceeded {
		status.Progress = "100%"
		s.normalEvent(string(phase), "%s", message)
		return
	}
	s.warningEvent(string(phase), "%s", message)
}

// setSummaryConditions derives the kstatus conditions from the phase.
func (s *scope) setSummaryConditions() {
	status := &s.experiment.Status
	if status.Phase != v1alpha1.PhaseQueued || !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionAccepted) {
		status.Queue = nil
	}
	state, reason := kstatus.InProgress, string(status.Phase)
	switch {
	case status.Phase == v1alpha1.PhaseSucceeded:
		state = kstatus.Current
	case status.Phase == v1alpha1.PhaseFailed:
		state = kstatus.Failed
		if failure := s.failure(); failure != nil {
			reason = failure.Reason
		}
	case status.Phase == v1alpha1.PhaseQueued:
		if stuck := s.stuckReason(); stuck != "" {
			state, reason = kstatus.Failed, stuck
		}
	case s.isLiveCluster():
		state, reason = kstatus.Current, ReasonLive
	}
	kstatus.Set(&status.Conditions, state, reason, status.Message, s.experiment.Generation, s.now)
	status.ObservedGeneration = s.experiment.Generation
}

// isLiveCluster reports whether a cluster without an end runs completely and is not being stopped.
func (s *scope) isLiveCluster() bool {
	return s.isRunning() && s.timeline != nil && s.timeline.Live() && s.experiment.Status.Step == argo.StepStop && !s.experiment.Spec.Stop
}

// stuckReason is why a queued experiment needs a change by the user, empty if it does not.
func (s *scope) stuckReason() string {
	conditions := s.experiment.Status.Conditions
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionAccepted); c != nil && c.Status == metav1.ConditionFalse {
		return c.Reason
	}
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionAdmitted)
	if c != nil && (c.Reason == queue.ReasonQuotaTooSmall || c.Reason == queue.ReasonClusterTooSmall || c.Reason == ReasonKueueInactive) {
		return c.Reason
	}
	return ""
}

// progressInterval limits how often the progress is written.
const progressInterval = 5 * time.Second

// progress is a run's progress in percent. The time from T0 makes up 90, draining, collecting and analysing the rest.
func progress(elapsed, end time.Duration) string {
	switch {
	case elapsed >= end:
		return "90%"
	case elapsed <= 0:
		return "0%"
	}
	return strconv.Itoa(int(90*elapsed.Truncate(progressInterval)/end)) + "%"
}

// setStep sets the workflow's step. Only a change of the status makes an event, so there is one for each step.
func (s *scope) setStep(step string) {
	if step != "" && step != s.experiment.Status.Step {
		s.normalEvent("Step", "step %s has begun", step)
	}
	s.experiment.Status.Step = step
}

// Headline summarises the results for the status.
func Headline(r *runapi.Results) *v1alpha1.ResultsSummary {
	group := r.HeadlineGroup()
	m := group.Messages
	triggered, offered := m.Counted()
	summary := &v1alpha1.ResultsSummary{Group: group.Name, Triggered: triggered, Sent: m.Sent, Offered: offered, Expected: m.Expected, Received: m.Received,
		Lost: m.Lost, Gaps: int32(len(r.Gaps)), Warnings: int32(len(r.Warnings))}
	if offered > 0 {
		percent := strconv.FormatFloat(100*float64(m.Received)/float64(offered), 'f', 2, 64)
		switch { // a single loss or arrival must stay visible
		case m.Received < offered && percent == "100.00":
			percent = "99.99"
		case m.Received > 0 && percent == "0.00":
			percent = "0.01"
		}
		summary.DeliveredPercent = strings.TrimSuffix(strings.TrimRight(percent, "0"), ".")
	}
	if group.DelaySeconds != nil {
		summary.MedianDelay = humanDelay(group.DelaySeconds.Median)
	}
	if r.Verdict != nil {
		kept := r.Verdict.KeptUp
		summary.KeptUp, summary.OffByAtMost = &kept, r.HeadlineBounds().String()
	}
	return summary
}

// maxNamedWarnings limits the warnings in a message, because campaigns keep the message of each run.
const maxNamedWarnings = 2

// finishedMessage is the message of a run with results.
func finishedMessage(summary *v1alpha1.ResultsSummary, warnings []runapi.Gap) string {
	message := "the results are complete"
	if summary.DeliveredPercent != "" {
		message = fmt.Sprintf("%s %% of %d offered deliveries arrived", summary.DeliveredPercent, summary.Offered)
	}
	if unsent := summary.Offered - summary.Expected; unsent > 0 {
		message += fmt.Sprintf(", %d were never sent", unsent)
	}
	for i, warning := range warnings {
		if i == maxNamedWarnings {
			return message + fmt.Sprintf("; %d more warnings", len(warnings)-i)
		}
		message += "; WARNING: " + warning.What
	}
	return message
}

func humanDelay(seconds float64) string {
	if seconds < 1 {
		return strconv.FormatFloat(seconds*1000, 'f', 1, 64) + "ms"
	}
	return strconv.FormatFloat(seconds, 'f', 2, 64) + "s"
}
