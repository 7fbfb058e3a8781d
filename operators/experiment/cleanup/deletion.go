// Package cleanup deletes what an experiment no longer needs: the nodes and networks of a finished run, an experiment
// after its time to live, and on a deletion everything but the archive. The Sweeper deletes what others have left.
package cleanup

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/runapi"
	runs "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/kueue"
	"vignette.dev/vignette/operators/experiment/objects"
	"vignette.dev/vignette/operators/experiment/scope"
)

// Cleaner deletes what an experiment leaves behind.
type Cleaner struct {
	Objects   *objects.Objects
	Workloads *kueue.Workloads
	Runs      planStore
	// Deadline is the time after which a deletion ends even if objects are left.
	Deadline time.Duration
}

// uncached reads from the API server.
func (c *Cleaner) uncached() *Cleaner {
	uncached := *c
	uncached.Objects = c.Objects.Uncached()
	return &uncached
}

// deletionNoticeTimeout is short, because the sweeper reports the deletion to the archive otherwise.
const deletionNoticeTimeout = 3 * time.Second

// Finalize deletes everything but the archive, then removes the finalizer. After the deadline it reports what is left and
// removes the finalizer anyway, because owner references and the sweeper delete the rest.
func (c *Cleaner) Finalize(ctx context.Context, s *scope.Scope) (bool, error) {
	if !controllerutil.ContainsFinalizer(s.Experiment, v1alpha1.Finalizer) {
		s.FinalizerRemoved = true
		return true, nil
	}
	c.recordDeletion(ctx, s)
	left, err := c.deleteEverything(ctx, s)
	if err == nil && len(left) == 0 { // the caches may not show the newest objects
		left, err = c.uncached().deleteEverything(ctx, s)
	}
	overdue := s.Now.Sub(s.Experiment.DeletionTimestamp.Time) > c.Deadline
	if err != nil && !overdue {
		return true, err
	}
	if err != nil {
		left = append(left, err.Error())
	}
	if len(left) > 0 && !overdue {
		s.Experiment.Status.Message = "deleting " + scope.SomeOf(left, "objects")
		s.RequeueAfter(scope.PollInterval)
		return true, nil
	}
	if len(left) > 0 && meta.FindStatusCondition(s.Experiment.Status.Conditions, scope.ConditionCleanedUp) == nil {
		s.SetCondition(scope.ConditionCleanedUp, metav1.ConditionFalse, "DeadlineExceeded", "not removed in time: "+scope.Shorten(strings.Join(left, ", ")))
		s.WarningEvent("CleanupIncomplete", "not removed within %s: %s", c.Deadline, scope.Shorten(strings.Join(left, ", ")))
		s.RequeueAfter(scope.PollInterval)
		return true, nil // the condition must be written before the finalizer is removed
	}
	return true, c.removeFinalizer(ctx, s)
}

func (c *Cleaner) removeFinalizer(ctx context.Context, s *scope.Scope) error {
	before := s.Experiment.DeepCopy()
	controllerutil.RemoveFinalizer(s.Experiment, v1alpha1.Finalizer)
	s.FinalizerRemoved = true
	return client.IgnoreNotFound(c.Objects.Client.Patch(ctx, s.Experiment, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// recordDeletion records in the archive that the run was ended by a deletion.
func (c *Cleaner) recordDeletion(ctx context.Context, s *scope.Scope) {
	if scope.Finished(s.Phase()) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, deletionNoticeTimeout)
	defer cancel()
	err := recordAsFailed(ctx, c.Runs, string(s.Experiment.UID), "the experiment was deleted while "+string(s.Phase()))
	if err != nil && !runs.IsNotFound(err) { // the server has no record of what has not started
		log.FromContext(ctx).Info("the deletion could not be recorded on the server; the sweeper will try again", "error", err.Error())
	}
}

// planStore reads and writes plans of runs.
type planStore interface {
	PutPlan(ctx context.Context, plan runapi.Plan) (runapi.State, error)
	State(ctx context.Context, uid string) (runapi.State, error)
}

// recordAsFailed records in the archive why a run failed, unless it has ended.
func recordAsFailed(ctx context.Context, archive planStore, uid, why string) error {
	state, err := archive.State(ctx, uid)
	if err != nil || scope.Finished(state.Plan.Phase) {
		return err
	}
	plan := state.Plan
	plan.Phase, plan.Message = v1alpha1.PhaseFailed, why
	_, err = archive.PutPlan(ctx, plan)
	return err
}

func (c *Cleaner) deleteEverything(ctx context.Context, s *scope.Scope) ([]string, error) {
	w := &unstructured.Unstructured{}
	w.SetGroupVersionKind(render.WorkflowKind)
	err := c.Objects.Client.Get(ctx, client.ObjectKeyFromObject(s.Experiment), w)
	var left []string
	if err == nil && metav1.IsControlledBy(w, s.Experiment) {
		left = append(left, "Workflow "+w.GetName())
		err = c.Objects.Delete(ctx, w)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return left, err
	}
	more, err := c.deleteChildren(ctx, s)
	return append(left, more...), err
}
