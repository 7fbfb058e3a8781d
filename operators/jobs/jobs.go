// Package jobs runs what takes minutes beside a reconciler, so that one object does not delay others.
package jobs

import (
	"context"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// maxParallel limits a controller's jobs at a time, and so their memory.
	maxParallel = 2
	// maxPerNamespace limits those of one namespace, so that a tenant's long jobs do not block all others.
	maxPerNamespace = maxParallel - 1
)

// Jobs of a controller, with results of type R. Each object has at most one. New inputs end the job of the old ones.
type Jobs[R any] struct {
	// OnFinished is called for each finished job. It may be nil.
	OnFinished func(types.NamespacedName)

	mu      sync.Mutex
	running map[types.NamespacedName]*job[R]
	// waiting are the waiting jobs in order of arrival, busy the number of running ones by namespace.
	waiting []*slot
	busy    map[string]int
	// context of all jobs is that of the manager.
	context context.Context
}

// slot is a job's slot for running. begin is closed when the job gets it.
type slot struct {
	namespace string
	begin     chan struct{}
}

type job[R any] struct {
	inputs   string
	cancel   context.CancelFunc
	finished chan struct{}
	// complete means that nobody ended the job, and out is its result.
	complete bool
	out      R
}

// Start implements manager.Runnable. It gives the jobs the manager's context.
func (j *Jobs[R]) Start(ctx context.Context) error {
	j.mu.Lock()
	j.context = ctx
	j.mu.Unlock()
	<-ctx.Done()
	return nil
}

// Source requests a reconciliation for each finished job.
func (j *Jobs[R]) Source() source.Source {
	done := make(chan event.GenericEvent, 1)
	j.OnFinished = func(name types.NamespacedName) {
		object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
		done <- event.GenericEvent{Object: object}
	}
	return source.Channel(done, &handler.EnqueueRequestForObject{})
}

// Begin runs a job for an object's inputs, unless there is one for them.
func (j *Jobs[R]) Begin(name types.NamespacedName, from string, run func(context.Context) R) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.running == nil {
		j.running, j.busy = map[types.NamespacedName]*job[R]{}, map[string]int{}
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
	started := &job[R]{inputs: from, cancel: cancel, finished: make(chan struct{})}
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
		if ctx.Err() == nil { // it was not ended before it got its slot
			started.out = run(ctx)
		}
		started.complete = ctx.Err() == nil
		j.releaseSlot(own)
		close(started.finished)
		if started.complete && j.OnFinished != nil {
			j.OnFinished(name)
		}
	}()
}

// startWaiting gives waiting jobs their slots while there are any. The caller holds the lock.
func (j *Jobs[R]) startWaiting() {
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
func (j *Jobs[R]) releaseSlot(t *slot) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if i := slices.Index(j.waiting, t); i >= 0 {
		j.waiting = slices.Delete(j.waiting, i, i+1)
	} else if j.busy[t.namespace]--; j.busy[t.namespace] == 0 {
		delete(j.busy, t.namespace)
	}
	j.startWaiting()
}

// Result is the result of the job for an object's inputs, once it has finished.
func (j *Jobs[R]) Result(name types.NamespacedName, from string) (out R, finished bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	had := j.running[name]
	if had == nil || had.inputs != from {
		return out, false
	}
	select {
	case <-had.finished:
		return had.out, had.complete
	default:
		return out, false
	}
}

// Forget removes an object's job and ends it if it is running.
func (j *Jobs[R]) Forget(name types.NamespacedName) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if had := j.running[name]; had != nil {
		had.cancel()
		delete(j.running, name)
	}
}
