package campaign

import (
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestOnARealAPIServerAPointThatBreaksARuleIsNamedAndAGoodCampaignRuns(t *testing.T) {
	log.SetLogger(logr.Discard())
	api, err := client.NewWithWatch(testkube.Start(t), client.Options{Scheme: testkube.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	w := worldOn(t, api)
	bad := tiny()
	bad.Generation = 0
	bad.Spec.Matrix.Axes[1].Values, bad.Spec.Matrix.Exclude = values("500ms", "never"), nil
	w.must(w.api.Create(t.Context(), bad))
	w.reconcile()
	accepted := meta.FindStatusCondition(w.campaign().Status.Conditions, v1alpha1.ConditionAccepted)
	if accepted == nil || accepted.Status != metav1.ConditionFalse || !strings.HasPrefix(accepted.Message, "point 1ms-never (and 1 more): spec.apps") {
		t.Errorf("%+v; want the point and the field named", accepted)
	}
	if n := len(w.experiments()); n != 0 {
		t.Errorf("%d experiments were made", n)
	}
	good := w.campaign()
	good.Spec.Matrix = tiny().Spec.Matrix
	w.must(w.api.Update(t.Context(), good))
	w.untilOver()
	w.wantMade("tiny-1ms-1s-1", "tiny-1ms-500ms-1", "tiny-50ms-500ms-1")
	if c := w.campaign(); c.Status.Phase != v1alpha1.CampaignSucceeded || c.Status.ObservedGeneration != c.Generation || c.Status.Counts.Summary != "3/3" {
		t.Errorf("%+v", c.Status)
	}
	settled := w.campaign().ResourceVersion
	for range 3 {
		w.reconcile()
	}
	if got := w.campaign().ResourceVersion; got != settled {
		t.Errorf("a campaign that is over was written: %s, was %s", got, settled)
	}
}
