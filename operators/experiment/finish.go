package experiment

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/runapi"
	runs "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/argo"
	"vignette.dev/vignette/operators/experiment/render"
)

const (
	// archiveLogsTimeout is how long the operator tries to save the logs of a run that failed early.
	archiveLogsTimeout = 30 * time.Second
	// sealWaitSeconds is how long the server waits for the agents of such a run.
	sealWaitSeconds = 3.0
)

// collectResults watches the workflow's pod steps until the results are there.
func (r *Reconciler) collectResults(ctx context.Context, s *scope) (bool, error) {
	if s.phase() != v1alpha1.PhaseCollecting && s.phase() != v1alpha1.PhaseAnalysing {
		return false, nil
	}
	workflow, err := r.workflow(ctx, s)
	if err != nil || workflow == nil {
		return s.justFailed, err
	}
	flow := argo.Read(workflow)
	if flow.Finished() {
		err := r.finishRun(ctx, s, flow)
		return !s.unrecoverable, err
	}
	step := flow.Current()
	s.setStep(step.Name)
	s.requeueAfter(5 * time.Second)
	if step.Suspend && step.Phase == argo.Running {
		s.requeueAfter(armingPoll)
		return true, r.resume(ctx, workflow, step, s.now) // a failed run passes through the remaining steps
	}
	if step.Phase != argo.Running {
		return r.awaitNextStep(ctx, s, workflow, step)
	}
	r.describeCollection(s, step)
	if stop, err := r.ensureShared(ctx, s); stop || err != nil {
		return true, err
	}
	return true, r.checkStepPod(ctx, s, workflow, flow.Pending)
}

const (
	// stepPodStartTime is how long a pod of the workflow may take to start before the status says why.
	stepPodStartTime = 20 * time.Second
	// stepPodTimeout is how long a pod that cannot start is tolerated, as a registry may be away for a while.
	stepPodTimeout = 5 * time.Minute
)

// checkStepPod reports why a step's pod does not start, and ends the workflow if waiting cannot help.
func (r *Reconciler) checkStepPod(ctx context.Context, s *scope, workflow *unstructured.Unstructured, pending argo.Step) error {
	waits := s.now.Sub(pending.Started)
	if pending.Message == "" || waits < stepPodStartTime {
		return nil
	}
	why := fmt.Sprintf("the pod of step %s has not started: %s", pending.Name, pending.Message)
	reason, _, _ := strings.Cut(pending.Message, ":")
	if permanent := imageReasons[reason] || containerReasons[reason]; permanent && waits > stepPodTimeout {
		s.fail(ReasonWorkflowFailed, "%s", why)
		return r.terminate(ctx, workflow)
	}
	if s.failure() == nil {
		s.experiment.Status.Message = shorten(why)
	}
	return nil
}

// terminate ends a workflow as `argo terminate` does.
func (r *Reconciler) terminate(ctx context.Context, workflow *unstructured.Unstructured) error {
	if shutdown, _, _ := unstructured.NestedString(workflow.Object, "spec", "shutdown"); shutdown != "" || argo.Read(workflow).Finished() {
		return nil
	}
	ended := workflow.DeepCopy()
	if err := unstructured.SetNestedField(ended.Object, "Terminate", "spec", "shutdown"); err != nil {
		return err
	}
	return client.IgnoreNotFound(r.Client.Patch(ctx, ended, client.MergeFrom(workflow)))
}

// terminateWorkflow ends the workflow of a failed run, which would otherwise wait for ever.
func (r *Reconciler) terminateWorkflow(ctx context.Context, s *scope) error {
	w := &unstructured.Unstructured{}
	w.SetGroupVersionKind(render.WorkflowKind)
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(s.experiment), w)
	if err != nil || !metav1.IsControlledBy(w, s.experiment) {
		return client.IgnoreNotFound(err)
	}
	return r.terminate(ctx, w)
}

func (r *Reconciler) describeCollection(s *scope, step argo.Step) {
	status := &s.experiment.Status
	switch step.Name {
	case argo.StepAnalyse:
		status.Phase, status.Progress = v1alpha1.PhaseAnalysing, "97%"
	default:
		status.Progress = "92%"
	}
	if s.failure() == nil {
		status.Message = map[string]string{argo.StepAnalyse: "matching messages"}[step.Name]
		if status.Message == "" {
			status.Message = "collecting the nodes' logs"
		}
	}
}

// finishRun writes the results of a finished workflow, or the reason why there are none.
func (r *Reconciler) finishRun(ctx context.Context, s *scope, flow argo.State) error {
	if flow.Phase != argo.Succeeded {
		s.fail(ReasonWorkflowFailed, "%s", flow.Failure())
	}
	state, err := r.loadRunState(ctx, s)
	if runs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if state.Results != nil {
		s.experiment.Status.Results = Headline(state.Results)
	} else if flow.Phase == argo.Succeeded {
		s.fail(ReasonWorkflowFailed, "the analysis succeeded, but the server has no results.json")
	}
	phase, message := v1alpha1.PhaseSucceeded, "the results are complete"
	if state.Results != nil {
		message = finishedMessage(s.experiment.Status.Results, state.Results.Warnings)
	}
	if failure := s.failure(); failure != nil {
		phase, message = v1alpha1.PhaseFailed, failure.Message
	}
	plan := state.Plan
	plan.Phase, plan.Message = phase, message
	if plan.Environment, err = r.stepImages(ctx, s, plan.Environment); err != nil {
		return err
	}
	if !samePlan(state.Plan, plan) {
		if _, err := r.Runs.PutPlan(ctx, plan); err != nil {
			return err
		}
	}
	s.finish(phase, message)
	return nil
}

