// Package updates tells experiments when their state on the server has changed, so that they need not poll it.
package updates

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
	"vignette.dev/vignette/operators/experiment/wakeup"
)

const (
	// updateBatchTime is the pause between two requests, in which the server collects updates.
	updateBatchTime = 200 * time.Millisecond
	// updateRetryInterval is the pause after an error, during which experiments poll.
	updateRetryInterval = time.Second
	// updatesValidFor is how long experiments rely on the feed after the last answer. Without updates the server answers
	// every half a minute.
	updatesValidFor = 40 * time.Second
	// followerLifetime is how long an experiment is woken after its last call of PollAfter.
	followerLifetime = 4 * scope.ResyncInterval
	// maxWakeups is how many experiments wait to be reconciled.
	maxWakeups = 200
)

// Source is the part of the server's API that the feed uses.
type Source interface {
	Updates(ctx context.Context, epoch string, sequence int64) (runapi.Updates, error)
}

// Feed wakes experiments whose state on the server has changed, so that hundreds of them need not poll every two
// seconds. While the server does not answer, experiments poll as without it.
type Feed struct {
	source Source
	now    func() time.Time
	// Wakeups are the requested reconciliations.
	Wakeups wakeup.Channel

	mu       sync.Mutex
	answered time.Time
	byUID    map[types.UID]follower
}

// follower is an experiment that relies on the feed.
type follower struct {
	name  types.NamespacedName
	since time.Time
}

// New returns a feed, which Start runs.
func New(source Source, now func() time.Time) *Feed {
	return &Feed{source: source, now: now, Wakeups: make(wakeup.Channel, maxWakeups), byUID: map[types.UID]follower{}}
}

// PollAfter is the time to the experiment's next poll of the server. It is longer while the feed works, and otherwise the
// given time.
func (f *Feed) PollAfter(e *v1alpha1.Experiment, otherwise time.Duration) time.Duration {
	if f == nil {
		return otherwise
	}
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byUID[e.UID] = follower{name: types.NamespacedName{Namespace: e.Namespace, Name: e.Name}, since: now}
	if now.Sub(f.answered) > updatesValidFor {
		return otherwise
	}
	return scope.ResyncInterval
}

// Start follows the server's updates until the context ends.
func (f *Feed) Start(ctx context.Context) error {
	var known runapi.Updates
	for ctx.Err() == nil {
		found, err := f.fetch(ctx, known)
		pause := updateBatchTime
		if err != nil {
			f.fail(ctx, err)
			pause = updateRetryInterval
		} else {
			f.deliver(ctx, found, found.Epoch != known.Epoch)
			known = found
		}
		clock.Pause(ctx, pause)
	}
	return nil
}

func (f *Feed) fetch(ctx context.Context, known runapi.Updates) (runapi.Updates, error) {
	ctx, cancel := context.WithTimeout(ctx, updatesValidFor)
	defer cancel()
	return f.source.Updates(ctx, known.Epoch, known.Sequence)
}

// fail wakes all experiments that relied on the feed, which poll from now on.
func (f *Feed) fail(ctx context.Context, err error) {
	f.mu.Lock()
	relied := !f.answered.IsZero()
	f.answered = time.Time{}
	f.mu.Unlock()
	if relied && ctx.Err() == nil {
		log.FromContext(ctx).Info("the server reports no updates; experiments poll until it does", "error", err.Error())
		f.wakeUp(ctx, f.followers(nil, true))
	}
}

// deliver wakes the experiments with updates, or all if the server has restarted.
func (f *Feed) deliver(ctx context.Context, found runapi.Updates, all bool) {
	f.mu.Lock()
	f.answered = f.now()
	f.mu.Unlock()
	f.wakeUp(ctx, f.followers(found.Runs, all))
}

// followers returns the experiments of these runs, or all. It forgets those that have not called PollAfter for long.
func (f *Feed) followers(runs []string, all bool) (names []types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	for uid, one := range f.byUID {
		if now.Sub(one.since) > followerLifetime {
			delete(f.byUID, uid)
		} else if all {
			names = append(names, one.name)
		}
	}
	if all {
		return names
	}
	for _, uid := range runs {
		if one, follows := f.byUID[types.UID(uid)]; follows {
			names = append(names, one.name)
		}
	}
	return names
}

func (f *Feed) wakeUp(ctx context.Context, names []types.NamespacedName) {
	for _, name := range names {
		select {
		case f.Wakeups <- wakeup.Event(name):
		case <-ctx.Done():
			return
		}
	}
}
