package campaign

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/reference"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const paper = "run,group,metric,value,note\n1ms-500ms,radio,medianSeconds,0.002,made up\n1ms-500ms,radio,deliveredPercent,99.5,\n50ms-500ms,radio,medianSeconds,0.06,\n"

func configMap(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "paper"}, Data: map[string]string{"figures.csv": text}}
}

// withReference is a campaign that waits for its reference figures.
func withReference() *v1alpha1.Campaign {
	c := tiny()
	c.Spec.Reference = &v1alpha1.ReferenceFigures{Ref: "paper"}
	return c
}

func (w *world) accepted() *metav1.Condition {
	return meta.FindStatusCondition(w.campaign().Status.Conditions, v1alpha1.ConditionAccepted)
}

func TestRunsHaveTheReferenceFiguresOfTheirPoint(t *testing.T) {
	w := newWorld(t)
	w.must(w.api.Create(t.Context(), configMap(paper)))
	w.must(w.api.Create(t.Context(), withReference()))
	w.untilOver()
	want := map[string]string{
		"tiny-1ms-500ms-1":  `{"name":"paper","figures":[{"group":"radio","metric":"medianSeconds","value":0.002,"note":"made up"},{"group":"radio","metric":"deliveredPercent","value":99.5}]}`,
		"tiny-50ms-500ms-1": `{"name":"paper","figures":[{"group":"radio","metric":"medianSeconds","value":0.06}]}`,
		"tiny-1ms-1s-1":     "",
	}
	for _, e := range w.experiments() {
		if got := e.Annotations[v1alpha1.AnnotationReference]; got != want[e.Name] {
			t.Errorf("%s has %s; want %s", e.Name, got, want[e.Name])
		}
	}
	w.must(w.api.Delete(t.Context(), configMap("")))
	w.reconcile()
	if c := w.campaign(); c.Status.Phase != v1alpha1.CampaignSucceeded || w.accepted().Status != metav1.ConditionTrue {
		t.Errorf("a campaign that was over became %+v", c.Status)
	}
}

func TestACampaignWhoseReferenceFiguresCannotBeReadCreatesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		object *corev1.ConfigMap
		want   string
	}{
		"no ConfigMap":      {nil, "spec.reference.ref: there is no ConfigMap paper in namespace default: create it, or correct the name"},
		"an unknown point":  {configMap("run,metric,value\n1ms-5ms,sent,3\n"), `spec.reference: ConfigMap paper, key figures.csv, row 2, column run: "1ms-5ms" is unknown: did you mean 1ms-500ms? want one of 1ms-500ms, 1ms-1s, 50ms-500ms`},
		"an unknown metric": {configMap("run,metric,value\n1ms-1s,delay,3\n"), `spec.reference: ConfigMap paper, key figures.csv, row 2, column metric: "delay" is unknown: want one of triggered, sent`},
		"a large file":      {configMap(strings.Repeat("x", reference.MaxBytes+1)), "spec.reference: ConfigMap paper, key figures.csv has 32769 bytes: want 32768 at most"},
		"no file":           {&corev1.ConfigMap{ObjectMeta: configMap("").ObjectMeta}, "spec.reference: ConfigMap paper is empty: want a key with a CSV file"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.object != nil {
				w.must(w.api.Create(t.Context(), c.object))
			}
			w.must(w.api.Create(t.Context(), withReference()))
			for range 3 {
				w.reconcile()
			}
			accepted := w.accepted()
			if accepted == nil || accepted.Status != metav1.ConditionFalse || accepted.Reason != ReasonInvalidReference || !strings.HasPrefix(accepted.Message, c.want) {
				t.Errorf("%+v; want %s", accepted, c.want)
			}
			if n := len(w.experiments()); n != 0 {
				t.Errorf("%d experiments were created", n)
			}
		})
	}
}

func TestACampaignStartsOnceItsReferenceFiguresAreThere(t *testing.T) {
	w := newWorld(t)
	w.must(w.api.Create(t.Context(), withReference()))
	w.reconcile()
	w.must(w.api.Create(t.Context(), configMap(paper)))
	if requests := w.r.campaignsReferringTo(t.Context(), configMap("")); len(requests) != 1 || requests[0].NamespacedName != w.key {
		t.Errorf("a new ConfigMap asks for %v; want the campaign", requests)
	}
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}}
	if requests := w.r.campaignsReferringTo(t.Context(), other); len(requests) != 0 {
		t.Errorf("another ConfigMap asks for %v", requests)
	}
	w.untilOver()
	w.wantMade("paper", "tiny-1ms-1s-1", "tiny-1ms-500ms-1", "tiny-50ms-500ms-1")
}

func TestAnEditThatIsAcceptedLateMakesTheRunsThatWereSkipped(t *testing.T) {
	w := newWorld(t)
	c := tiny()
	c.Spec.Parallelism, c.Spec.StopWhen.Failures = 1, ptr.To(int32(1))
	w.must(w.api.Create(t.Context(), c))
	for len(w.experiments()) < 1 {
		w.reconcile()
	}
	e := w.experiments()[0]
	e.Status.Phase = v1alpha1.PhaseFailed
	w.must(w.api.Status().Update(t.Context(), &e))
	w.untilOver()
	w.edit(func(c *v1alpha1.Campaign) {
		c.Spec.StopWhen, c.Spec.Reference = v1alpha1.StopConditions{}, withReference().Spec.Reference
	})
	for range 3 {
		w.reconcile()
	}
	if n := len(w.experiments()); n != 1 || w.accepted().Status != metav1.ConditionFalse {
		t.Errorf("%d experiments, %+v; want that it waits for its reference figures", n, w.accepted())
	}
	w.must(w.api.Create(t.Context(), configMap(paper)))
	w.untilOver()
	w.wantMade("paper", "tiny-1ms-1s-1", "tiny-1ms-500ms-1", "tiny-50ms-500ms-1")
}

func TestACampaignThatLosesItsReferenceFiguresStartsNoFurtherRun(t *testing.T) {
	w := newWorld(t)
	w.must(w.api.Create(t.Context(), configMap(paper)))
	w.must(w.api.Create(t.Context(), withReference()))
	for len(w.experiments()) < 2 {
		w.reconcile()
	}
	w.must(w.api.Delete(t.Context(), configMap("")))
	for range 20 {
		w.reconcile()
		w.advanceExperiments()
	}
	if n := len(w.experiments()); n != 2 || w.accepted().Status != metav1.ConditionFalse {
		t.Errorf("%d experiments, %+v; want the two that were under way", n, w.accepted())
	}
	w.must(w.api.Create(t.Context(), configMap(paper)))
	w.untilOver()
	var list v1alpha1.ExperimentList
	w.must(w.api.List(t.Context(), &list, client.InNamespace("default")))
	if len(list.Items) != 3 {
		t.Errorf("%d experiments; want three", len(list.Items))
	}
}
