package experiment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/admission/references"
	"vignette.dev/vignette/operators/experiment/objects"
	"vignette.dev/vignette/operators/experiment/scope"
)

func TestACachedPodHasOnlyWhatTheOperatorReads(t *testing.T) {
	e := readExperiment(t)
	s := &scope.Scope{Experiment: e, Options: testOptions().Render}
	if _, err := (&references.Resolver{}).Compile(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	pod := render.Pods(s.RenderInput())[0]
	pod.Spec.NodeName, pod.Status.Phase = "n1", corev1.PodRunning
	kept, err := slimPod(pod.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	slim := kept.(*corev1.Pod)
	want := corev1.PodSpec{NodeName: "n1", SchedulingGates: pod.Spec.SchedulingGates}
	for _, c := range pod.Spec.Containers {
		want.Containers = append(want.Containers, corev1.Container{Name: c.Name, Image: c.Image, Resources: c.Resources, RestartPolicy: c.RestartPolicy})
	}
	slim.Spec.InitContainers = nil
	if diff := cmp.Diff(want, slim.Spec); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]any{pod.Labels, pod.OwnerReferences, pod.Status}, []any{slim.Labels, slim.OwnerReferences, slim.Status}); diff != "" {
		t.Error(diff)
	}
}

func TestPartsOfAnExperimentAreFoundByIndexInCachesAndByLabelElsewhere(t *testing.T) {
	w := newWorld(t)
	e := w.untilPhase(v1alpha1.PhaseRunning)
	other := e.DeepCopy()
	other.UID = "another"
	for name, reader := range map[string]client.Reader{"caches": w.reconciler.Client, "API server": w.reconciler.parts().objects.Uncached().Client} {
		var own, others corev1.PodList
		w.must(reader.List(t.Context(), &own, objects.SelectOwnedBy(e, e.Namespace)...))
		w.must(reader.List(t.Context(), &others, objects.SelectOwnedBy(other, e.Namespace)...))
		if len(own.Items) != len(w.pods()) || len(others.Items) != 0 {
			t.Errorf("%s: %d pods of %d, and %d of an experiment that has none", name, len(own.Items), len(w.pods()), len(others.Items))
		}
	}
}
