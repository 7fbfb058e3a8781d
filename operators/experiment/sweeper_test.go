package experiment

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/google/go-cmp/cmp"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestRadioNetworksWithoutTheirExperimentAreSweptAndNoOthers(t *testing.T) {
	w := newWorld(t)
	w.untilPhase(v1alpha1.PhaseRunning)
	for name, uid := range map[string]types.UID{"of-a-namesake": "other", "of-nobody": "gone"} {
		orphan := &v1alpha1.RadioNetwork{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: platform}}
		orphan.Spec.Experiment = v1alpha1.ExperimentReference{Namespace: w.key.Namespace, Name: w.key.Name, UID: uid}
		if name == "of-nobody" {
			orphan.Spec.Experiment.Name = "nobody"
		}
		w.must(w.api.Create(t.Context(), orphan))
	}
	before := w.objects()
	w.must((&Sweeper{Client: w.api, Live: w.api, Namespace: platform}).Sweep(t.Context()))
	var left []string
	for _, object := range before {
		if object != "RadioNetwork of-a-namesake" && object != "RadioNetwork of-nobody" {
			left = append(left, object)
		}
	}
	if diff := cmp.Diff(left, w.objects()); diff != "" || len(before) != len(left)+2 {
		t.Error(diff)
	}
}
