package campaign

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/freshness"
)

// fetch a campaign, never in a state from before what this operator has recorded in it: one that does not know of its runs would make
// them again.
func (r *Reconciler) fetch(ctx context.Context, key types.NamespacedName, c *v1alpha1.Campaign) error {
	return freshness.Get(ctx, &r.written, r.Client, r.Live, key, c)
}
