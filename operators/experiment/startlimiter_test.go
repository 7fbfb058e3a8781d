package experiment

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

var someDay = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// waiterOf is the entry of the experiment with a number, admitted so many seconds after the first.
func waiterOf(number, admitted int, asked time.Time) startWaiter {
	return startWaiter{uid: types.UID(fmt.Sprintf("e%03d", number)), name: types.NamespacedName{Namespace: "team", Name: fmt.Sprint(number)},
		admittedAt: someDay.Add(time.Duration(admitted) * time.Second), askedAt: asked}
}

func TestExperimentsStartInTheOrderOfTheirAdmission(t *testing.T) {
	limiter := startLimiter{limit: 2}
	for number, want := range []int{0, 0, 1, 2} {
		if _, before := limiter.acquire(waiterOf(number, number, someDay), time.Time{}); before != want {
			t.Errorf("experiment %d: %d before it; want %d", number, before, want)
		}
	}
	next, found := limiter.leave("e000")
	if !found || next.Name != "2" {
		t.Errorf("next is %v, %t; want experiment 2", next, found)
	}
	if _, before := limiter.acquire(waiterOf(3, 3, someDay), time.Time{}); before != 1 {
		t.Errorf("experiment 3 asks first: %d before it; want experiment 2", before)
	}
	since, before := limiter.acquire(waiterOf(2, 2, someDay.Add(time.Second)), time.Time{})
	if before != 0 || !since.Equal(someDay.Add(time.Second)) {
		t.Errorf("experiment 2: %d before it, since %v; want a slot since it asked", before, since)
	}
	if again, before := limiter.acquire(waiterOf(2, 2, someDay.Add(time.Minute)), time.Time{}); before != 0 || !again.Equal(since) {
		t.Errorf("it asks again: %d before it, since %v; want that it keeps its slot since %v", before, again, since)
	}
}

func TestStartSlots(t *testing.T) {
	for name, c := range map[string]struct {
		course func(limiter *startLimiter) (before int)
		want   int
	}{
		"an experiment with released nodes that do not become ready occupies its slot only for a while": {func(limiter *startLimiter) int {
			limiter.noteReleased("e000", someDay)
			_, before := limiter.acquire(waiterOf(1, 1, someDay.Add(releasedSlotTime)), time.Time{})
			return before
		}, 0},
		"and half a minute long": {func(limiter *startLimiter) int {
			limiter.noteReleased("e000", someDay)
			limiter.noteReleased("e000", someDay.Add(-time.Hour))
			_, before := limiter.acquire(waiterOf(1, 1, someDay.Add(releasedSlotTime-1)), time.Time{})
			return before
		}, 1},
		"an experiment keeps its slot while its nodes are created": {func(limiter *startLimiter) int {
			_, before := limiter.acquire(waiterOf(1, 1, someDay.Add(createTimeout-1)), time.Time{})
			return before
		}, 1},
		"but not if the creation takes too long": {func(limiter *startLimiter) int {
			_, before := limiter.acquire(waiterOf(1, 1, someDay.Add(createTimeout)), time.Time{})
			return before
		}, 0},
		"a waiter that does not ask again is dropped": {func(limiter *startLimiter) int {
			limiter.acquire(waiterOf(1, 1, someDay), time.Time{})
			limiter.leave("e000")
			_, before := limiter.acquire(waiterOf(2, 2, someDay.Add(waiterLifetime+1)), time.Time{})
			return before
		}, 0},
		"a waiter that was deleted is dropped": {func(limiter *startLimiter) int {
			limiter.acquire(waiterOf(1, 1, someDay), time.Time{})
			limiter.leave("e000")
			limiter.leave("e001")
			_, before := limiter.acquire(waiterOf(2, 2, someDay), time.Time{})
			return before
		}, 0},
		"an experiment with nodes, as after a restart of the operator, continues": {func(limiter *startLimiter) int {
			_, before := limiter.acquire(waiterOf(1, 1, someDay), someDay.Add(-time.Minute))
			return before
		}, 0},
		"without a limit no experiment waits": {func(limiter *startLimiter) int {
			limiter.limit = 0
			_, before := limiter.acquire(waiterOf(1, 1, someDay), time.Time{})
			return before
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			limiter := startLimiter{limit: 1}
			limiter.acquire(waiterOf(0, 0, someDay), time.Time{})
			if before := c.course(&limiter); before != c.want {
				t.Errorf("%d before it; want %d", before, c.want)
			}
		})
	}
}

