package experiment

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// releasedSlotTime is how long an experiment keeps others waiting once its nodes were let go: one whose images are slow, or never come, must not hold up
	// all. Before, while the operator itself is at work on it, it does so for makingLasts: something may hold that up too.
	releasedSlotTime = 30 * time.Second
	createTimeout    = 2 * time.Minute
	// slotRetryPause is how long an experiment with one other before it leaves asking again; it is that much longer for each further one, up to longestTurnPause.
	// Who is next is woken.
	slotRetryPause    = 500 * time.Millisecond
	maxSlotRetryPause = 30 * time.Second
	// waiterLifetime is when one that has not asked again has gone elsewhere.
	waiterLifetime = 2 * maxSlotRetryPause
)

// startLimiter lets admitted experiments come up in the order of their admission, so many at once: hundreds that began together would all be slow, and
// too late. It remembers nothing that matters after a restart: who comes up has nodes then, and is let go on.
type startLimiter struct {
	// limit that come up at once; 0 for any number.
	limit int
	mu    sync.Mutex
	// slots are those whose turn it has been.
	slots   map[types.UID]*startSlot
	waiting []startWaiter
}

// startSlot of an experiment since a time; its nodes were let go later, or are not yet.
type startSlot struct{ since, released time.Time }

type startWaiter struct {
	uid                 types.UID
	name                types.NamespacedName
	admittedAt, askedAt time.Time
}

// acquire whether it is an experiment's turn; began is when its first node was made, if it has any. It tells since when it comes up, or how many are before it.
func (t *startLimiter) acquire(w startWaiter, began time.Time) (since time.Time, before int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if had, found := t.slots[w.uid]; found {
		return had.since, 0
	}
	t.waiting = slices.DeleteFunc(t.waiting, func(other startWaiter) bool {
		return other.uid == w.uid || w.askedAt.Sub(other.askedAt) > waiterLifetime
	})
	if !began.IsZero() {
		t.grant(w.uid, began)
		return began, 0
	}
	at, _ := slices.BinarySearchFunc(t.waiting, w, func(a, b startWaiter) int {
		return cmp.Or(a.admittedAt.Compare(b.admittedAt), cmp.Compare(a.uid, b.uid))
	})
	if free := t.freeSlots(w.askedAt); at >= free {
		t.waiting = slices.Insert(t.waiting, at, w)
		return time.Time{}, at - free + 1
	}
	t.grant(w.uid, w.askedAt)
	return w.askedAt, 0
}

// grant a turn. The lock is held.
func (t *startLimiter) grant(uid types.UID, at time.Time) {
	if t.slots == nil {
		t.slots = map[types.UID]*startSlot{}
	}
	t.slots[uid] = &startSlot{since: at}
}

// noteReleased notes that the operator has made all nodes of an experiment and let them go.
func (t *startLimiter) noteReleased(uid types.UID, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if had, found := t.slots[uid]; found && had.released.IsZero() {
		had.released = now
	}
}

// isReleased tells whether that was noted.
func (t *startLimiter) isReleased(uid types.UID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	had, found := t.slots[uid]
	return found && !had.released.IsZero()
}

// freeSlots turns at a time. The lock is held.
func (t *startLimiter) freeSlots(now time.Time) int {
	if t.limit == 0 {
		return len(t.waiting) + 1
	}
	free := t.limit
	for _, had := range t.slots {
		if had.isOccupied(now) {
			free--
		}
	}
	return free
}

// isOccupied tells whether a turn keeps others waiting.
func (t *startSlot) isOccupied(now time.Time) bool {
	if t.released.IsZero() {
		return now.Sub(t.since) < createTimeout
	}
	return now.Sub(t.released) < releasedSlotTime
}

// release the turn of an experiment, if it has one, and name who is next where that made room for one. One that waits keeps its place.
func (t *startLimiter) release(uid types.UID) (next types.NamespacedName, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, had := t.slots[uid]
	delete(t.slots, uid)
	if !had || len(t.waiting) == 0 {
		return types.NamespacedName{}, false
	}
	return t.waiting[0].name, true
}

// leave gives up an experiment's turn, as end does, or its place.
func (t *startLimiter) leave(uid types.UID) (next types.NamespacedName, found bool) {
	t.mu.Lock()
	t.waiting = slices.DeleteFunc(t.waiting, func(w startWaiter) bool { return w.uid == uid })
	t.mu.Unlock()
	return t.release(uid)
}

// slotRetryAfter until one with so many before it asks again.
func slotRetryAfter(before int) time.Duration {
	return min(time.Duration(before)*slotRetryPause, maxSlotRetryPause)
}
