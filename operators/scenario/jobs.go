package scenario

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxParallel is how many scenarios are compiled at a time: the memory that they take is bounded by it.
	maxParallel = 2
	// maxPerNamespace namespace at most, so that a tenant's long compilations do not keep everybody's waiting.
	maxPerNamespace = maxParallel - 1
)

// jobs compile scenarios beside the reconciler, so that one that takes minutes holds up nobody else's. Each scenario has one
// at most; a newer state of it ends the one of the older.
type jobs struct {
	// onFinished is told of each job that has finished; it may be nil.
	onFinished func(types.NamespacedName)

	mu          sync.Mutex
	running     map[types.NamespacedName]*job
	storeChecks map[types.UID]time.Time
	// waiting for their turn, in the order in which they came, and busy ones by their namespace.
	waiting []*slot
	busy    map[string]int
	// context of all jobs: that of the manager.
	context context.Context
}

// slot of a job to compile; begin is closed when it comes.
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

// Start gives the jobs the manager's context; it is a manager's Runnable.
func (j *jobs) Start(ctx context.Context) error {
	j.mu.Lock()
	j.context = ctx
	j.mu.Unlock()
	<-ctx.Done()
	return nil
}

// start compiles a state of a scenario, unless that is being done.
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
			started.out = compile(ctx)
		case <-ctx.Done():
			started.out = compileResult{retry: ctx.Err()}
		}
		j.releaseSlot(own)
		close(started.finished)
		if ctx.Err() == nil && j.onFinished != nil {
			j.onFinished(name)
		}
	}()
}

// startWaiting turns begin while there is room. The caller holds the lock.
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

// releaseSlot a turn, or its wait.
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

// result of the job for a state of a scenario, once it has finished.
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

// forget a scenario's job, and end it if it goes on.
func (j *jobs) forget(name types.NamespacedName) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if had := j.running[name]; had != nil {
		had.cancel()
		delete(j.running, name)
	}
}

// storeChecked notes when the store was asked about a scenario.
func (j *jobs) storeChecked(uid types.UID, now time.Time) {
	const most = 10_000 // of those that were deleted nothing tells
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
