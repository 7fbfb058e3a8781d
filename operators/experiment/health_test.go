package experiment

import (
	"cmp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
	"vignette.dev/vignette/operators/kstatus"
)

// healthOf is an object's health without the message.
func (w *world) healthOf(object client.Object) string {
	w.t.Helper()
	w.must(w.api.Get(w.t.Context(), client.ObjectKeyFromObject(object), object))
	health, _, _ := strings.Cut(deployersHealth(w.t, object), ":")
	return health
}

// healthHistory is the sequence of an experiment's phases with their health by kstatus and by Argo CD's check.
func (w *world) healthHistory(steps int, do ...func(*v1alpha1.Experiment)) (seen []string) {
	w.t.Helper()
	for range steps {
		e := w.experiment()
		line := cmp.Or(string(e.Status.Phase), "not seen yet") + ": " + w.healthOf(e)
		if len(seen) == 0 || seen[len(seen)-1] != line {
			seen = append(seen, line)
		}
		for _, act := range do {
			act(e)
		}
		if scope.Finished(e.Status.Phase) {
			break
		}
		w.step()
	}
	return seen
}

func TestDeployersSeeAnExperimentsHealth(t *testing.T) {
	var text strings.Builder
	for _, c := range []struct {
		name  string
		given func(*v1alpha1.Experiment)
		world func(*world)
		do    func(*world, *v1alpha1.Experiment)
	}{
		{name: "succeeds"},
		{name: "fails in its analysis", world: func(w *world) { w.analysisFails = true }},
		{name: "names a waveform that is not there", given: func(e *v1alpha1.Experiment) { e.Spec.Networks[0].Waveform = "none" }},
		{name: "is larger than the quota", world: func(w *world) {
			quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team", Namespace: w.key.Namespace}}
			quota.Status.Hard = corev1.ResourceList{corev1.ResourcePods: quantity("3")}
			quota.Status.Used = corev1.ResourceList{corev1.ResourcePods: quantity("0")}
			w.must(w.api.Create(t.Context(), quota))
		}},
		{name: "is a live cluster, stopped after 20 s", given: liveCluster, do: func(w *world, e *v1alpha1.Experiment) {
			if e.Status.T0 != nil && w.clock.Since(e.Status.T0.Time) > 20*time.Second && !e.Spec.Stop {
				w.stop()
			}
		}},
	} {
		w := newWorld(t, func(e *v1alpha1.Experiment) {
			e.Generation, e.Status.ObservedGeneration = 1, -1 // as the API server sets them for a new one
			if c.given != nil {
				c.given(e)
			}
		})
		if c.world != nil {
			c.world(w)
		}
		seen := w.healthHistory(200, func(e *v1alpha1.Experiment) {
			if c.do != nil {
				c.do(w, e)
			}
		})
		text.WriteString("An experiment that " + c.name + "\n  " + strings.Join(seen, "\n  ") + "\n")
	}
	golden.Check(t, "health.txt", text.String())
}

func TestDeployersSeeTheHealthOfChangesAndCaptures(t *testing.T) {
	w := newWorld(t)
	w.untilPhase(v1alpha1.PhaseProvisioning)
	change, capture := w.change("early", lossOf("lan", "1%")), w.capture("early", "lan")
	nonsense := w.change("nonsense", lossOf("uhf", "1%"))
	want := func(when string, expected map[client.Object]string) {
		t.Helper()
		for object, health := range expected {
			if got := w.healthOf(object); got != health {
				t.Errorf("%s, %s %T is %s, want %s", when, object.GetName(), object, got, health)
			}
		}
	}
	w.step()
	want("before T0", map[client.Object]string{change: "InProgress, Progressing", capture: "InProgress, Progressing", nonsense: "Failed, Degraded"})
	w.untilAfterT0(10 * time.Second)
	want("in the run", map[client.Object]string{change: "Current, Healthy", capture: "Current, Healthy"})
	w.untilPhase(v1alpha1.PhaseSucceeded)
	w.settle()
	late, tooLate := w.change("late", lossOf("wan", "0%")), w.capture("late", "wan")
	w.step()
	want("after it", map[client.Object]string{
		change: "Current, Healthy", capture: "Current, Healthy", late: "Failed, Degraded", tooLate: "Failed, Degraded",
	})
}

func TestDeployersSeeARefusedChangeOfASuspendedCampaign(t *testing.T) {
	for state, want := range map[kstatus.State]string{
		kstatus.Current: "Current, Suspended: why", kstatus.InProgress: "InProgress, Suspended: why", kstatus.Failed: "Failed, Degraded: why",
	} {
		c := &v1alpha1.Campaign{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		c.Status.ObservedGeneration, c.Status.Phase, c.Status.Message = 2, v1alpha1.CampaignSuspended, "why"
		kstatus.Set(&c.Status.Conditions, state, "Suspended", "why", 2, time.Now())
		if got := deployersHealth(t, c); got != want {
			t.Errorf("%s is %s; want %s", state, got, want)
		}
	}
}
