package experiment

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// short makes the quickstart experiment last only seconds.
func short(e *v1alpha1.Experiment) {
	e.Spec.Duration = "6s"
	e.Spec.Timeline = []v1alpha1.TimelineEntry{{At: "2s", Start: []string{"nor-units"}}}
	e.Spec.Drain = v1alpha1.Drain{Max: "4s", QuietFor: "1s"}
	e.Spec.Nodes = e.Spec.Nodes[:2]
}

// lifecycle is one possible course of an experiment.
type lifecycle struct {
	change func(*v1alpha1.Experiment)
	play   func(*world)
}

var lifecycles = map[string]lifecycle{
	"success": {play: func(w *world) {
		w.untilFinished()
		w.settle()
	}},
	"an early stop": {play: func(w *world) {
		w.until("2 s after T0", w.afterT0(2*time.Second))
		w.markDivergence()
		w.edit(func(e *v1alpha1.Experiment) { e.Spec.Stop = true })
		w.untilFinished()
		w.settle()
	}},
	"a failing app": {play: func(w *world) {
		w.until("1 s after T0", w.afterT0(time.Second))
		w.markDivergence()
		w.server.failing = map[string]string{"nor/hub": "boom"}
		w.untilFinished()
		w.settle()
	}},
	"an app that fails before T0": {play: func(w *world) {
		w.server.failing = map[string]string{"nor/hub": "boom"}
		w.untilPhase(v1alpha1.PhaseProvisioning)
		w.markDivergence()
		w.untilFinished()
		w.settle()
	}},
	"a deletion while Provisioning": {play: func(w *world) {
		w.until("with RadioNetworks", func(*v1alpha1.Experiment) bool { return len(w.mirror.now("RadioNetwork")) > 0 })
		w.deleted()
	}},
	"a deletion while Running": {play: func(w *world) {
		w.until("1 s after T0", w.afterT0(time.Second))
		w.deleted()
	}},
	"the end of the time to live": {
		change: func(e *v1alpha1.Experiment) { ttl := v1alpha1.Duration("5s"); e.Spec.TTLAfterFinished = &ttl },
		play: func(w *world) {
			w.untilFinished()
			w.markDivergence()
			w.until("gone", gone)
		},
	},
	"a deletion of a run with a virtual machine": {change: machine, play: func(w *world) {
		w.untilPhase(v1alpha1.PhaseProvisioning)
		w.markDivergence()
		w.until("1 s after T0", w.afterT0(time.Second))
		w.must(w.api.Delete(w.t.Context(), w.experiment()))
		w.until("gone", gone)
	}},
	"a live cluster that is stopped": {
		change: func(e *v1alpha1.Experiment) { e.Spec.Duration = "" },
		play: func(w *world) {
			w.until("with T0", w.afterT0(-time.Minute))
			w.markDivergence()
			w.until("1 s after T0", w.afterT0(time.Second))
			w.change("worse", lossOf("wan", "9%"))
			w.capture("trace", "wan")
			w.until("4 s after T0", w.afterT0(4*time.Second))
			w.edit(func(e *v1alpha1.Experiment) { e.Spec.Stop = true })
			w.untilFinished()
			w.settle()
		},
	},
}

func lifecycleNames() []string { return slices.Sorted(maps.Keys(lifecycles)) }

func gone(e *v1alpha1.Experiment) bool { return e == nil }

func (w *world) afterT0(d time.Duration) func(*v1alpha1.Experiment) bool {
	return func(e *v1alpha1.Experiment) bool { return e.Status.T0 != nil && w.clock.Since(e.Status.T0.Time) >= d }
}

// markDivergence marks where a lifecycle leaves that of a success. Another sweep covers the writes before.
func (w *world) markDivergence() { w.divergedAt = len(w.writes) }

func (w *world) edit(change func(*v1alpha1.Experiment)) {
	w.t.Helper()
	e := w.experiment()
	change(e)
	w.must(w.api.Update(w.t.Context(), e))
}

func (w *world) deleted() {
	w.t.Helper()
	w.markDivergence()
	w.must(w.api.Delete(w.t.Context(), w.experiment()))
	w.until("gone", gone)
}

// crash of the operator at one write of a lifecycle.
type crash struct {
	lifecycle string
	write     int
	what      string
}

func (c crash) String() string { return fmt.Sprintf("%s, write %d, %s", c.lifecycle, c.write, c.what) }

// sweepCrashes runs every lifecycle once undisturbed, and once for each of its writes with a crash there. The final state of
// the API server and the archive, and the number of writes of each kind, must be the same.
func sweepCrashes(t *testing.T, c *cluster, strike func(*world, int)) {
	t.Helper()
	want := map[string]outcome{}
	var crashes []crash
	for _, name := range lifecycleNames() {
		w := c.world(t, lifecycles[name].change)
		lifecycles[name].play(w)
		want[name] = w.outcome()
		for k := w.divergedAt + 1; k < len(w.writes); k++ {
			crashes = append(crashes, crash{lifecycle: name, write: k, what: w.normal(w.writes[k-1])})
		}
		t.Logf("%s: %d writes, swept from %d on", name, len(w.writes), w.divergedAt+1)
	}
	runSweep(t, crashes, crash.String, func(t *testing.T, crash crash) {
		w := c.world(t, lifecycles[crash.lifecycle].change)
		strike(w, crash.write)
		lifecycles[crash.lifecycle].play(w)
		if diff := want[crash.lifecycle].diff(w.outcome()); diff != "" {
			t.Errorf("the outcome differs (-undisturbed +crashed):\n%s", diff)
		}
	})
}

func TestAnOperatorKilledAfterAnyWriteIsReplacedByOneThatContinues(t *testing.T) {
	sweepCrashes(t, realCluster(t), func(w *world, k int) { w.killAfter, w.onDeath = k, w.restart })
}

func TestAWriteWhoseAnswerIsLostIsNotDoneTwice(t *testing.T) {
	sweepCrashes(t, &cluster{}, func(w *world, k int) { w.cutAt = k })
}
