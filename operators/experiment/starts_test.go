package experiment

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/provisioning"
)

// releasedSlotTime is how long an experiment has its slot once its nodes are released.
const releasedSlotTime = 30 * time.Second

// another experiment that was admitted so long before now.
func (w *world) another(uid types.UID, before time.Duration) provisioning.Waiter {
	return provisioning.Waiter{UID: uid, AdmittedAt: w.clock.Now().Add(-before), AskedAt: w.clock.Now()}
}

func TestAnExperimentThatWaitsForASlotCreatesNothingAndItsDeadlineIsLater(t *testing.T) {
	w := newWorld(t)
	starts := &w.reconciler.parts().provisioner.Starts
	starts.Starting = 1
	starts.Acquire(w.another("another", 0), time.Time{})
	starts.NoteReleased("another", w.clock.Now())
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
		starts.Acquire(w.another("another", 0), time.Time{})
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	if e = w.experiment(); len(w.pods()) == 0 {
		t.Errorf("no pods after the other one's time, %q", e.Status.Message)
	}
	if since, _ := starts.Acquire(w.another(e.UID, 0), time.Time{}); since.Sub(e.Status.StartTime.Time) < releasedSlotTime {
		t.Errorf("its deadline counts from %v; want from its slot, not from its admission at %v", since, e.Status.StartTime)
	}
	w.untilPhase(v1alpha1.PhaseRunning)
	if _, before := starts.Acquire(w.another("a third", 0), time.Time{}); before != 0 {
		t.Error("it runs, and still has its slot")
	}
}

func TestExperimentsCreateTheirNodesInTheOrderOfTheirAdmission(t *testing.T) {
	w := newWorld(t)
	starts := &w.reconciler.parts().provisioner.Starts
	starts.Creating = 1
	creating, earlier := w.another("creating", 0), w.another("earlier", time.Hour)
	for _, other := range []provisioning.Waiter{creating, earlier} {
		starts.Acquire(other, time.Time{})
		starts.BeginCreating(other)
	}
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
	if _, found := starts.EndCreating("creating"); !found {
		t.Error("nobody is next; want the one admitted first")
	}
	wait("one that was admitted before")
	starts.Leave(earlier.UID)
	e := w.untilPhase(v1alpha1.PhaseRunning)
	if before := starts.BeginCreating(creating); before != 0 {
		t.Errorf("once it runs %d create nodes; want nobody", before)
	}
	if len(w.pods()) != int(e.Status.Nodes.Total) {
		t.Errorf("%d pods; want %d", len(w.pods()), e.Status.Nodes.Total)
	}
}
