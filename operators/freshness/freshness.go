// Package freshness prevents a controller from acting on a state older than its own last write. A cache may lag behind the
// operator's writes, and after a restart be filled by an API server that lags.
package freshness

import (
	"context"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Versions holds the newest resource version of each object that this operator has written or read from the API server.
// etcd's revisions only grow, so a lower one is an older state.
type Versions struct {
	mu     sync.Mutex
	newest map[types.NamespacedName]uint64
}

// Record records a state that was written or read from the API server.
func (v *Versions) Record(object client.Object) {
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.newest == nil {
		v.newest = map[types.NamespacedName]uint64{}
	}
	key := client.ObjectKeyFromObject(object)
	v.newest[key] = max(v.newest[key], version)
}

func (v *Versions) forget(key types.NamespacedName) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.newest, key)
}

// IsCurrent reports whether a state is not older than the newest recorded one. Without a record it returns false.
func (v *Versions) IsCurrent(object client.Object) bool {
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	v.mu.Lock()
	defer v.mu.Unlock()
	known, found := v.newest[client.ObjectKeyFromObject(object)]
	return err == nil && found && version >= known
}

// Get reads an object from the cache if it is current there, or else from the API server.
func Get[T any, O interface {
	*T
	client.Object
}](ctx context.Context, v *Versions, cached, live client.Reader, key types.NamespacedName, into O) error {
	err := cached.Get(ctx, key, into)
	if err == nil && v.IsCurrent(into) || client.IgnoreNotFound(err) != nil {
		return err
	}
	*into = *new(T)
	if err := live.Get(ctx, key, into); err != nil {
		if apierrors.IsNotFound(err) {
			v.forget(key)
		}
		return err
	}
	v.Record(into)
	return nil
}
