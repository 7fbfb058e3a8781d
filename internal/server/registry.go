package server

import (
	"errors"
	"fmt"
	"sort"
	"sync"
	"time"

	"vignette.dev/vignette/internal/archive"
	"vignette.dev/vignette/internal/runapi"
)

// registry has every run of the archive by its UID.
type registry struct {
	store *archive.Store
	quota int64
	now   func() time.Time

	mu   sync.RWMutex
	runs map[string]*run
}

// openRegistry loads every run of the archive.
func openRegistry(store *archive.Store, quota int64, now func() time.Time) (*registry, error) {
	reg := &registry{store: store, quota: quota, now: now, runs: map[string]*run{}}
	keys, err := store.Keys()
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if other := reg.runs[key.UID]; other != nil {
			return nil, fmt.Errorf("archive: uid %s is there twice, as %s and %s: remove one", key.UID, other.files.Key(), key)
		}
		if reg.runs[key.UID], err = reg.open(key); err != nil {
			return nil, err
		}
	}
	return reg, nil
}

func (reg *registry) open(key archive.Key) (*run, error) {
	files, err := reg.store.Run(key, reg.quota)
	if err != nil {
		return nil, err
	}
	r, err := loadRun(files, reg.now)
	if err != nil {
		return nil, errors.Join(err, files.Close())
	}
	return r, nil
}

// get gives a run, or nil.
func (reg *registry) get(uid string) *run {
	reg.mu.RLock()
	defer reg.mu.RUnlock()
	return reg.runs[uid]
}

// ensure gives the run with this key, made if need be.
func (reg *registry) ensure(key archive.Key) (*run, error) {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	if r := reg.runs[key.UID]; r != nil {
		if r.files.Key() != key {
			return nil, conflict{fmt.Sprintf("uid %s is archived as %s, not as %s", key.UID, r.files.Key(), key)}
		}
		return r, nil
	}
	r, err := reg.open(key)
	if err != nil {
		return nil, err
	}
	r.touch()
	reg.runs[key.UID] = r
	return r, nil
}

// remove deletes a run with its archive.
func (reg *registry) remove(r *run) error {
	key := r.files.Key()
	reg.mu.Lock()
	defer reg.mu.Unlock()
	if reg.runs[key.UID] != r {
		return nil
	}
	if err := reg.store.Delete(key); err != nil {
		return err
	}
	delete(reg.runs, key.UID)
	return r.files.Close()
}

func (reg *registry) all() []*run {
	reg.mu.RLock()
	defer reg.mu.RUnlock()
	runs := make([]*run, 0, len(reg.runs))
	for _, r := range reg.runs {
		runs = append(runs, r)
	}
	return runs
}

// list gives the runs of a namespace and name, newest first; empty matches all.
func (reg *registry) list(namespace, name string) []runapi.RunSummary {
	type dated struct {
		runapi.RunSummary
		active int64
	}
	var found []dated
	for _, r := range reg.all() {
		key := r.files.Key()
		if (namespace != "" && key.Namespace != namespace) || (name != "" && key.Name != name) {
			continue
		}
		r.mu.Lock()
		summary := runapi.RunSummary{Namespace: key.Namespace, Name: key.Name, UID: key.UID, Phase: r.record.Phase, T0: r.record.T0}
		r.mu.Unlock()
		at := r.active.Load()
		if summary.T0 != nil {
			at = summary.T0.Unix()
		}
		found = append(found, dated{summary, at})
	}
	sort.Slice(found, func(i, j int) bool {
		a, b := found[i], found[j]
		return a.active > b.active || (a.active == b.active && a.UID < b.UID)
	})
	runs := make([]runapi.RunSummary, len(found))
	for i := range found {
		runs[i] = found[i].RunSummary
	}
	return runs
}

// agent finds the run and node of a pod, which must be in the run's namespace.
func (reg *registry) agent(who Identity) (*run, string) {
	if who.PodUID == "" {
		return nil, ""
	}
	for _, r := range reg.all() {
		if r.files.Key().Namespace != who.Namespace() {
			continue
		}
		if node, known := r.podNode(who.PodUID); known {
			return r, node
		}
	}
	return nil, ""
}

// expire deletes the runs to which nothing has happened for longer than retention.
func (reg *registry) expire(retention time.Duration) (deleted []archive.Key, err error) {
	oldest := reg.now().Add(-retention).Unix()
	for _, r := range reg.all() {
		if r.active.Load() < oldest {
			if err := reg.remove(r); err != nil {
				return deleted, err
			}
			deleted = append(deleted, r.files.Key())
		}
	}
	return deleted, nil
}

func keyOf(plan runapi.Plan) archive.Key {
	return archive.Key{Namespace: plan.Namespace, Name: plan.Name, UID: plan.UID}
}
