package experiment

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestReconcilingAgainWritesNothingAtAnyTime(t *testing.T) {
	for _, name := range lifecycleNames() {
		t.Run(name, func(t *testing.T) {
			w := (&cluster{}).world(t, lifecycles[name].change)
			w.restAs = func() {
				w.rest()
				before := len(w.writes)
				w.clock.Step(10 * time.Millisecond)
				w.once()
				if more := w.writes[before:]; len(more) > 0 {
					t.Errorf("%s after the beginning, at rest, it wrote %v", w.clock.Since(w.began), more)
				}
				w.clock.Step(-10 * time.Millisecond)
			}
			lifecycles[name].play(w)
		})
	}
}

// queued keeps an experiment in the queue because its waveform is missing.
func queued(t *testing.T, c *cluster) *world {
	w := c.world(t, func(e *v1alpha1.Experiment) { e.Spec.Networks[1].Waveform = "later" })
	for range 3 {
		w.step()
	}
	if e := w.experiment(); e.Status.Phase != v1alpha1.PhaseQueued {
		t.Fatalf("phase %s before the waveform is there", e.Status.Phase)
	}
	return w
}

// An experiment that was edited back and forth has the same outcome as a new one.
func TestEditsInTheQueueLeaveNoTrace(t *testing.T) {
	edits := map[string]func(*v1alpha1.ExperimentSpec){
		"a longer duration": func(s *v1alpha1.ExperimentSpec) { s.Duration = "40s" },
		"a live cluster":    func(s *v1alpha1.ExperimentSpec) { s.Duration = "" },
		"another seed":      func(s *v1alpha1.ExperimentSpec) { s.Seed = 99 },
		"another subnet":    func(s *v1alpha1.ExperimentSpec) { s.Networks[0].Subnet = "198.18.77.0/24" },
		"a node more": func(s *v1alpha1.ExperimentSpec) {
			s.Nodes = append(s.Nodes, v1alpha1.Node{Name: "more", Networks: []string{"wan"}})
		},
		"no timeline at all": func(s *v1alpha1.ExperimentSpec) { s.Timeline = nil },
		"a network more": func(s *v1alpha1.ExperimentSpec) {
			s.Networks = append(s.Networks, v1alpha1.Network{Name: "more", Waveform: "ethernet", Subnet: "198.18.78.0/24"})
		},
	}
	c := realCluster(t)
	finish := func(w *world) outcome {
		w.edit(func(e *v1alpha1.Experiment) { e.Spec.Networks[1].Waveform = "ethernet" })
		w.untilPhase(v1alpha1.PhaseRunning)
		o := w.outcome()
		o.Writes = nil
		delete(o.Objects, "Experiment quickstart") // its generation and the times of its conditions tell of the edits
		return o
	}
	fresh := finish(queued(t, c))
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			w := queued(t, c)
			a := w.experiment().Spec
			w.edit(func(e *v1alpha1.Experiment) { edit(&e.Spec) })
			w.rest()
			if e := w.experiment(); e.Status.Phase != v1alpha1.PhaseQueued {
				t.Fatalf("phase %s after the edit", e.Status.Phase)
			}
			w.edit(func(e *v1alpha1.Experiment) { e.Spec = a })
			if diff := cmp.Diff(fresh.Objects, finish(w).Objects); diff != "" {
				t.Errorf("objects differ (-fresh +edited):\n%s", diff)
			}
		})
	}
}

func TestInvalidEditsAndEditsOfARunAreRefused(t *testing.T) {
	c := clusterOf(t, strictServer.Start(t))
	w := queued(t, c)
	refused := func(what string, change func(*v1alpha1.ExperimentSpec)) {
		t.Helper()
		e := w.experiment()
		change(&e.Spec)
		if err := w.api.Update(t.Context(), e); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v; want it refused", what, err)
		}
	}
	refused("no node", func(s *v1alpha1.ExperimentSpec) { s.Nodes = nil })
	refused("a duration without unit", func(s *v1alpha1.ExperimentSpec) { s.Duration = "60" })
	refused("a network without link or waveform", func(s *v1alpha1.ExperimentSpec) { s.Networks[1].Waveform = "" })
	refused("two networks of one name", func(s *v1alpha1.ExperimentSpec) { s.Networks[1].Name = s.Networks[0].Name })
	w.edit(func(e *v1alpha1.Experiment) { e.Spec.Networks[1].Waveform = "ethernet" })
	w.untilPhase(v1alpha1.PhaseRunning)
	refused("another seed in a run", func(s *v1alpha1.ExperimentSpec) { s.Seed = 99 })
	refused("another duration in a run", func(s *v1alpha1.ExperimentSpec) { s.Duration = "7s" })
}
