package experiment

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// createAnother creates another experiment like the world's, in a namespace.
func (w *world) createAnother(namespace, name string, change ...func(*v1alpha1.Experiment)) types.NamespacedName {
	w.t.Helper()
	w.must(client.IgnoreAlreadyExists(w.api.Create(w.t.Context(), team(namespace))))
	e := readExperiment(w.t)
	e.Namespace, e.Name = namespace, name
	for _, c := range change {
		c(e)
	}
	w.must(w.api.Create(w.t.Context(), e))
	return client.ObjectKeyFromObject(e)
}

func (w *world) reconcileOther(key types.NamespacedName) *v1alpha1.Experiment {
	w.t.Helper()
	before := w.key
	defer func() { w.key = before }()
	w.key = key
	for range 3 {
		if _, err := w.reconcile(); err != nil {
			w.t.Fatal(err)
		}
	}
	return w.experiment()
}

func TestAWaitingExperimentHasAPositionAndStartsWhenAnotherTeamsIsOver(t *testing.T) {
	w := newWorld(t)
	w.untilPhase(v1alpha1.PhaseRunning)
	var node corev1.Node
	w.must(w.api.Get(t.Context(), client.ObjectKey{Name: "n1"}, &node))
	node.Status.Allocatable[corev1.ResourcePods] = quantity("9") // room for one experiment of five pods, but not for two
	w.must(w.api.Status().Update(t.Context(), &node))
	first := w.createAnother("team-b", "first")
	w.clock.Step(time.Second)
	second := w.createAnother("team-c", "second")
	for range 2 {
		for i, key := range []types.NamespacedName{first, second} {
			w.clock.Step(time.Second)
			e := w.reconcileOther(key)
			if e.Status.Phase != v1alpha1.PhaseQueued || e.Status.Queue == nil || e.Status.Queue.Position != int32(i+1) || e.Status.Queue.ExpectedStart == nil {
				t.Fatalf("%s is %s with %+v: %s", key, e.Status.Phase, e.Status.Queue, e.Status.Message)
			}
		}
	}
	w.untilPhase(v1alpha1.PhaseSucceeded)
	w.settle()
	w.clock.Step(time.Minute)
	if e := w.reconcileOther(second); e.Status.Phase != v1alpha1.PhaseQueued {
		t.Errorf("the second is %s though the first comes first", e.Status.Phase)
	}
	if e := w.reconcileOther(first); e.Status.Phase != v1alpha1.PhaseProvisioning || e.Status.Queue != nil {
		t.Errorf("the first is %s: %s", e.Status.Phase, e.Status.Message)
	}
	w.restart() // an admitted experiment holds its room also for a new operator
	w.clock.Step(time.Minute)
	if e := w.reconcileOther(second); e.Status.Phase != v1alpha1.PhaseQueued {
		t.Errorf("the second is %s after a restart, though the first has the room", e.Status.Phase)
	}
}
