package provisioning

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

var someDay = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// numbered is the entry of the experiment with a number, admitted so many seconds after the first.
func numbered(number, admitted int, asked time.Time) Waiter {
	return Waiter{UID: types.UID(fmt.Sprintf("e%03d", number)), Name: types.NamespacedName{Namespace: "team", Name: fmt.Sprint(number)},
		AdmittedAt: someDay.Add(time.Duration(admitted) * time.Second), AskedAt: asked}
}

func TestExperimentsStartInTheOrderOfTheirAdmission(t *testing.T) {
	limiter := Limiter{Starting: 2}
	for number, want := range []int{0, 0, 1, 2} {
		if _, before := limiter.Acquire(numbered(number, number, someDay), time.Time{}); before != want {
			t.Errorf("experiment %d: %d before it; want %d", number, before, want)
		}
	}
	next, found := limiter.Leave("e000")
	if !found || next.Name != "2" {
		t.Errorf("next is %v, %t; want experiment 2", next, found)
	}
	if _, before := limiter.Acquire(numbered(3, 3, someDay), time.Time{}); before != 1 {
		t.Errorf("experiment 3 asks first: %d before it; want experiment 2", before)
	}
	since, before := limiter.Acquire(numbered(2, 2, someDay.Add(time.Second)), time.Time{})
	if before != 0 || !since.Equal(someDay.Add(time.Second)) {
		t.Errorf("experiment 2: %d before it, since %v; want a slot since it asked", before, since)
	}
	if again, before := limiter.Acquire(numbered(2, 2, someDay.Add(time.Minute)), time.Time{}); before != 0 || !again.Equal(since) {
		t.Errorf("it asks again: %d before it, since %v; want that it keeps its slot since %v", before, again, since)
	}
}

func TestStartSlots(t *testing.T) {
	for name, c := range map[string]struct {
		course func(limiter *Limiter) (before int)
		want   int
	}{
		"an experiment with released nodes that do not become ready occupies its slot only for a while": {func(limiter *Limiter) int {
			limiter.NoteReleased("e000", someDay)
			_, before := limiter.Acquire(numbered(1, 1, someDay.Add(releasedSlotTime)), time.Time{})
			return before
		}, 0},
		"and half a minute long": {func(limiter *Limiter) int {
			limiter.NoteReleased("e000", someDay)
			limiter.NoteReleased("e000", someDay.Add(-time.Hour))
			_, before := limiter.Acquire(numbered(1, 1, someDay.Add(releasedSlotTime-1)), time.Time{})
			return before
		}, 1},
		"an experiment keeps its slot while its nodes are created": {func(limiter *Limiter) int {
			_, before := limiter.Acquire(numbered(1, 1, someDay.Add(createTimeout-1)), time.Time{})
			return before
		}, 1},
		"but not if the creation takes too long": {func(limiter *Limiter) int {
			_, before := limiter.Acquire(numbered(1, 1, someDay.Add(createTimeout)), time.Time{})
			return before
		}, 0},
		"a waiter that does not ask again is dropped": {func(limiter *Limiter) int {
			limiter.Acquire(numbered(1, 1, someDay), time.Time{})
			limiter.Leave("e000")
			_, before := limiter.Acquire(numbered(2, 2, someDay.Add(waiterLifetime+1)), time.Time{})
			return before
		}, 0},
		"a waiter that was deleted is dropped": {func(limiter *Limiter) int {
			limiter.Acquire(numbered(1, 1, someDay), time.Time{})
			limiter.Leave("e000")
			limiter.Leave("e001")
			_, before := limiter.Acquire(numbered(2, 2, someDay), time.Time{})
			return before
		}, 0},
		"an experiment with nodes, as after a restart of the operator, continues": {func(limiter *Limiter) int {
			_, before := limiter.Acquire(numbered(1, 1, someDay), someDay.Add(-time.Minute))
			return before
		}, 0},
		"without a limit no experiment waits": {func(limiter *Limiter) int {
			limiter.Starting = 0
			_, before := limiter.Acquire(numbered(1, 1, someDay), time.Time{})
			return before
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			limiter := Limiter{Starting: 1}
			limiter.Acquire(numbered(0, 0, someDay), time.Time{})
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
		limiter, now := Limiter{Starting: 1 + random.IntN(5)}, someDay
		var had []int
		waiting := random.Perm(60)
		for step := 0; len(waiting) > 0; step++ {
			if step > 10_000 {
				t.Fatalf("seed %d: %v still wait", seed, waiting)
			}
			now = now.Add(time.Duration(random.IntN(1000)) * time.Millisecond)
			at := random.IntN(len(waiting))
			number := waiting[at]
			_, before := limiter.Acquire(numbered(number, number, now), time.Time{})
			vanished := random.IntN(400) == 0
			if before == 0 {
				had = append(had, number)
			}
			if before == 0 || vanished {
				waiting = append(waiting[:at], waiting[at+1:]...)
			}
			switch uid := numbered(number, number, now).UID; {
			case before == 0 && random.IntN(3) > 0 || vanished && random.IntN(2) == 0:
				limiter.Leave(uid)
			case before == 0 || vanished:
				limiter.NoteReleased(uid, now)
			}
			coming := 0
			for _, had := range limiter.slots {
				if had.isOccupied(now) {
					coming++
				}
			}
			if coming > limiter.Starting {
				t.Fatalf("seed %d: %d start at once; want %d at most", seed, coming, limiter.Starting)
			}
		}
		if len(had) < 30 {
			t.Errorf("seed %d: only %d had a slot", seed, len(had))
		}
	}
}

func TestNodesAreCreatedInTheOrderOfAdmission(t *testing.T) {
	limiter := Limiter{Creating: 1}
	for number := range 3 {
		limiter.Acquire(numbered(number, number, someDay), time.Time{})
	}
	for _, c := range []struct{ number, want int }{{2, 0}, {1, 1}, {0, 1}, {1, 2}} {
		if before := limiter.BeginCreating(numbered(c.number, c.number, someDay)); before != c.want {
			t.Errorf("experiment %d: %d create nodes before it; want %d", c.number, before, c.want)
		}
	}
	if next, found := limiter.EndCreating("e002"); !found || next.Name != "0" {
		t.Errorf("next is %v, %t; want the one admitted first", next, found)
	}
	if before := limiter.BeginCreating(numbered(1, 1, someDay)); before != 1 {
		t.Errorf("experiment 1 asks first: %d before it; want experiment 0", before)
	}
	limiter.Leave("e000")
	if before := limiter.BeginCreating(numbered(1, 1, someDay)); before != 0 {
		t.Errorf("%d before experiment 1, once experiment 0 is gone; want none", before)
	}
	limiter.NoteReleased("e002", someDay)
	if before := limiter.BeginCreating(numbered(2, 2, someDay)); before != 0 {
		t.Errorf("an experiment whose nodes are released has %d before it; want none, as it creates no nodes", before)
	}
}
