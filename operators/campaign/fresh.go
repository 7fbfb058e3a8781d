package campaign

import (
	"context"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// latest holds the newest resource version of each campaign that this operator has read past its cache or written. etcd's revisions
// only grow, so a lower one is an older state.
type latest struct {
	mu       sync.Mutex
	versions map[types.NamespacedName]uint64
}

func (l *latest) note(c *v1alpha1.Campaign) {
	version, err := strconv.ParseUint(c.ResourceVersion, 10, 64)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.versions == nil {
		l.versions = map[types.NamespacedName]uint64{}
	}
	key := client.ObjectKeyFromObject(c)
	l.versions[key] = max(l.versions[key], version)
}

func (l *latest) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.versions, key)
}

// covers tells that a state is as new as the newest that is known; never so before one is.
func (l *latest) covers(c *v1alpha1.Campaign) bool {
	version, err := strconv.ParseUint(c.ResourceVersion, 10, 64)
	l.mu.Lock()
	defer l.mu.Unlock()
	known, found := l.versions[client.ObjectKeyFromObject(c)]
	return err == nil && found && version >= known
}

// fetch a campaign, never in a state from before what this operator has recorded in it: one that does not know of its runs would make
// them again.
func (r *Reconciler) fetch(ctx context.Context, key types.NamespacedName, c *v1alpha1.Campaign) error {
	err := r.Client.Get(ctx, key, c)
	if err == nil && r.latest.covers(c) || client.IgnoreNotFound(err) != nil {
		return err
	}
	*c = v1alpha1.Campaign{}
	if err := r.Live.Get(ctx, key, c); err != nil {
		r.latest.forget(key)
		return err
	}
	r.latest.note(c)
	return nil
}
