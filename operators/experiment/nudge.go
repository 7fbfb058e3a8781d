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
	// nudgeAfter is the time after a step in which Argo must continue, which normally takes a second.
	nudgeAfter = 5 * time.Second
	// nudgedAnnotation has the time of a workflow's last nudge.
	nudgedAnnotation = "vignette.dev/nudged-at"
)

// nudge changes a workflow so that Argo reconciles it again. Argo's controller stores its own last write in its cache, and
// so can overwrite a newer resume there. It then never sees the resume until the workflow changes again.
func (r *Reconciler) nudge(ctx context.Context, s *scope, workflow *unstructured.Unstructured, step argo.Step) error {
	// An invalid time counts as long ago.
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
		return nil // the cache is stale: Argo may have continued
	}
	return err
}
