// Package collection watches the workflow's pods collect and analyse the logs of a run, and writes the headline of its
// results. Of a run that failed too early for that, it saves the logs as far as possible.
package collection

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"vignette.dev/vignette/internal/core/headline"
	"vignette.dev/vignette/internal/runapi"
	runs "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/nodes"
	"vignette.dev/vignette/operators/experiment/run/argo"
	"vignette.dev/vignette/operators/experiment/runrecord"
	"vignette.dev/vignette/operators/experiment/scope"
)

// Collector takes a run from its last step to its results.
type Collector struct {
	Workflows *argo.Workflows
	Record    *runrecord.Record
}

const (
	// archiveLogsTimeout is how long the operator tries to save the logs of a run that failed early.
	archiveLogsTimeout = 30 * time.Second
	// sealWaitSeconds is how long the server waits for the agents of such a run.
	sealWaitSeconds = 3.0
)

// Collect watches the workflow's pod steps until the results are there.
func (c *Collector) Collect(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Phase() != v1alpha1.PhaseCollecting && s.Phase() != v1alpha1.PhaseAnalysing {
		return false, nil
	}
	workflow, err := c.Workflows.Get(ctx, s)
	if err != nil || workflow == nil {
		return s.JustFailed, err
	}
	flow := argo.Read(workflow)
	if flow.Finished() {
		return c.finishRun(ctx, s, flow)
	}
	step := flow.Current()
	s.SetStep(step.Name)
	s.RequeueAfter(5 * time.Second)
	if step.Suspend && step.Phase == argo.Running {
		s.RequeueAfter(scope.ArmingPoll)
		return true, c.Workflows.Resume(ctx, workflow, step, s.Now) // a failed run passes through the remaining steps
	}
	if step.Phase != argo.Running {
		return c.Workflows.AwaitNext(ctx, s, workflow, step)
	}
	c.describeCollection(s, step)
	if stop, err := c.Workflows.EnsureAccount(ctx, s); stop || err != nil {
		return true, err
	}
	return true, c.checkStepPod(ctx, s, workflow, flow.Pending)
}

const (
	// stepPodStartTime is how long a pod of the workflow may take to start before the status says why.
	stepPodStartTime = 20 * time.Second
	// StepPodTimeout is how long a pod that cannot start is tolerated, as a registry may be away for a while.
	StepPodTimeout = 5 * time.Minute
)

// checkStepPod reports why a step's pod does not start, and ends the workflow if waiting cannot help.
func (c *Collector) checkStepPod(ctx context.Context, s *scope.Scope, workflow *unstructured.Unstructured, pending argo.Step) error {
	waits := s.Now.Sub(pending.Started)
	if pending.Message == "" || waits < stepPodStartTime {
		return nil
	}
	why := fmt.Sprintf("the pod of step %s has not started: %s", pending.Name, pending.Message)
	reason, _, _ := strings.Cut(pending.Message, ":")
	if permanent := nodes.CannotStart(reason); permanent && waits > StepPodTimeout {
		if s.Fail(scope.ReasonWorkflowFailed, "%s", why); s.JustFailed {
			return nil // the reason must be written before the workflow has another
		}
		return c.Workflows.Terminate(ctx, workflow)
	}
	if s.Failure() == nil {
		s.Experiment.Status.Message = scope.Shorten(why)
	}
	return nil
}

func (c *Collector) describeCollection(s *scope.Scope, step argo.Step) {
	status := &s.Experiment.Status
	switch step.Name {
	case v1alpha1.StepAnalyse:
		status.Phase, status.Progress = v1alpha1.PhaseAnalysing, "97%"
	default:
		status.Progress = "92%"
	}
	if s.Failure() == nil {
		status.Message = map[string]string{v1alpha1.StepAnalyse: "matching messages"}[step.Name]
		if status.Message == "" {
			status.Message = "collecting the nodes' logs"
		}
	}
}

// finishRun writes the results of a finished workflow, or the reason why there are none. It leaves a run whose logs the
// workflow has not collected to the next stage.
func (c *Collector) finishRun(ctx context.Context, s *scope.Scope, flow argo.State) (stop bool, err error) {
	if flow.Phase != argo.Succeeded {
		s.Fail(scope.ReasonWorkflowFailed, "%s", flow.Failure())
	}
	state, err := c.Record.Load(ctx, s)
	if runs.IsNotFound(err) {
		return !s.Unrecoverable, nil
	}
	if err != nil {
		return true, err
	}
	if flow.Phase != argo.Succeeded && !state.Sealed {
		return s.JustFailed, nil
	}
	if state.Results != nil {
		s.Experiment.Status.Results = headline.Of(state.Results)
	} else if flow.Phase == argo.Succeeded {
		s.Fail(scope.ReasonWorkflowFailed, "the analysis succeeded, but the server has no results.json")
	}
	phase, message := v1alpha1.PhaseSucceeded, "the results are complete"
	if state.Results != nil {
		message = headline.Message(s.Experiment.Status.Results, state.Results.Warnings)
	}
	if failure := s.Failure(); failure != nil {
		phase, message = v1alpha1.PhaseFailed, failure.Message
	}
	plan := state.Plan
	plan.Phase, plan.Message = phase, message
	if plan.Environment, err = c.Record.StepImages(ctx, s, plan.Environment); err != nil {
		return true, err
	}
	if !runrecord.Same(state.Plan, plan) {
		if _, err := c.Record.PutPlan(ctx, plan); err != nil {
			return true, err
		}
	}
	s.Finish(phase, message)
	return true, nil
}

// ArchiveLogs closes a run that failed without a workflow that collected its logs. For a bounded time it asks the agents to
// finish and the server to seal what it has.
func (c *Collector) ArchiveLogs(ctx context.Context, s *scope.Scope) (bool, error) {
	failure := s.Failure()
	if failure == nil || scope.Finished(s.Phase()) {
		return false, nil
	}
	message := failure.Message
	if err := c.sealLogs(ctx, s, message); err != nil {
		if s.Now.Sub(failure.LastTransitionTime.Time) < archiveLogsTimeout {
			s.RequeueAfter(2 * time.Second)
			return true, nil
		}
		message = scope.Shorten(fmt.Sprintf("%s (its logs could not be archived: %v)", message, err))
	}
	if err := c.Workflows.TerminateOf(ctx, s); err != nil {
		return true, err
	}
	s.Finish(v1alpha1.PhaseFailed, message)
	return true, nil
}

func (c *Collector) sealLogs(ctx context.Context, s *scope.Scope, message string) error {
	uid := string(s.Experiment.UID)
	state, err := c.Record.State(ctx, uid)
	if runs.IsNotFound(err) {
		return nil // the server has no record of the run, so there is nothing to save
	}
	if err != nil {
		return err
	}
	plan := state.Plan
	plan.Phase, plan.Message = v1alpha1.PhaseFailed, message
	if !runrecord.Same(state.Plan, plan) {
		if _, err := c.Record.PutPlan(ctx, plan); err != nil {
			return err
		}
	}
	if len(state.Agents) == 0 || state.Sealed {
		return nil
	}
	_, err = c.Record.Seal(ctx, uid, runapi.SealRequest{WaitSeconds: sealWaitSeconds})
	return err
}
