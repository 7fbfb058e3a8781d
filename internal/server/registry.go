package server

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"sync"
	"time"

	"vignette.dev/vignette/internal/archive"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// registry has every run of the archive by its UID.
type registry struct {
	store *archive.Store
	quota int64
	now   func() time.Time
	// erase deletes the files of a discarded run.
	erase func(discarded string) error
	// opened is when this server opened the archive.
	opened time.Time

	mu   sync.RWMutex
	runs map[string]*run
	// runsOfPod has the runs whose plans list a pod, by the pod's UID; podsOfRun has the pods' UIDs by run.
	runsOfPod map[string][]*run
	podsOfRun map[string][]string
	updates   *runUpdates
	// problems are the runs that could not be opened.
	problems []error
}

// openRegistry loads every run of the archive.
func openRegistry(store *archive.Store, quota int64, now func() time.Time) (*registry, error) {
	reg := &registry{store: store, quota: quota, now: now, erase: store.Erase, opened: now(), runs: map[string]*run{},
		runsOfPod: map[string][]*run{}, podsOfRun: map[string][]string{}, updates: newRunUpdates()}
	keys, err := store.Keys()
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if other := reg.runs[key.UID]; other != nil {
			reg.problems = append(reg.problems, fmt.Errorf("archive: there are two runs with uid %s, %s and %s: remove one", key.UID, other.files.Key(), key))
			continue
		}
		// A run that fails must not keep the others from being served.
		r, err := reg.open(key)
		if err != nil {
			reg.problems = append(reg.problems, fmt.Errorf("run %s is not served: %w", key, err))
			continue
		}
		reg.runs[key.UID] = r
		reg.indexPodsLocked(r)
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
	r.onChange = func() { reg.updates.record(key.UID) }
	return r, nil
}

// get returns a run, or nil.
func (reg *registry) get(uid string) *run {
	reg.mu.RLock()
	defer reg.mu.RUnlock()
	return reg.runs[uid]
}

// ensure returns the run with this key, and makes it if it does not exist.
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

// remove deletes a run with its archive. Other requests do not wait until its files are deleted, which may be 200,000.
func (reg *registry) remove(r *run) error {
	discarded, err := reg.discard(r)
	if err != nil || discarded == "" {
		return err
	}
	return errors.Join(r.files.Close(), reg.erase(discarded)) // on network file systems no folder with open files can be deleted
}

// discard takes a run out of the registry and the archive. The name of its files is empty if somebody else did.
func (reg *registry) discard(r *run) (discarded string, err error) {
	key := r.files.Key()
	reg.mu.Lock()
	defer reg.mu.Unlock()
	if reg.runs[key.UID] != r {
		return "", nil
	}
	if discarded, err = reg.store.Discard(key); err != nil {
		return "", err
	}
	delete(reg.runs, key.UID)
	reg.updates.forget(key.UID)
	reg.unindexPods(r)
	return discarded, nil
}

func (reg *registry) all() []*run {
	reg.mu.RLock()
	defer reg.mu.RUnlock()
	return slices.Collect(maps.Values(reg.runs))
}

// list returns the runs of a namespace and name, newest first; empty matches all.
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
		summary := runapi.RunSummary{Namespace: key.Namespace, Name: key.Name, UID: key.UID, Phase: r.record.Phase, T0: r.record.T0,
			Campaign: r.record.Campaign, Problem: r.problem(), KeptUp: r.keptUp, Sealed: r.sealed, Bytes: r.files.Size()}
		r.mu.Unlock()
		at := r.lastActive.Load()
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
	reg.mu.RLock()
	candidates := reg.runsOfPod[who.PodUID] // never changed in place
	reg.mu.RUnlock()
	for _, r := range candidates {
		if r.files.Key().Namespace != who.Namespace() {
			continue
		}
		if node, known := r.nodeOfPod(who.PodUID); known {
			return r, node
		}
	}
	return nil, ""
}

// indexPods indexes the pods of a run's plan.
func (reg *registry) indexPods(r *run) {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	if reg.runs[r.files.Key().UID] == r {
		reg.indexPodsLocked(r)
	}
}

// indexPodsLocked is indexPods for callers with the lock.
func (reg *registry) indexPodsLocked(r *run) {
	reg.unindexPods(r)
	r.mu.Lock()
	defer r.mu.Unlock()
	uid := r.files.Key().UID
	for _, node := range r.record.Nodes {
		if node.PodUID != "" {
			reg.podsOfRun[uid] = append(reg.podsOfRun[uid], node.PodUID)
			reg.runsOfPod[node.PodUID] = append(slices.Clone(reg.runsOfPod[node.PodUID]), r)
		}
	}
}

func (reg *registry) unindexPods(r *run) {
	uid := r.files.Key().UID
	for _, pod := range reg.podsOfRun[uid] {
		rest := slices.DeleteFunc(slices.Clone(reg.runsOfPod[pod]), func(other *run) bool { return other == r })
		if reg.runsOfPod[pod] = rest; len(rest) == 0 {
			delete(reg.runsOfPod, pod)
		}
	}
	delete(reg.podsOfRun, uid)
}

// expire deletes the runs that ended longer ago than their namespace's retention; 0 keeps them. One that cannot be deleted does
// not keep the others.
func (reg *registry) expire(retention func(namespace string) time.Duration) (deleted []archive.Key, err error) {
	for _, r := range reg.all() {
		keeps := retention(r.files.Key().Namespace)
		since, ended := reg.retainedSince(r)
		if keeps <= 0 || !ended || !since.Before(reg.now().Add(-keeps)) {
			continue
		}
		if failed := reg.remove(r); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		deleted = append(deleted, r.files.Key())
	}
	return deleted, err
}

// retainedSince is when a run's retention began; ended is false while its experiment goes on. The operator ends the runs of
// experiments that are gone. A run without a plan may be live: its time counts from the server's start, as heartbeats reach no file.
func (reg *registry) retainedSince(r *run) (since time.Time, ended bool) {
	r.mu.Lock()
	phase := r.record.Phase
	r.mu.Unlock()
	since = time.Unix(r.lastActive.Load(), 0)
	switch phase {
	case v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed:
		return since, true
	case "":
		if reg.opened.After(since) {
			since = reg.opened
		}
		return since, true
	}
	return since, false
}

func keyOf(plan runapi.Plan) archive.Key {
	return archive.Key{Namespace: plan.Namespace, Name: plan.Name, UID: plan.UID}
}
