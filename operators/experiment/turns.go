package experiment

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// turnLasts is how long an experiment keeps others waiting once its nodes were let go: one whose images are slow, or never come, must not hold up
	// all. Before, while the operator itself is at work on it, it does so for makingLasts: something may hold that up too.
	turnLasts   = 30 * time.Second
	makingLasts = 2 * time.Minute
	// turnPause is how long an experiment with one other before it leaves asking again; it is that much longer for each further one, up to longestTurnPause.
	// Who is next is woken.
	turnPause        = 500 * time.Millisecond
	longestTurnPause = 30 * time.Second
	// absentAfter is when one that has not asked again has gone elsewhere.
	absentAfter = 2 * longestTurnPause
)

// turns lets admitted experiments come up in the order of their admission, so many at once: hundreds that began together would all be slow, and
// too late. It remembers nothing that matters after a restart: who comes up has nodes then, and is let go on.
type turns struct {
	// most that come up at once; 0 for any number.
	most int
	mu   sync.Mutex
	// up are those whose turn it has been.
	up      map[types.UID]*turn
	waiting []waiter
}

// turn of an experiment since a time; its nodes were let go later, or are not yet.
type turn struct{ since, letGo time.Time }

type waiter struct {
	uid             types.UID
	name            types.NamespacedName
	admitted, asked time.Time
}

// ask whether it is an experiment's turn; began is when its first node was made, if it has any. It tells since when it comes up, or how many are before it.
func (t *turns) ask(w waiter, began time.Time) (since time.Time, before int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if had, found := t.up[w.uid]; found {
		return had.since, 0
	}
	t.waiting = slices.DeleteFunc(t.waiting, func(other waiter) bool { return other.uid == w.uid || w.asked.Sub(other.asked) > absentAfter })
	if !began.IsZero() {
		t.begin(w.uid, began)
		return began, 0
	}
	at, _ := slices.BinarySearchFunc(t.waiting, w, func(a, b waiter) int {
		return cmp.Or(a.admitted.Compare(b.admitted), cmp.Compare(a.uid, b.uid))
	})
	if free := t.free(w.asked); at >= free {
		t.waiting = slices.Insert(t.waiting, at, w)
		return time.Time{}, at - free + 1
	}
	t.begin(w.uid, w.asked)
	return w.asked, 0
}

// begin a turn. The lock is held.
func (t *turns) begin(uid types.UID, at time.Time) {
	if t.up == nil {
		t.up = map[types.UID]*turn{}
	}
	t.up[uid] = &turn{since: at}
}

// letGo notes that the operator has made all nodes of an experiment and let them go.
func (t *turns) letGo(uid types.UID, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if had, found := t.up[uid]; found && had.letGo.IsZero() {
		had.letGo = now
	}
}

// hasLetGo tells whether that was noted.
func (t *turns) hasLetGo(uid types.UID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	had, found := t.up[uid]
	return found && !had.letGo.IsZero()
}

// free turns at a time. The lock is held.
func (t *turns) free(now time.Time) int {
	if t.most == 0 {
		return len(t.waiting) + 1
	}
	free := t.most
	for _, had := range t.up {
		if had.counts(now) {
			free--
		}
	}
	return free
}

// counts tells whether a turn keeps others waiting.
func (t *turn) counts(now time.Time) bool {
	if t.letGo.IsZero() {
		return now.Sub(t.since) < makingLasts
	}
	return now.Sub(t.letGo) < turnLasts
}

// end the turn of an experiment, if it has one, and name who is next where that made room for one. One that waits keeps its place.
func (t *turns) end(uid types.UID) (next types.NamespacedName, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, had := t.up[uid]
	delete(t.up, uid)
	if !had || len(t.waiting) == 0 {
		return types.NamespacedName{}, false
	}
	return t.waiting[0].name, true
}

// leave gives up an experiment's turn, as end does, or its place.
func (t *turns) leave(uid types.UID) (next types.NamespacedName, found bool) {
	t.mu.Lock()
	t.waiting = slices.DeleteFunc(t.waiting, func(w waiter) bool { return w.uid == uid })
	t.mu.Unlock()
	return t.end(uid)
}

// pause until one with so many before it asks again.
func pause(before int) time.Duration {
	return min(time.Duration(before)*turnPause, longestTurnPause)
}
