package experiment

import (
	"context"
	"strings"
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/render"
)

// deletionNoticeTimeout is short, because the sweeper reports the deletion to the archive otherwise.
const deletionNoticeTimeout = 3 * time.Second

// finalize deletes everything but the archive, then removes the finalizer. After the deadline it reports what is left and
// removes the finalizer anyway, because owner references and the sweeper delete the rest.
func (r *Reconciler) finalize(ctx context.Context, s *scope) (bool, error) {
	if !controllerutil.ContainsFinalizer(s.experiment, v1alpha1.Finalizer) {
		s.finalizerRemoved = true
		return true, nil
	}
	r.queue.forget(s.experiment.UID)
	r.quotaRefusals.forget(s.experiment.UID)
	r.recordDeletion(ctx, s)
	left, err := r.deleteEverything(ctx, s)
	if err == nil && len(left) == 0 { // the caches may not show the newest objects
		left, err = r.uncached().deleteEverything(ctx, s)
	}
	overdue := s.now.Sub(s.experiment.DeletionTimestamp.Time) > r.Options.CleanupDeadline
	if err != nil && !overdue {
		return true, err
	}
	if err != nil {
		left = append(left, err.Error())
	}
	if len(left) > 0 && !overdue {
		s.experiment.Status.Message = "deleting " + someOf(left, "objects")
		s.requeueAfter(pollInterval)
		return true, nil
	}
	if len(left) > 0 && meta.FindStatusCondition(s.experiment.Status.Conditions, ConditionCleanedUp) == nil {
		s.setCondition(ConditionCleanedUp, metav1.ConditionFalse, "DeadlineExceeded", "not removed in time: "+shorten(strings.Join(left, ", ")))
		s.warningEvent("CleanupIncomplete", "not removed within %s: %s", r.Options.CleanupDeadline, shorten(strings.Join(left, ", ")))
		s.requeueAfter(pollInterval)
		return true, nil // the condition must be written before the finalizer is removed
	}
	return true, r.removeFinalizer(ctx, s)
}

func (r *Reconciler) removeFinalizer(ctx context.Context, s *scope) error {
	before := s.experiment.DeepCopy()
	controllerutil.RemoveFinalizer(s.experiment, v1alpha1.Finalizer)
	s.finalizerRemoved = true
	return client.IgnoreNotFound(r.Client.Patch(ctx, s.experiment, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// recordDeletion records in the archive that the run was ended by a deletion.
func (r *Reconciler) recordDeletion(ctx context.Context, s *scope) {
	if finished(s.phase()) || s.phase() == "" || s.phase() == v1alpha1.PhaseQueued {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, deletionNoticeTimeout)
	defer cancel()
	if err := recordAsFailed(ctx, r.Runs, string(s.experiment.UID), "the experiment was deleted while "+string(s.phase())); err != nil {
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
	if err != nil || finished(state.Plan.Phase) {
		return err
	}
	plan := state.Plan
	plan.Phase, plan.Message = v1alpha1.PhaseFailed, why
	_, err = archive.PutPlan(ctx, plan)
	return err
}

func (r *Reconciler) deleteEverything(ctx context.Context, s *scope) ([]string, error) {
	w := &unstructured.Unstructured{}
	w.SetGroupVersionKind(render.WorkflowKind)
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(s.experiment), w)
	var left []string
	if err == nil && metav1.IsControlledBy(w, s.experiment) {
		left = append(left, "Workflow "+w.GetName())
		err = r.deleteOne(ctx, w)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return left, err
	}
	more, err := r.deleteChildren(ctx, s)
	return append(left, more...), err
}

// attachments returns the experiment's NetworkAttachmentDefinitions, by their owner's UID.
func (r *Reconciler) attachments(ctx context.Context, s *scope) ([]nadv1.NetworkAttachmentDefinition, error) {
	var list nadv1.NetworkAttachmentDefinitionList
	err := r.Client.List(ctx, &list, selectOwnedBy(s.experiment, s.experiment.Namespace)...)
	var owned []nadv1.NetworkAttachmentDefinition
	for _, item := range list.Items {
		if metav1.IsControlledBy(&item, s.experiment) {
			owned = append(owned, item)
		}
	}
	return owned, err
}
