package scenario

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// atOnce is how many scenarios are compiled at a time: the memory that they take is bounded by it.
const atOnce = 2

// jobs compile scenarios beside the reconciler, so that one that takes minutes holds up nobody else's. Each scenario has one
// at most; a newer state of it ends the one of the older.
type jobs struct {
	// done is told of each job that has finished; it may be nil.
	done func(types.NamespacedName)

	mu      sync.Mutex
	running map[types.NamespacedName]*job
	looks   map[types.UID]time.Time
	slots   chan struct{}
	// context of all jobs: that of the manager.
	context context.Context
}

type job struct {
	from     string
	cancel   context.CancelFunc
	finished chan struct{}
	out      outcome
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
func (j *jobs) start(name types.NamespacedName, from string, compile func(context.Context) outcome) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.running == nil {
		j.running, j.slots = map[types.NamespacedName]*job{}, make(chan struct{}, atOnce)
	}
	if had := j.running[name]; had != nil {
		if had.from == from {
			return
		}
		had.cancel()
	}
	parent := j.context
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithCancel(parent)
	started := &job{from: from, cancel: cancel, finished: make(chan struct{})}
	j.running[name] = started
	go func() {
		defer cancel()
		select {
		case j.slots <- struct{}{}:
			started.out = compile(ctx)
			<-j.slots
		case <-ctx.Done():
			started.out = outcome{retry: ctx.Err()}
		}
		close(started.finished)
		if ctx.Err() == nil && j.done != nil {
			j.done(name)
		}
	}()
}

// result of the job for a state of a scenario, once it has finished.
func (j *jobs) result(name types.NamespacedName, from string) (out outcome, finished bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	had := j.running[name]
	if had == nil || had.from != from {
		return outcome{}, false
	}
	select {
	case <-had.finished:
		return had.out, true
	default:
		return outcome{}, false
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

// looked notes when the store was asked about a scenario.
func (j *jobs) looked(uid types.UID, now time.Time) {
	const most = 10_000 // of those that were deleted nothing tells
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.looks == nil || len(j.looks) > most {
		j.looks = map[types.UID]time.Time{}
	}
	j.looks[uid] = now
}

func (j *jobs) lookedAt(uid types.UID) time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.looks[uid]
}
