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
	// archiveLogsTimeout so long the logs of a run that failed early are tried to be saved.
	archiveLogsTimeout = 30 * time.Second
	// sealWaitSeconds for agents of such a run.
	sealWaitSeconds = 3.0
)

// collectResults follows the workflow's pod steps to the results.
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
		return true, r.resume(ctx, workflow, step, s.now) // a failed run goes through what is left of the steps
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
	// stepPodStartTime is how long a pod of the workflow may take to start before anybody is told.
	stepPodStartTime = 20 * time.Second
	// stepPodTimeout for one that cannot start; an image's registry may be away for a while.
	stepPodTimeout = 5 * time.Minute
)

// checkStepPod says why a step's pod does not start, and ends the workflow where waiting does not heal it.
func (r *Reconciler) checkStepPod(ctx context.Context, s *scope, workflow *unstructured.Unstructured, pending argo.Step) error {
	waits := s.now.Sub(pending.Started)
	if pending.Message == "" || waits < stepPodStartTime {
		return nil
	}
	why := fmt.Sprintf("the pod of step %s has not started: %s", pending.Name, pending.Message)
	reason, _, _ := strings.Cut(pending.Message, ":")
	if hopeless := imageReasons[reason] || containerReasons[reason]; hopeless && waits > stepPodTimeout {
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

// terminateWorkflow of a run that goes through it no further: left alone it would wait for ever.
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

// finishRun writes the results of a finished workflow, or why there are none.
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
		s.fail(ReasonWorkflowFailed, "the analysis ended well, but the server has no results.json")
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

// archiveLogs closes a run that failed without a workflow to collect its logs: it asks the agents to
// finish and the server to seal what it gets, for a bounded time.
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
		return nil // the server never heard of it: there is nothing to save
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

// cleanUpFinished removes what a finished experiment does not need; its workflow and results stay.
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
	// Somebody may have prolonged it a moment ago: only what was looked at is deleted.
	s.requeueAfter(0) // the deletion goes next
	seen := client.Preconditions{UID: &s.experiment.UID, ResourceVersion: &s.experiment.ResourceVersion}
	return true, client.IgnoreNotFound(r.Client.Delete(ctx, s.experiment, seen))
}

// deleteChildren deletes pods and virtual machines first and, once they are gone, what their network teardown may still
// read. It names what is left. Every delete is tied to the UID that was seen.
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
	attachments, err := r.attachments(ctx, s)
	if err != nil {
		return nil, err
	}
	networks, err := r.radioNetworks(ctx, s)
	if err != nil {
		return nil, err
	}
	if left, err := r.deleteEMANE(ctx, s, networks); err != nil || len(left) > 0 {
		return left, err // it is told by its owners
	}
	for i := range networks {
		r.radioTroubles.forget(networks[i].UID)
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

// deleteOne deletes exactly the object that was seen, unless that is under way.
func (r *Reconciler) deleteOne(ctx context.Context, object client.Object) error {
	if !object.GetDeletionTimestamp().IsZero() {
		return nil
	}
	err := r.Client.Delete(ctx, object, client.Preconditions{UID: ptr.To(object.GetUID())})
	if apierrors.IsConflict(err) { // another object took its name meanwhile: ours is gone
		return nil
	}
	return client.IgnoreNotFound(err)
}
