package experiment

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// cachedKinds are those whose caches are held back, one at a time and all together.
var cachedKinds = []string{"Experiment", "Pod", "Workflow", "RadioNetwork", "NetworkAttachmentDefinition", "LiveChange", "Capture"}

// lag of the operator's caches.
type lag struct {
	lifecycle string
	kinds     []string
	// from so many writes on.
	from int
	// back is how many of the world's revisions the caches forget at that point, as those of an operator that is
	// restarted beside an API server that is behind; 0 where they only stand still.
	back int
}

func (l lag) String() string {
	how := "stand still"
	if l.back > 0 {
		how = fmt.Sprintf("fall back by %d", l.back)
	}
	return fmt.Sprintf("%s, caches of %s %s after write %d", l.lifecycle, strings.Join(l.kinds, " and "), how, l.from)
}

// lagFor so many moments; all is over before T0 comes, and nothing is late for its time.
const lagFor = 3

// apply the caches with the lag as soon as the operator has made so many writes, for a while.
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

// allLags is set for the whole sweep, which takes half an hour; else every thirteenth of them is tried, of all kinds and at all phases.
var allLags = os.Getenv("VIGNETTE_SWEEP") == "full"

func lags(t *testing.T, c *cluster, names ...string) (found []lag) {
	t.Helper()
	sets := [][]string{cachedKinds}
	for _, kind := range cachedKinds {
		sets = append(sets, []string{kind})
	}
	turn := 0
	for _, name := range names {
		w := c.world(t, lifecycles[name].change)
		lifecycles[name].play(w)
		for k := w.divergedAt + 1; k < len(w.writes); k++ {
			for _, kinds := range sets {
				for _, back := range []int{0, 5, 1000} {
					if turn++; allLags || turn%13 == 0 {
						found = append(found, lag{lifecycle: name, kinds: kinds, from: k, back: back})
					}
				}
			}
		}
	}
	return found
}

func TestCachesThatLagMisleadNobody(t *testing.T) {
	c := &cluster{}
	names := []string{"success", "an early stop", "a deletion while Provisioning", "a deletion while Running", "a live cluster that is stopped"}
	if raceDetector {
		names = sweptLifecycles()
	}
	runSweep(t, lags(t, c, names...), lag.String, func(t *testing.T, l lag) {
		w := c.world(t, lifecycles[l.lifecycle].change)
		l.apply(w)
		lifecycles[l.lifecycle].play(w)
		w.wantEnd(strings.HasPrefix(l.lifecycle, "a deletion"))
	})
}

// wantEnd of a run that went well, or of one that is gone; what was true of it is on record, and nothing else.
func (w *world) wantEnd(deleted bool) {
	w.t.Helper()
	w.atMoment = nil
	w.mirror.thaw()
	w.clock.Step(finishedResyncInterval) // what caches showed too late is found at the next look
	w.settle()
	var left []string
	for name, object := range w.inServer() {
		shared := strings.HasSuffix(name, " vignette-workflow") // goes with its owners
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

func TestATimeToLiveThatWasProlongedAMomentAgoHolds(t *testing.T) {
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
		t.Error("it was deleted by what a cache said of its time to live")
	}
}
