package experiment

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// short has the shape of the quickstart and lasts seconds.
func short(e *v1alpha1.Experiment) {
	e.Spec.Duration = "6s"
	e.Spec.Timeline = []v1alpha1.TimelineEntry{{At: "2s", Start: []string{"nor-units"}}}
	e.Spec.Drain = v1alpha1.Drain{Max: "4s", QuietFor: "1s"}
	e.Spec.Nodes = e.Spec.Nodes[:2]
}

// course is one way for an experiment to go.
type course struct {
	change func(*v1alpha1.Experiment)
	live   func(*world)
}

var courses = map[string]course{
	"success": {live: func(w *world) {
		w.untilFinished()
		w.settle()
	}},
	"an early stop": {live: func(w *world) {
		w.until("2 s after T0", w.afterT0(2*time.Second))
		w.swerve()
		w.edit(func(e *v1alpha1.Experiment) { e.Spec.Stop = true })
		w.untilFinished()
		w.settle()
	}},
	"a failing app": {live: func(w *world) {
		w.until("1 s after T0", w.afterT0(time.Second))
		w.swerve()
		w.server.failing = map[string]string{"nor/hub": "boom"}
		w.untilFinished()
		w.settle()
	}},
	"an app that fails before T0": {live: func(w *world) {
		w.server.failing = map[string]string{"nor/hub": "boom"}
		w.untilPhase(v1alpha1.PhaseProvisioning)
		w.swerve()
		w.untilFinished()
		w.settle()
	}},
	"a deletion while Provisioning": {live: func(w *world) {
		w.until("with RadioNetworks", func(*v1alpha1.Experiment) bool { return len(w.mirror.now("RadioNetwork")) > 0 })
		w.deleted()
	}},
	"a deletion while Running": {live: func(w *world) {
		w.until("1 s after T0", w.afterT0(time.Second))
		w.deleted()
	}},
	"the end of the time to live": {
		change: func(e *v1alpha1.Experiment) { ttl := v1alpha1.Duration("5s"); e.Spec.TTLAfterFinished = &ttl },
		live: func(w *world) {
			w.untilFinished()
			w.swerve()
			w.until("gone", gone)
		},
	},
	"a deletion of a run with a virtual machine": {change: machine, live: func(w *world) {
		w.untilPhase(v1alpha1.PhaseProvisioning)
		w.swerve()
		w.until("1 s after T0", w.afterT0(time.Second))
		w.must(w.api.Delete(w.t.Context(), w.experiment()))
		w.until("gone", gone)
	}},
	"a live cluster that is stopped": {
		change: func(e *v1alpha1.Experiment) { e.Spec.Duration = "" },
		live: func(w *world) {
			w.until("with T0", w.afterT0(-time.Minute))
			w.swerve()
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

// swept are the courses that sweeps go over.
func swept() []string {
	if raceDetector {
		return []string{"a deletion while Running", "a live cluster that is stopped"}
	}
	return slices.Sorted(maps.Keys(courses))
}

func gone(e *v1alpha1.Experiment) bool { return e == nil }

func (w *world) afterT0(d time.Duration) func(*v1alpha1.Experiment) bool {
	return func(e *v1alpha1.Experiment) bool { return e.Status.T0 != nil && w.clock.Since(e.Status.T0.Time) >= d }
}

// swerve from the course of a success: the writes so far are another sweep's.
func (w *world) swerve() { w.swerved = len(w.writes) }

func (w *world) edit(change func(*v1alpha1.Experiment)) {
	w.t.Helper()
	e := w.experiment()
	change(e)
	w.must(w.api.Update(w.t.Context(), e))
}

func (w *world) deleted() {
	w.t.Helper()
	w.swerve()
	w.must(w.api.Delete(w.t.Context(), w.experiment()))
	w.until("gone", gone)
}

// crash of the operator at one write of a course.
type crash struct {
	course string
	write  int
	what   string
}

func (c crash) String() string { return fmt.Sprintf("%s, write %d, %s", c.course, c.write, c.what) }

// sweepCrashes runs every course once undisturbed, and once for each of its writes with a crash there. What is in the API
// server and the archive in the end, and how often each thing was written, has to be the same.
func sweepCrashes(t *testing.T, c *cluster, strike func(*world, int)) {
	t.Helper()
	want := map[string]outcome{}
	var crashes []crash
	for _, name := range swept() {
		w := c.world(t, courses[name].change)
		courses[name].live(w)
		want[name] = w.outcome()
		for k := w.swerved + 1; k < len(w.writes); k++ {
			crashes = append(crashes, crash{course: name, write: k, what: w.normal(w.writes[k-1])})
		}
		t.Logf("%s: %d writes, swept from %d on", name, len(w.writes), w.swerved+1)
	}
	sweepOver(t, crashes, crash.String, func(t *testing.T, crash crash) {
		w := c.world(t, courses[crash.course].change)
		strike(w, crash.write)
		courses[crash.course].live(w)
		if diff := want[crash.course].diff(w.outcome()); diff != "" {
			t.Errorf("the outcome differs (-undisturbed +crashed):\n%s", diff)
		}
	})
}

func TestAnOperatorKilledAfterAnyWriteIsReplacedByOneThatGoesOn(t *testing.T) {
	sweepCrashes(t, realCluster(t), func(w *world, k int) { w.killAfter, w.onDeath = k, w.restart })
}

func TestAWriteWhoseAnswerIsLostIsNotDoneTwice(t *testing.T) {
	sweepCrashes(t, &cluster{}, func(w *world, k int) { w.cutAt = k })
}
