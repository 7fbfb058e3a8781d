package argo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/objects"
	"vignette.dev/vignette/operators/experiment/scope"
)

// Workflows creates, resumes and ends the Workflow of an experiment, whose name is the experiment's.
type Workflows struct {
	// Client reads from caches, Live from the API server.
	Client client.Client
	Live   client.Reader
	// ProvisioningDeadline is how long an earlier experiment's Workflow of the same name may take to go.
	ProvisioningDeadline time.Duration
}

const (
	// startTimeout is the time in which Argo's controller must start a workflow.
	startTimeout = 2 * time.Minute
	// StepTimeout is the maximum time between two steps; Argo's controller may restart in between.
	StepTimeout = 10 * time.Minute
)

// Get returns the experiment's Workflow, which is created once, before T0. It is nil if there is none.
func (w *Workflows) Get(ctx context.Context, s *scope.Scope) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(render.WorkflowKind)
	key := client.ObjectKeyFromObject(s.Experiment)
	err := w.Client.Get(ctx, key, found)
	if apierrors.IsNotFound(err) { // the cache may be behind
		err = w.Live.Get(ctx, key, found)
	}
	if apierrors.IsNotFound(err) {
		return nil, w.create(ctx, s)
	}
	if err == nil && !metav1.IsControlledBy(found, s.Experiment) {
		return nil, w.awaitName(s, found)
	}
	return found, err
}

// awaitName waits until another Workflow with the run's name is gone. It will be if it is being deleted or belonged
// to a deleted experiment of this name. The Workflow of anybody else stays, and the run fails.
func (w *Workflows) awaitName(s *scope.Scope, taken *unstructured.Unstructured) error {
	owner := metav1.GetControllerOf(taken)
	willGo := !taken.GetDeletionTimestamp().IsZero() || owner != nil && owner.Kind == "Experiment" && owner.Name == s.Experiment.Name
	started := s.Experiment.Status.StartTime
	if !willGo || started != nil && s.Now.Sub(started.Time) > w.ProvisioningDeadline+startTimeout {
		s.Fail(scope.ReasonWorkflowNameTaken, "there is a Workflow %s that belongs to somebody else", taken.GetName())
		return nil
	}
	s.Experiment.Status.Message = fmt.Sprintf("waiting for the deletion of Workflow %s of an earlier experiment", taken.GetName())
	s.RequeueAfter(2 * scope.PollInterval)
	return nil
}

func (w *Workflows) create(ctx context.Context, s *scope.Scope) error {
	status := s.Experiment.Status
	if status.T0 != nil || status.Step != "" || status.Phase != v1alpha1.PhaseRunning {
		s.Fail(scope.ReasonWorkflowDeleted, "Workflow %s was deleted during the run, and a run is never repeated", s.Experiment.Name)
		return nil
	}
	if s.Failure() != nil {
		return nil
	}
	err := w.Client.Create(ctx, render.Workflow(s.RenderInput()))
	s.RequeueAfter(scope.PollInterval)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		s.Fail(scope.ReasonWorkflowFailed, "the workflow is refused: %v", err)
		return nil
	}
	return err
}

// Resume resumes a suspended step. Argo's Workflow has no status subresource; its resource version is the lock.
func (w *Workflows) Resume(ctx context.Context, workflow *unstructured.Unstructured, step Step, now time.Time) error {
	resumed := workflow.DeepCopy()
	if err := Resume(resumed, step, now); err != nil {
		return err
	}
	return w.Client.Update(ctx, resumed)
}

// AwaitNext waits for the workflow's next step, or fails the run if Argo does not go on. It returns false if later
// stages must run.
func (w *Workflows) AwaitNext(ctx context.Context, s *scope.Scope, workflow *unstructured.Unstructured, step Step) (bool, error) {
	switch {
	case step.Name == "" && AgeOf(s, workflow) > startTimeout:
		s.Fail(scope.ReasonWorkflowFailed, "Argo has not begun Workflow %s within %s: is its controller running?", workflow.GetName(), startTimeout)
		return s.JustFailed, nil
	case !step.Finished.IsZero() && s.Now.Sub(step.Finished) > StepTimeout:
		s.FailUnrecoverably(scope.ReasonArgoStalled, "Argo has not gone on after step %s of Workflow %s within %s: is its controller running?", step.Name, workflow.GetName(), StepTimeout)
		return !s.Unrecoverable, nil
	case s.Failure() == nil && step.Name == "":
		s.Experiment.Status.Message = "waiting for Argo to begin the workflow"
	}
	return true, w.nudge(ctx, s, workflow, step)
}

// AgeOf is the time since a Workflow was created.
func AgeOf(s *scope.Scope, workflow *unstructured.Unstructured) time.Duration {
	return s.Now.Sub(workflow.GetCreationTimestamp().Time)
}

