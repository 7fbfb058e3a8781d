package scenario

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxParallel limits the compilations at a time, and so their memory.
	maxParallel = 2
	// maxPerNamespace limits those of one namespace, so that a tenant's long compilations do not block all others.
	maxPerNamespace = maxParallel - 1
)

// jobs compile scenarios beside the reconciler, so that one that takes minutes does not delay others. Each scenario has at
// most one. New inputs end the job of the old ones.
type jobs struct {
	// onFinished is called for each finished job. It may be nil.
	onFinished func(types.NamespacedName)

	mu          sync.Mutex
	running     map[types.NamespacedName]*job
	storeChecks map[types.UID]time.Time
	// waiting are the waiting jobs in order of arrival, busy the number of running ones by namespace.
	waiting []*slot
	busy    map[string]int
	// context of all jobs is that of the manager.
	context context.Context
}

// slot is a job's slot for compiling. begin is closed when the job gets it.
type slot struct {
	namespace string
	begin     chan struct{}
}

type job struct {
	inputs   string
	cancel   context.CancelFunc
	finished chan struct{}
	out      compileResult
}

// Start implements manager.Runnable. It gives the jobs the manager's context.
func (j *jobs) Start(ctx context.Context) error {
	j.mu.Lock()
	j.context = ctx
	j.mu.Unlock()
	<-ctx.Done()
	return nil
}

// start compiles a scenario's inputs, unless there is a job for them.
func (j *jobs) start(name types.NamespacedName, from string, compile func(context.Context) compileResult) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.running == nil {
		j.running, j.busy = map[types.NamespacedName]*job{}, map[string]int{}
	}
	if had := j.running[name]; had != nil {
		if had.inputs == from {
			return
		}
		had.cancel()
	}
	parent := j.context
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithCancel(parent)
	started := &job{inputs: from, cancel: cancel, finished: make(chan struct{})}
	j.running[name] = started
	own := &slot{name.Namespace, make(chan struct{})}
	j.waiting = append(j.waiting, own)
	j.startWaiting()
	go func() {
		defer cancel()
		select {
		case <-own.begin:
		case <-ctx.Done():
		}
		if ctx.Err() != nil { // also if it was ended before it got its slot
			started.out = compileResult{retry: ctx.Err()}
		} else {
			started.out = compile(ctx)
		}
		j.releaseSlot(own)
		close(started.finished)
		if ctx.Err() == nil && j.onFinished != nil {
			j.onFinished(name)
		}
	}()
}

// startWaiting gives waiting jobs their slots while there are any. The caller holds the lock.
func (j *jobs) startWaiting() {
	for {
		best, all := -1, 0
		for _, n := range j.busy {
			all += n
		}
		for i, t := range j.waiting {
			if j.busy[t.namespace] < maxPerNamespace && (best < 0 || j.busy[t.namespace] < j.busy[j.waiting[best].namespace]) {
				best = i
			}
		}
		if all >= maxParallel || best < 0 {
			return
		}
		t := j.waiting[best]
		j.waiting = slices.Delete(j.waiting, best, best+1)
		j.busy[t.namespace]++
		close(t.begin)
	}
}

// releaseSlot frees a job's slot, or its place among the waiting ones.
func (j *jobs) releaseSlot(t *slot) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if i := slices.Index(j.waiting, t); i >= 0 {
		j.waiting = slices.Delete(j.waiting, i, i+1)
	} else if j.busy[t.namespace]--; j.busy[t.namespace] == 0 {
		delete(j.busy, t.namespace)
	}
	j.startWaiting()
}

// result is the result of the job for a scenario's inputs, once it has finished.
func (j *jobs) result(name types.NamespacedName, from string) (out compileResult, finished bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	had := j.running[name]
	if had == nil || had.inputs != from {
		return compileResult{}, false
	}
	select {
	case <-had.finished:
		return had.out, true
	default:
		return compileResult{}, false
	}
}

// forget removes a scenario's job and ends it if it is running.
func (j *jobs) forget(name types.NamespacedName) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if had := j.running[name]; had != nil {
		had.cancel()
		delete(j.running, name)
	}
}

// storeChecked records the time of a check of the store for a scenario.
func (j *jobs) storeChecked(uid types.UID, now time.Time) {
	const most = 10_000 // deleted scenarios are not removed otherwise
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.storeChecks == nil || len(j.storeChecks) > most {
		j.storeChecks = map[types.UID]time.Time{}
	}
	j.storeChecks[uid] = now
}

func (j *jobs) storeCheckedAt(uid types.UID) time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.storeChecks[uid]
}
