package campaign

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/freshness"
)

// fetch reads a campaign that is not older than this operator's last write to it. An older state without its runs would
// create them again.
func (r *Reconciler) fetch(ctx context.Context, key types.NamespacedName, c *v1alpha1.Campaign) error {
	return freshness.Get(ctx, &r.written, r.Client, r.Live, key, c)
}
