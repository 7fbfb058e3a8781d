package experiment

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	// updateBatchTime is how long news are collected before they are asked for again.
	updateBatchTime = 200 * time.Millisecond
	// updateRetryInterval after an error. Experiments look for themselves meanwhile.
	updateRetryInterval = time.Second
	// updatesValidFor is how long the server's last answer speaks for it: it answers after half a minute where there is no news.
	updatesValidFor = 40 * time.Second
	// followerLifetime is how long an experiment is told of news after it has last said that it relies on them.
	followerLifetime = 4 * resyncInterval
)

// UpdateSource is the server, as far as the feed needs it.
type UpdateSource interface {
	News(ctx context.Context, epoch string, sequence int64) (runapi.News, error)
}

// updateFeed wakes experiments of which the server has news, so that hundreds that run need not ask it every two seconds each. Nothing depends on
// it: while the server does not answer, experiments ask as often as without it.
type updateFeed struct {
	source  UpdateSource
	now     func() time.Time
	wakeups chan event.GenericEvent

	mu       sync.Mutex
	answered time.Time
	byUID    map[types.UID]follower
}

// follower is an experiment that relies on the feed.
type follower struct {
	name  types.NamespacedName
	since time.Time
}

func newUpdateFeed(source UpdateSource, now func() time.Time) *updateFeed {
	return &updateFeed{source: source, now: now, wakeups: make(chan event.GenericEvent, maxWakeups), byUID: map[types.UID]follower{}}
}

// pollAfter is how long an experiment may leave the server's state alone: for the feed wakes it, or because it is to look itself after otherwise.
func (f *updateFeed) pollAfter(e *v1alpha1.Experiment, otherwise time.Duration) time.Duration {
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
	return resyncInterval
}

// Start follows the news until the context ends.
func (f *updateFeed) Start(ctx context.Context) error {
	var known runapi.News
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
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

func (f *updateFeed) fetch(ctx context.Context, known runapi.News) (runapi.News, error) {
	ctx, cancel := context.WithTimeout(ctx, updatesValidFor)
	defer cancel()
	return f.source.News(ctx, known.Epoch, known.Sequence)
}

// fail wakes everybody who relied on the feed: they look for themselves from now on.
func (f *updateFeed) fail(ctx context.Context, err error) {
	f.mu.Lock()
	relied := !f.answered.IsZero()
	f.answered = time.Time{}
	f.mu.Unlock()
	if relied && ctx.Err() == nil {
		log.FromContext(ctx).Info("the server's news cannot be followed: experiments ask for themselves meanwhile", "error", err.Error())
		f.wakeUp(ctx, f.followers(nil, true))
	}
}

// deliver wakes those with news, or all in a new epoch of the server.
func (f *updateFeed) deliver(ctx context.Context, found runapi.News, all bool) {
	f.mu.Lock()
	f.answered = f.now()
	f.mu.Unlock()
	f.wakeUp(ctx, f.followers(found.Runs, all))
}

// followers of these runs, or of all; those that have long been silent are forgotten.
func (f *updateFeed) followers(runs []string, all bool) (names []types.NamespacedName) {
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

func (f *updateFeed) wakeUp(ctx context.Context, names []types.NamespacedName) {
	for _, name := range names {
		select {
		case f.wakeups <- wakeupEvent(name):
		case <-ctx.Done():
			return
		}
	}
}
