package provisioning

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// releasedSlotTime is how long an experiment occupies its slot once its nodes are released, and createTimeout before.
	// Neither a slow image nor a slow creation of nodes must block all others.
	releasedSlotTime = 30 * time.Second
	createTimeout    = 2 * time.Minute
	// slotRetryPause is the time between two tries per experiment that waits before, up to maxSlotRetryPause. The first
	// that waits is woken as soon as a slot is free.
	slotRetryPause    = 500 * time.Millisecond
	maxSlotRetryPause = 30 * time.Second
	// waiterLifetime is the time after which an experiment that does not try again is dropped.
	waiterLifetime = 2 * maxSlotRetryPause
)

// Limiter limits how many experiments start at once, and how many of these create their nodes at once, in the order of their
// admission. Hundreds that start together would all be slow and miss their deadlines. It needs no state after a restart,
// because a started experiment has nodes.
type Limiter struct {
	// Starting and Creating are the limits; 0 for none.
	Starting, Creating int

	mu    sync.Mutex
	slots map[types.UID]*slot
	// waiting are those without a slot, creators those with a slot that may not create nodes yet.
	waiting, creators []Waiter
}

// slot of an experiment that starts.
type slot struct {
	since time.Time
	// released is when all of its nodes were released, zero before.
	released time.Time
	// creating is since when it creates nodes, zero if it does not.
	creating time.Time
}

// Waiter is an experiment that asks for a slot.
type Waiter struct {
	UID                 types.UID
	Name                types.NamespacedName
	AdmittedAt, AskedAt time.Time
}

// Acquire gives an experiment a slot if one is free. began is when its first node was created, if it has any. Acquire
// returns the time since when it has a slot, or how many wait before it.
func (l *Limiter) Acquire(w Waiter, began time.Time) (since time.Time, before int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if had, found := l.slots[w.UID]; found {
		return had.since, 0
	}
	since = w.AskedAt
	if !began.IsZero() {
		since = began
		l.waiting = without(l.waiting, w.UID)
	} else if before = inOrder(&l.waiting, w, l.free(l.Starting, func(had *slot) bool { return had.isOccupied(w.AskedAt) })); before > 0 {
		return time.Time{}, before
	}
	if l.slots == nil {
		l.slots = map[types.UID]*slot{}
	}
	l.slots[w.UID] = &slot{since: since}
	return since, 0
}

// BeginCreating lets an experiment with a slot create nodes, or returns how many do so before it. One whose nodes are
// released only waits for agents.
func (l *Limiter) BeginCreating(w Waiter) (before int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	had, found := l.slots[w.UID]
	if !found || !had.released.IsZero() {
		return 0
	}
	free := l.free(l.Creating, func(other *slot) bool { return other != had && other.isCreating(w.AskedAt) })
	if before = inOrder(&l.creators, w, free); before == 0 {
		had.creating = w.AskedAt
	}
	return before
}

// EndCreating ends what BeginCreating began. It returns who waits next to create nodes.
func (l *Limiter) EndCreating(uid types.UID) (next types.NamespacedName, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	had := l.slots[uid]
	if had == nil || had.creating.IsZero() {
		return next, false
	}
	had.creating = time.Time{}
	return first(l.creators)
}

// NoteReleased records when the operator has released all nodes of an experiment.
func (l *Limiter) NoteReleased(uid types.UID, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if had, found := l.slots[uid]; found && had.released.IsZero() {
		had.released = now
	}
}

// Released is when the operator has released all nodes of an experiment, zero before.
func (l *Limiter) Released(uid types.UID) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if had, found := l.slots[uid]; found {
		return had.released
	}
	return time.Time{}
}

// Leave frees the experiment's slot and its places among those that wait. It returns who waits next for a freed slot.
func (l *Limiter) Leave(uid types.UID) (next types.NamespacedName, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting, l.creators = without(l.waiting, uid), without(l.creators, uid)
	_, had := l.slots[uid]
	delete(l.slots, uid)
	if !had {
		return next, false
	}
	return first(l.waiting)
}

// free is the number of places that are not taken. The lock is held.
func (l *Limiter) free(limit int, taken func(*slot) bool) int {
	if limit == 0 {
		return len(l.waiting) + len(l.creators) + 1
	}
	for _, had := range l.slots {
		if taken(had) {
			limit--
		}
	}
	return limit
}

// isOccupied reports whether a slot still counts against the limit.
func (s *slot) isOccupied(now time.Time) bool {
	if s.released.IsZero() {
		return now.Sub(s.since) < createTimeout
	}
	return now.Sub(s.released) < releasedSlotTime
}

// isCreating reports whether the experiment creates nodes.
func (s *slot) isCreating(now time.Time) bool {
	return !s.creating.IsZero() && now.Sub(s.creating) < createTimeout
}

// inOrder adds an experiment to those that wait, unless one of the free places is its. It returns how many are before it.
func inOrder(waiting *[]Waiter, w Waiter, free int) (before int) {
	others := slices.DeleteFunc(without(*waiting, w.UID), func(other Waiter) bool { return w.AskedAt.Sub(other.AskedAt) > waiterLifetime })
	at, _ := slices.BinarySearchFunc(others, w, func(a, b Waiter) int {
		return cmp.Or(a.AdmittedAt.Compare(b.AdmittedAt), cmp.Compare(a.UID, b.UID))
	})
	if *waiting = others; at < free {
		return 0
	}
	*waiting = slices.Insert(others, at, w)
	return at - free + 1
}

func without(waiting []Waiter, uid types.UID) []Waiter {
	return slices.DeleteFunc(waiting, func(w Waiter) bool { return w.UID == uid })
}

func first(waiting []Waiter) (next types.NamespacedName, found bool) {
	if len(waiting) == 0 {
		return next, false
	}
	return waiting[0].Name, true
}

// slotRetryAfter is the time until an experiment with so many before it tries again.
func slotRetryAfter(before int) time.Duration {
	return min(time.Duration(before)*slotRetryPause, maxSlotRetryPause)
}