const (
	// NudgeAfter is the time after a step in which Argo must continue, which normally takes a second.
	NudgeAfter = 5 * time.Second
	// NudgedAnnotation has the time of a workflow's last nudge.
	NudgedAnnotation = "vignette.dev/nudged-at"
)

// nudge changes a workflow so that Argo reconciles it again. Argo's controller stores its own last write in its cache, and
// so can overwrite a newer resume there. It then never sees the resume until the workflow changes again.
func (w *Workflows) nudge(ctx context.Context, s *scope.Scope, workflow *unstructured.Unstructured, step Step) error {
	// An invalid time counts as long ago.
	before, _ := time.Parse(time.RFC3339, workflow.GetAnnotations()[NudgedAnnotation])
	if step.Finished.IsZero() || s.Now.Sub(step.Finished) < NudgeAfter || s.Now.Sub(before) < NudgeAfter {
		return nil
	}
	nudged := workflow.DeepCopy()
	annotations := nudged.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[NudgedAnnotation] = s.Now.UTC().Format(time.RFC3339)
	nudged.SetAnnotations(annotations)
	err := w.Client.Patch(ctx, nudged, client.MergeFromWithOptions(workflow, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the cache is stale: Argo may have continued
	}
	return err
}

// Terminate ends a workflow as `argo terminate` does.
func (w *Workflows) Terminate(ctx context.Context, workflow *unstructured.Unstructured) error {
	if shutdown, _, _ := unstructured.NestedString(workflow.Object, "spec", "shutdown"); shutdown != "" || Read(workflow).Finished() {
		return nil
	}
	ended := workflow.DeepCopy()
	if err := unstructured.SetNestedField(ended.Object, "Terminate", "spec", "shutdown"); err != nil {
		return err
	}
	return client.IgnoreNotFound(w.Client.Patch(ctx, ended, client.MergeFrom(workflow)))
}

// TerminateOf ends the workflow of a failed run, which would otherwise wait for ever.
func (w *Workflows) TerminateOf(ctx context.Context, s *scope.Scope) error {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(render.WorkflowKind)
	err := w.Client.Get(ctx, client.ObjectKeyFromObject(s.Experiment), found)
	if err != nil || !metav1.IsControlledBy(found, s.Experiment) {
		return client.IgnoreNotFound(err)
	}
	return w.Terminate(ctx, found)
}

// EnsureAccount creates the account of the workflow's pods, or adds what the experiment needs of it. It runs before the first
// node and again before the workflow's pods, as somebody may have deleted it. An account of the user stays unchanged.
func (w *Workflows) EnsureAccount(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Phase() == v1alpha1.PhaseProvisioning && len(s.Pods) == len(s.Topology.Nodes) {
		return false, nil
	}
	for _, want := range []client.Object{render.ServiceAccount(s.Experiment, s.Options.PullSecrets), render.RoleBinding(s.Experiment)} {
		existing := want.DeepCopyObject().(client.Object)
		err := w.Live.Get(ctx, client.ObjectKeyFromObject(want), existing)
		if apierrors.IsNotFound(err) {
			err = w.Client.Create(ctx, want)
			if apierrors.IsAlreadyExists(err) {
				s.RequeueAfter(scope.PollInterval)
				return true, nil
			}
		} else if err == nil {
			err = w.share(ctx, s, existing)
		}
		if err != nil {
			return w.accountRefused(s, err, fmt.Sprintf("%T %s, which the workflow's pods need", want, want.GetName()))
		}
	}
	return false, nil
}

// accountRefused fails a run that has not started. A later one has been measured, so it waits and says for what.
func (w *Workflows) accountRefused(s *scope.Scope, err error, what string) (bool, error) {
	what = strings.TrimPrefix(what, "*v1.")
	if s.Phase() == v1alpha1.PhaseProvisioning {
		return objects.HandleCreation(s, err, scope.ReasonPodRefused, what)
	}
	if objects.IsRefusal(err) && s.Failure() == nil {
		s.Experiment.Status.Message = scope.Shorten(fmt.Sprintf("waiting, as the cluster refuses %s: %v", what, err))
	}
	return true, err
}

// share adds the experiment as an owner of a shared object, and to its account the Secrets to pull with.
func (w *Workflows) share(ctx context.Context, s *scope.Scope, object client.Object) error {
	if object.GetLabels()["app.kubernetes.io/managed-by"] != render.ManagedByValue {
		return nil
	}
	before := object.DeepCopyObject().(client.Object)
	owners, e := object.GetOwnerReferences(), s.Experiment
	if !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == e.UID }) {
		object.SetOwnerReferences(append(owners, render.SharedOwner(e)))
	}
	if account, ok := object.(*corev1.ServiceAccount); ok {
		for _, secret := range s.Options.PullSecrets {
			if !slices.Contains(account.ImagePullSecrets, secret) { // clusters add others
				account.ImagePullSecrets = append(account.ImagePullSecrets, secret)
			}
		}
	}
	if equality.Semantic.DeepEqual(before, object) {
		return nil
	}
	return w.Client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
