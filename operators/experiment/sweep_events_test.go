package experiment

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// everyKind of which an event wakes the operator.
var everyKind = []string{"Experiment", "Pod", "Workflow", "NetworkAttachmentDefinition", "RadioNetwork", "LiveChange", "Capture", "Waveform", "ResourceQuota", "Node"}

// wakes has the operator reconcile only where an event tells it to, a time that it asked for has come, or it failed.
type wakes struct {
	w *world
	// lost are kinds whose events never come.
	lost []string
	// at is when it asked to be woken; zero for never. told is that an event came.
	at   time.Time
	told bool
}

func deaf(w *world, lost ...string) *wakes {
	k := &wakes{w: w, lost: lost, told: true}
	w.mirror.changed = func(before, after revision) {
		w.watchOver(before, after)
		k.told = k.told || !slices.Contains(lost, after.kind)
	}
	return k
}

// rest lets the operator reconcile as often as it is woken at this moment.
func (k *wakes) rest() {
	k.w.t.Helper()
	for range 50 {
		if now := k.w.clock.Now(); !k.told && (k.at.IsZero() || k.at.After(now)) {
			return
		}
		k.told, k.at = false, time.Time{}
		k.w.mirror.begin()
		result, err := k.w.reconcile()
		switch {
		case err != nil && errors.Is(err, errKilled):
			return
		case err != nil:
			k.at = k.w.clock.Now().Add(200 * time.Millisecond)
		case result.RequeueAfter > 0:
			k.at = k.w.clock.Now().Add(result.RequeueAfter)
		}
	}
	k.w.t.Fatal("the operator does not come to rest")
}

// mostDelay of a run by events that never come: a few looks at it that come by themselves.
const mostDelay = 2 * time.Minute

func TestEventsThatNeverComeCostABoundedTimeOnly(t *testing.T) {
	c := &cluster{}
	cases := map[string][]string{"all": everyKind}
	if !raceDetector {
		for _, kind := range everyKind {
			cases[kind] = []string{kind}
		}
	}
	for _, name := range swept() {
		plain := c.world(t, courses[name].change)
		courses[name].live(plain)
		took := plain.clock.Since(plain.began)
		for kind, lost := range cases {
			t.Run(name+", without events of "+kind, func(t *testing.T) {
				w := c.world(t, courses[name].change)
				w.restAs = deaf(w, lost...).rest
				courses[name].live(w)
				for range 60 {
					w.step()
				}
				if late := w.clock.Since(w.began) - time.Minute - took; late > mostDelay {
					t.Errorf("it took %s longer than with all events, want at most %s", late, mostDelay)
				}
				if e := w.experiment(); e != nil && !finished(e.Status.Phase) {
					t.Errorf("phase %s: %s", e.Status.Phase, e.Status.Message)
				}
				if left := slices.DeleteFunc(w.objects(), func(o string) bool { return o == "Workflow quickstart" }); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			})
		}
	}
}

func TestRoomThatNobodyTellsOfIsFound(t *testing.T) {
	for name, kind := range map[string]string{"of a quota": "ResourceQuota", "of a waveform": "Waveform"} {
		t.Run(name, func(t *testing.T) {
			w := (&cluster{}).world(t, nil)
			w.restAs = deaf(w, kind).rest
			quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team", Namespace: w.key.Namespace}}
			quota.Status.Hard = corev1.ResourceList{corev1.ResourcePods: quantity("0")}
			if kind == "ResourceQuota" {
				w.must(w.api.Create(t.Context(), quota))
			} else {
				w.must(w.api.Delete(t.Context(), ethernet()))
			}
			for range 30 {
				w.step()
			}
			if e := w.experiment(); e.Status.Phase != v1alpha1.PhaseQueued {
				t.Fatalf("phase %s before there is room", e.Status.Phase)
			}
			if kind == "ResourceQuota" {
				w.must(w.api.Delete(t.Context(), quota))
			} else {
				w.must(w.api.Create(t.Context(), ethernet()))
			}
			w.untilPhase(v1alpha1.PhaseSucceeded)
		})
	}
}
