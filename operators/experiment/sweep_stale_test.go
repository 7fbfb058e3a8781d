package experiment

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

// cachedKinds are those whose caches lag, one at a time and all together.
var cachedKinds = []string{"Experiment", "Pod", "Workflow", "RadioNetwork", "NetworkAttachmentDefinition", "PodDisruptionBudget", "LiveChange", "Capture"}

// lag of the operator's caches.
type lag struct {
	lifecycle string
	kinds     []string
	// from is the number of writes after which it starts.
	from int
	// back is how many revisions the caches forget at that point, as after a restart of the operator beside an API server that
	// lags. It is 0 if they only stop.
	back int
}

func (l lag) String() string {
	how := "stand still"
	if l.back > 0 {
		how = fmt.Sprintf("fall back by %d", l.back)
	}
	return fmt.Sprintf("%s, caches of %s %s after write %d", l.lifecycle, strings.Join(l.kinds, " and "), how, l.from)
}

// lagFor is the length of a lag in steps. It ends before T0, so that nothing misses its time.
const lagFor = 3

// apply makes the caches lag for a while, once the operator has made so many writes.
func (l lag) apply(w *world) {
	var until int
	moments := 0
	w.atMoment = func() {
		moments++
		switch {
		case until == 0 && len(w.writes) >= l.from:
			until = moments + lagFor
			w.mirror.freeze(w.mirror.length()-l.back, l.kinds...)
			if l.back > 0 {
				w.restart()
			}
		case until == moments:
			w.mirror.thaw()
		}
	}
}

// allLags is set for the whole sweep, which takes half an hour. Otherwise only every thirteenth point is tested.
var allLags = os.Getenv("VIGNETTE_SWEEP") == "full"

func lags(t *testing.T, c *cluster, names ...string) (found []lag) {
	t.Helper()
	sets := [][]string{cachedKinds}
	for _, kind := range cachedKinds {
		sets = append(sets, []string{kind})
	}
	point := 0
	for _, name := range names {
		w := c.world(t, lifecycles[name].change)
		lifecycles[name].play(w)
		for k := w.divergedAt + 1; k < len(w.writes); k++ {
			for _, kinds := range sets {
				for _, back := range []int{0, 5, 1000} {
					if point++; allLags || point%13 == 0 {
						found = append(found, lag{lifecycle: name, kinds: kinds, from: k, back: back})
					}
				}
			}
		}
	}
	return found
}

func TestStaleCachesDoNoHarm(t *testing.T) {
	c := &cluster{}
	names := []string{"success", "an early stop", "a deletion while Provisioning", "a deletion while Running", "a live cluster that is stopped"}
	runSweep(t, lags(t, c, names...), lag.String, func(t *testing.T, l lag) {
		w := c.world(t, lifecycles[l.lifecycle].change)
		l.apply(w)
		lifecycles[l.lifecycle].play(w)
		w.wantEnd(strings.HasPrefix(l.lifecycle, "a deletion"))
	})
}

// wantEnd checks a run that succeeded or was deleted, and that no false incidents are recorded.
func (w *world) wantEnd(deleted bool) {
	w.t.Helper()
	w.atMoment = nil
	w.mirror.thaw()
	w.clock.Step(scope.FinishedResyncInterval) // the next reconciliation finds what caches showed too late
	w.settle()
	var left []string
	for name, object := range w.inServer() {
		shared := strings.HasSuffix(name, " vignette-workflow") // is deleted with its owners
		kept := !deleted && slices.Contains([]string{"Workflow quickstart", "Experiment quickstart", "LiveChange worse", "Capture trace"}, name)
		if !shared && !kept && !w.collected(object) {
			left = append(left, name)
		}
	}
	if slices.Sort(left); len(left) > 0 {
		w.t.Errorf("left behind: %v", left)
	}
	state := w.server.states[w.uid]
	if len(state.Incidents) > 0 {
		w.t.Errorf("incidents are on record that never were: %+v", state.Incidents)
	}
	if e := w.experiment(); !deleted && e.Status.Phase != v1alpha1.PhaseSucceeded {
		w.t.Errorf("phase %s: %s; want success", e.Status.Phase, e.Status.Message)
	}
}

func TestATimeToLiveThatHasJustBeenExtendedCounts(t *testing.T) {
	w := (&cluster{}).world(t, func(e *v1alpha1.Experiment) { ttl := v1alpha1.Duration("30s"); e.Spec.TTLAfterFinished = &ttl })
	w.untilFinished()
	w.settle()
	w.mirror.freeze(w.mirror.length(), "Experiment")
	w.edit(func(e *v1alpha1.Experiment) { ttl := v1alpha1.Duration("1h"); e.Spec.TTLAfterFinished = &ttl })
	w.clock.Step(time.Minute)
	w.step()
	w.mirror.thaw()
	w.step()
	if e := w.experiment(); e == nil || !e.DeletionTimestamp.IsZero() {
		t.Error("it was deleted by the cache's time to live")
	}
}