// archiveLogs closes a run that failed without a workflow to collect its logs. For a bounded time it asks the agents to
// finish and the server to seal what it has.
func (r *Reconciler) archiveLogs(ctx context.Context, s *scope) (bool, error) {
	failure := s.failure()
	if failure == nil || finished(s.phase()) {
		return false, nil
	}
	message := failure.Message
	if err := r.sealLogs(ctx, s, message); err != nil {
		if s.now.Sub(failure.LastTransitionTime.Time) < archiveLogsTimeout {
			s.requeueAfter(2 * time.Second)
			return true, nil
		}
		message = shorten(fmt.Sprintf("%s (its logs could not be archived: %v)", message, err))
	}
	if err := r.terminateWorkflow(ctx, s); err != nil {
		return true, err
	}
	s.finish(v1alpha1.PhaseFailed, message)
	return true, nil
}

func (r *Reconciler) sealLogs(ctx context.Context, s *scope, message string) error {
	uid := string(s.experiment.UID)
	state, err := r.Runs.State(ctx, uid)
	if runs.IsNotFound(err) {
		return nil // the server has no record of the run, so there is nothing to save
	}
	if err != nil {
		return err
	}
	plan := state.Plan
	plan.Phase, plan.Message = v1alpha1.PhaseFailed, message
	if !samePlan(state.Plan, plan) {
		if _, err := r.Runs.PutPlan(ctx, plan); err != nil {
			return err
		}
	}
	if len(state.Agents) == 0 || state.Sealed {
		return nil
	}
	_, err = r.Runs.Seal(ctx, uid, runapi.SealRequest{WaitSeconds: sealWaitSeconds})
	return err
}

// cleanUpFinished deletes what a finished experiment does not need. Its workflow and results stay.
func (r *Reconciler) cleanUpFinished(ctx context.Context, s *scope) (bool, error) {
	if !finished(s.phase()) {
		return false, nil
	}
	left, err := r.deleteChildren(ctx, s)
	if err == nil && len(left) > 0 {
		s.requeueAfter(pollInterval)
	} else if err == nil {
		err = r.leaveKueue(ctx, s.experiment)
	}
	return false, err
}

// deleteExpired deletes a finished experiment after its time to live.
func (r *Reconciler) deleteExpired(ctx context.Context, s *scope) (bool, error) {
	ttl, completed := s.experiment.Spec.TTLAfterFinished, s.experiment.Status.CompletionTime
	if !finished(s.phase()) || ttl == nil || completed == nil {
		return false, nil
	}
	if left := ttl.Std() - s.now.Sub(completed.Time); left > 0 {
		s.requeueAfter(left)
		return false, nil
	}
	// The time to live may just have been extended: the precondition deletes only the version that was read.
	s.requeueAfter(0) // to handle the deletion at once
	seen := client.Preconditions{UID: &s.experiment.UID, ResourceVersion: &s.experiment.ResourceVersion}
	return true, client.IgnoreNotFound(r.Client.Delete(ctx, s.experiment, seen))
}

// deleteChildren deletes pods and virtual machines, and then what their network teardown may still read. It returns what
// is left. Each delete has the UID of the object that was read as a precondition.
func (r *Reconciler) deleteChildren(ctx context.Context, s *scope) (left []string, err error) {
	if _, err := r.loadPods(ctx, s); err != nil {
		return nil, err
	}
	if left, err := r.deleteNodes(ctx, s); err != nil || len(left) > 0 {
		return left, err
	}
	return r.deleteNetworks(ctx, s)
}

func (r *Reconciler) deleteNetworks(ctx context.Context, s *scope) (left []string, err error) {
	r.radioTroubles.forget(s.experiment.UID)
	attachments, err := r.attachments(ctx, s)
	if err != nil {
		return nil, err
	}
	networks, err := r.radioNetworks(ctx, s)
	if err != nil {
		return nil, err
	}
	if left, err := r.deleteEMANE(ctx, s, networks); err != nil || len(left) > 0 {
		return left, err // its owners still need the rest
	}
	for i := range networks {
		left = append(left, "RadioNetwork "+networks[i].Name)
		if err := r.deleteOne(ctx, &networks[i]); err != nil {
			return left, err
		}
	}
	for i := range attachments {
		left = append(left, "NetworkAttachmentDefinition "+attachments[i].Name)
		if err := r.deleteOne(ctx, &attachments[i]); err != nil {
			return left, err
		}
	}
	return left, nil
}

// deleteOne deletes exactly the object that was read, unless it is being deleted already.
func (r *Reconciler) deleteOne(ctx context.Context, object client.Object) error {
	if !object.GetDeletionTimestamp().IsZero() {
		return nil
	}
	err := r.Client.Delete(ctx, object, client.Preconditions{UID: ptr.To(object.GetUID())})
	if apierrors.IsConflict(err) { // another object has its name now, so this one is gone
		return nil
	}
	return client.IgnoreNotFound(err)
}
