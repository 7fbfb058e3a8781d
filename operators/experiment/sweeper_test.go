package experiment

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/cleanup"
	"vignette.dev/vignette/operators/experiment/scope"
)

func TestRadioNetworksWithoutTheirExperimentAreSweptAndNoOthers(t *testing.T) {
	w := newWorld(t)
	w.untilPhase(v1alpha1.PhaseRunning)
	for name, uid := range map[string]types.UID{"of-a-namesake": "other", "of-nobody": "gone"} {
		orphan := &v1alpha1.RadioNetwork{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: platform}}
		orphan.Spec.Experiment = v1alpha1.ExperimentReference{Namespace: w.key.Namespace, Name: w.key.Name, UID: uid}
		if name == "of-nobody" {
			orphan.Spec.Experiment.Name = "nobody"
		}
		w.must(w.api.Create(t.Context(), orphan))
	}
	before := w.objects()
	w.must((&cleanup.Sweeper{Client: w.api, Live: w.api, Namespace: platform}).Sweep(t.Context()))
	var left []string
	for _, object := range before {
		if object != "RadioNetwork of-a-namesake" && object != "RadioNetwork of-nobody" {
			left = append(left, object)
		}
	}
	if diff := cmp.Diff(left, w.objects()); diff != "" || len(before) != len(left)+2 {
		t.Error(diff)
	}
}

// listed is the simulated server with its list of runs.
type listed struct{ *server }

func (l listed) Runs(context.Context, string, string) (all []runapi.RunSummary, err error) {
	for uid, state := range l.states {
		all = append(all, runapi.RunSummary{Namespace: state.Plan.Namespace, Name: state.Plan.Name, UID: uid, Phase: state.Plan.Phase, Sealed: state.Sealed})
	}
	return all, l.call()
}

func TestTheArchiveGetsAMissedDeletion(t *testing.T) {
	w := newWorld(t)
	e := w.untilPhase(v1alpha1.PhaseRunning)
	sweeper := &cleanup.Sweeper{Client: w.api, Live: w.api, Namespace: platform, Archive: listed{w.server}}
	phase := func() v1alpha1.ExperimentPhase { return w.server.states[string(e.UID)].Plan.Phase }
	w.must(sweeper.SweepArchive(t.Context()))
	before := phase()
	if scope.Finished(before) {
		t.Fatalf("the run of an existing experiment is %s in the archive", before)
	}
	w.server.down = true
	w.must(w.api.Delete(t.Context(), e))
	w.until("gone", func(e *v1alpha1.Experiment) bool { return e == nil })
	if err := sweeper.SweepArchive(t.Context()); err == nil || phase() != before {
		t.Fatalf("the server that is down: error %v, phase %s", err, phase())
	}
	w.server.down = false
	w.must(sweeper.SweepArchive(t.Context()))
	state := w.server.states[string(e.UID)]
	if phase() != v1alpha1.PhaseFailed || state.Plan.Message != "the experiment was deleted while the server could not be reached" || !state.Sealed {
		t.Errorf("the run is %s in the archive: %s; sealed %t", phase(), state.Plan.Message, state.Sealed)
	}
}
