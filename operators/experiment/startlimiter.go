package experiment

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

// startLimiter limits how many experiments start at once, in the order of their admission. Hundreds that start together
// would all be slow and miss their deadlines. It needs no state after a restart, because a started experiment has nodes.
type startLimiter struct {
	// limit of the occupied slots; 0 for none.
	limit   int
	mu      sync.Mutex
	slots   map[types.UID]*startSlot
	waiting []startWaiter
}

// startSlot is an experiment's slot. released is when all of its nodes were released, zero before.
type startSlot struct{ since, released time.Time }

type startWaiter struct {
	uid                 types.UID
	name                types.NamespacedName
	admittedAt, askedAt time.Time
}

// acquire gives an experiment a slot if one is free. began is when its first node was created, if it has any. acquire
// returns the time since when it has a slot, or how many wait before it.
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

// grant gives an experiment a slot. The lock is held.
func (t *startLimiter) grant(uid types.UID, at time.Time) {
	if t.slots == nil {
		t.slots = map[types.UID]*startSlot{}
	}
	t.slots[uid] = &startSlot{since: at}
}

// noteReleased records when the operator has released all nodes of an experiment.
func (t *startLimiter) noteReleased(uid types.UID, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if had, found := t.slots[uid]; found && had.released.IsZero() {
		had.released = now
	}
}

// isReleased reports whether the operator has released all nodes of an experiment.
func (t *startLimiter) isReleased(uid types.UID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	had, found := t.slots[uid]
	return found && !had.released.IsZero()
}

// freeSlots is the number of free slots. The lock is held.
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

// isOccupied reports whether a slot still counts against the limit.
func (t *startSlot) isOccupied(now time.Time) bool {
	if t.released.IsZero() {
		return now.Sub(t.since) < createTimeout
	}
	return now.Sub(t.released) < releasedSlotTime
}

// release frees the experiment's slot, if it has one. It returns who waits next for a freed slot.
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

// leave frees the experiment's slot like release, and also its place among those that wait.
func (t *startLimiter) leave(uid types.UID) (next types.NamespacedName, found bool) {
	t.mu.Lock()
	t.waiting = slices.DeleteFunc(t.waiting, func(w startWaiter) bool { return w.uid == uid })
	t.mu.Unlock()
	return t.release(uid)
}

// slotRetryAfter is the time until an experiment with so many before it tries again.
func slotRetryAfter(before int) time.Duration {
	return min(time.Duration(before)*slotRetryPause, maxSlotRetryPause)
}
