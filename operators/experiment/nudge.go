package experiment

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/experiment/argo"
)

const (
	// nudgeAfter is how long Argo may leave a workflow alone after a step before it is shown the workflow again. It takes a second as a rule.
	nudgeAfter = 5 * time.Second
	// nudgedAnnotation of a workflow has the time at which that was done last.
	nudgedAnnotation = "vignette.dev/nudged-at"
)

// nudge has Argo look at a workflow again that it has not gone on with. Its controller puts what it has just written into its own
// cache, over what a resume may have written since; what it never sees it does not go on with, until something changes.
func (r *Reconciler) nudge(ctx context.Context, s *scope, workflow *unstructured.Unstructured, step argo.Step) error {
	// A time that cannot be read is long past.
	before, _ := time.Parse(time.RFC3339, workflow.GetAnnotations()[nudgedAnnotation])
	if step.Finished.IsZero() || s.now.Sub(step.Finished) < nudgeAfter || s.now.Sub(before) < nudgeAfter {
		return nil
	}
	nudged := workflow.DeepCopy()
	annotations := nudged.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[nudgedAnnotation] = s.now.UTC().Format(time.RFC3339)
	nudged.SetAnnotations(annotations)
	err := r.Client.Patch(ctx, nudged, client.MergeFromWithOptions(workflow, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // what the cache has is old: Argo may have gone on
	}
	return err
}
