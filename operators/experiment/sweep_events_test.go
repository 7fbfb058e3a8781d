package experiment

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

// everyKind of which an event wakes the operator.
var everyKind = []string{"Experiment", "Pod", "Workflow", "NetworkAttachmentDefinition", "RadioNetwork", "LiveChange", "Capture", "Waveform", "ResourceQuota", "Node"}

// wakeups makes the operator reconcile only after an event, at a requested time, or after an error.
type wakeups struct {
	w *world
	// lostKinds are kinds whose events are lost.
	lostKinds []string
	// at is the requested time of the next reconciliation, zero for never. told means that an event came.
	at    time.Time
	woken bool
}

func withoutEvents(w *world, lost ...string) *wakeups {
	k := &wakeups{w: w, lostKinds: lost, woken: true}
	w.mirror.changed = func(before, after revision) {
		w.watchOver(before, after)
		k.woken = k.woken || !slices.Contains(lost, after.kind)
	}
	return k
}

// rest lets the operator reconcile as often as it is woken at this time.
func (k *wakeups) rest() {
	k.w.t.Helper()
	for range 50 {
		if now := k.w.clock.Now(); !k.woken && (k.at.IsZero() || k.at.After(now)) {
			return
		}
		k.woken, k.at = false, time.Time{}
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
	k.w.t.Fatal("the operator does not stop writing")
}

// maxDelay of a run by lost events is that of a few regular reconciliations.
const maxDelay = 2 * time.Minute

func TestLostEventsCostABoundedTimeOnly(t *testing.T) {
	c := &cluster{}
	cases := map[string][]string{"all": everyKind}
	for _, kind := range everyKind {
		cases[kind] = []string{kind}
	}
	for _, name := range lifecycleNames() {
		plain := c.world(t, lifecycles[name].change)
		lifecycles[name].play(plain)
		took := plain.clock.Since(plain.began)
		for kind, lost := range cases {
			t.Run(name+", without events of "+kind, func(t *testing.T) {
				w := c.world(t, lifecycles[name].change)
				w.restAs = withoutEvents(w, lost...).rest
				lifecycles[name].play(w)
				for range 60 {
					w.step()
				}
				if late := w.clock.Since(w.began) - time.Minute - took; late > maxDelay {
					t.Errorf("it took %s longer than with all events, want at most %s", late, maxDelay)
				}
				if e := w.experiment(); e != nil && !scope.Finished(e.Status.Phase) {
					t.Errorf("phase %s: %s", e.Status.Phase, e.Status.Message)
				}
				if left := slices.DeleteFunc(w.objects(), func(o string) bool { return o == "Workflow quickstart" }); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			})
		}
	}
}

func TestRoomIsFoundWithoutAnEvent(t *testing.T) {
	for name, kind := range map[string]string{"of a quota": "ResourceQuota", "of a waveform": "Waveform"} {
		t.Run(name, func(t *testing.T) {
			w := (&cluster{}).world(t, nil)
			w.restAs = withoutEvents(w, kind).rest
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
