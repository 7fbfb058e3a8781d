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
	// newsTogether is how long news are collected before they are asked for again.
	newsTogether = 200 * time.Millisecond
	// newsRetry after an error. Experiments look for themselves meanwhile.
	newsRetry = time.Second
	// newsTrusted is how long the server's last answer speaks for it: it answers after half a minute where there is no news.
	newsTrusted = 40 * time.Second
	// followedFor is how long an experiment is told of news after it has last said that it relies on them.
	followedFor = 4 * resyncInterval
)

// News is the server, as far as the feed needs it.
type News interface {
	News(ctx context.Context, epoch string, sequence int64) (runapi.News, error)
}

// feed wakes experiments of which the server has news, so that hundreds that run need not ask it every two seconds each. Nothing depends on
// it: while the server does not answer, experiments ask as often as without it.
type feed struct {
	source News
	now    func() time.Time
	wake   chan event.GenericEvent

	mu       sync.Mutex
	answered time.Time
	of       map[types.UID]follower
}

// follower is an experiment that relies on the feed.
type follower struct {
	name  types.NamespacedName
	since time.Time
}

func newFeed(source News, now func() time.Time) *feed {
	return &feed{source: source, now: now, wake: make(chan event.GenericEvent, mostWoken), of: map[types.UID]follower{}}
}

// poll is how long an experiment may leave the server's state alone: for the feed wakes it, or because it is to look itself after otherwise.
func (f *feed) poll(e *v1alpha1.Experiment, otherwise time.Duration) time.Duration {
	if f == nil {
		return otherwise
	}
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of[e.UID] = follower{name: types.NamespacedName{Namespace: e.Namespace, Name: e.Name}, since: now}
	if now.Sub(f.answered) > newsTrusted {
		return otherwise
	}
	return resyncInterval
}

// Start follows the news until the context ends.
func (f *feed) Start(ctx context.Context) error {
	var known runapi.News
	for ctx.Err() == nil {
		found, err := f.ask(ctx, known)
		pause := newsTogether
		if err != nil {
			f.lost(ctx, err)
			pause = newsRetry
		} else {
			f.tell(ctx, found, found.Epoch != known.Epoch)
			known = found
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

func (f *feed) ask(ctx context.Context, known runapi.News) (runapi.News, error) {
	ctx, cancel := context.WithTimeout(ctx, newsTrusted)
	defer cancel()
	return f.source.News(ctx, known.Epoch, known.Sequence)
}

// lost wakes everybody who relied on the feed: they look for themselves from now on.
func (f *feed) lost(ctx context.Context, err error) {
	f.mu.Lock()
	relied := !f.answered.IsZero()
	f.answered = time.Time{}
	f.mu.Unlock()
	if relied && ctx.Err() == nil {
		log.FromContext(ctx).Info("the server's news cannot be followed: experiments ask for themselves meanwhile", "error", err.Error())
		f.send(ctx, f.followers(nil, true))
	}
}

// tell wakes those with news, or all in a new epoch of the server.
func (f *feed) tell(ctx context.Context, found runapi.News, all bool) {
	f.mu.Lock()
	f.answered = f.now()
	f.mu.Unlock()
	f.send(ctx, f.followers(found.Runs, all))
}

// followers of these runs, or of all; those that have long been silent are forgotten.
func (f *feed) followers(runs []string, all bool) (names []types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	for uid, one := range f.of {
		if now.Sub(one.since) > followedFor {
			delete(f.of, uid)
		} else if all {
			names = append(names, one.name)
		}
	}
	if all {
		return names
	}
	for _, uid := range runs {
		if one, follows := f.of[types.UID(uid)]; follows {
			names = append(names, one.name)
		}
	}
	return names
}

func (f *feed) send(ctx context.Context, names []types.NamespacedName) {
	for _, name := range names {
		select {
		case f.wake <- lookAgain(name):
		case <-ctx.Done():
			return
		}
	}
}