// Experiments ask, leave and vanish at random.
func TestNoExperimentWaitsForeverForASlot(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 4)) //nolint:gosec // a test's course
		limiter, now := startLimiter{limit: 1 + random.IntN(5)}, someDay
		var had []int
		waiting := random.Perm(60)
		for step := 0; len(waiting) > 0; step++ {
			if step > 10_000 {
				t.Fatalf("seed %d: %v still wait", seed, waiting)
			}
			now = now.Add(time.Duration(random.IntN(1000)) * time.Millisecond)
			at := random.IntN(len(waiting))
			number := waiting[at]
			_, before := limiter.acquire(waiterOf(number, number, now), time.Time{})
			vanished := random.IntN(400) == 0
			if before == 0 {
				had = append(had, number)
			}
			if before == 0 || vanished {
				waiting = append(waiting[:at], waiting[at+1:]...)
			}
			switch uid := waiterOf(number, number, now).uid; {
			case before == 0 && random.IntN(3) > 0 || vanished && random.IntN(2) == 0:
				limiter.leave(uid)
			case before == 0 || vanished:
				limiter.noteReleased(uid, now)
			}
			coming := 0
			for _, had := range limiter.slots {
				if had.isOccupied(now) {
					coming++
				}
			}
			if coming > limiter.limit {
				t.Fatalf("seed %d: %d start at once; want %d at most", seed, coming, limiter.limit)
			}
		}
		if len(had) < 30 {
			t.Errorf("seed %d: only %d had a slot", seed, len(had))
		}
	}
}

func TestAnExperimentThatWaitsForASlotCreatesNothingAndItsDeadlineIsLater(t *testing.T) {
	w := newWorld(t)
	w.reconciler.starts.limit = 1
	w.reconciler.starts.acquire(startWaiter{uid: "another", askedAt: w.clock.Now()}, time.Time{})
	w.reconciler.starts.noteReleased("another", w.clock.Now())
	w.untilPhase(v1alpha1.PhaseProvisioning)
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	e := w.experiment()
	if len(w.pods()) != 0 || !strings.Contains(e.Status.Message, "waiting for a start slot") {
		t.Fatalf("%d pods, %q; want none, and to hear that it waits", len(w.pods()), e.Status.Message)
	}
	// The other one never becomes ready and asks repeatedly.
	for range 3 {
		w.clock.Step(releasedSlotTime / 2)
		w.reconciler.starts.acquire(startWaiter{uid: "another", askedAt: w.clock.Now()}, time.Time{})
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	if e = w.experiment(); len(w.pods()) == 0 {
		t.Errorf("no pods after the other one's time, %q", e.Status.Message)
	}
	if since := w.reconciler.starts.slots[e.UID].since; since.Sub(e.Status.StartTime.Time) < releasedSlotTime {
		t.Errorf("its deadline counts from %v; want from its slot, not from its admission at %v", since, e.Status.StartTime)
	}
	w.untilPhase(v1alpha1.PhaseRunning)
	if _, found := w.reconciler.starts.slots[e.UID]; found {
		t.Error("it runs, and still has its slot")
	}
}

func TestExperimentsCreateTheirNodesInTheOrderOfTheirAdmission(t *testing.T) {
	w := newWorld(t)
	w.reconciler.creations.limit = 1
	earlier := waiterOf(0, 0, w.clock.Now())
	earlier.admittedAt = w.clock.Now().Add(-time.Hour)
	w.reconciler.creations.acquire(waiterOf(1, 0, w.clock.Now()), time.Time{})
	w.reconciler.creations.acquire(earlier, time.Time{})
	wait := func(whom string) {
		t.Helper()
		for range 3 {
			if _, err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			if e := w.experiment(); e.Status.Phase != v1alpha1.PhaseProvisioning || len(w.pods()) != 0 {
				t.Fatalf("behind %s: %s with %d pods; want it provisioning without pods yet", whom, e.Status.Phase, len(w.pods()))
			}
		}
	}
	w.untilPhase(v1alpha1.PhaseProvisioning)
	wait("one that creates its nodes")
	if next, found := w.reconciler.creations.release("e001"); !found || next.Name != "0" {
		t.Errorf("next is %v, %t; want the one admitted first", next, found)
	}
	wait("one that was admitted before")
	w.reconciler.creations.leave(earlier.uid)
	e := w.untilPhase(v1alpha1.PhaseRunning)
	if len(w.reconciler.creations.waiting) != 0 || len(w.reconciler.creations.slots) != 0 {
		t.Errorf("once it runs %v wait and %v create nodes; want nobody", w.reconciler.creations.waiting, w.reconciler.creations.slots)
	}
	if len(w.pods()) != int(e.Status.Nodes.Total) {
		t.Errorf("%d pods; want %d", len(w.pods()), e.Status.Nodes.Total)
	}
}
