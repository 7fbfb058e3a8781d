package experiment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/render"
)

func TestASpecIsCompiledOnceAndAgainIfItChanges(t *testing.T) {
	r := &Reconciler{Options: testOptions()}
	look := func(e *v1alpha1.Experiment) *scope {
		t.Helper()
		s := &scope{experiment: e.DeepCopy(), options: r.Options.Render}
		if _, err := r.compileSpec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	e := readExperiment(t)
	first := look(e)
	first.findings = append(first.findings, finding{"Odd", "of one look only"})
	again := look(e)
	if again.topology != first.topology || len(again.findings) > 0 {
		t.Errorf("a second reconciliation compiles again, or has the findings %v of the first", again.findings)
	}
	e.Spec.Nodes = e.Spec.Nodes[:1]
	if changed := look(e); len(changed.topology.Nodes) == len(first.topology.Nodes) || len(changed.findings) == 0 {
		t.Errorf("a spec without the nodes that others need has %d nodes and the findings %v", len(changed.topology.Nodes), changed.findings)
	}
	e.Status.Phase = v1alpha1.PhaseSucceeded
	look(e)
	if kept := r.specs.entries().Len(); kept != 0 {
		t.Errorf("%d specs of finished experiments are kept", kept)
	}
}

func TestACachedPodHasOnlyWhatTheOperatorReads(t *testing.T) {
	e := readExperiment(t)
	s := &scope{experiment: e, options: testOptions().Render}
	s.compileSpec()
	pod := render.Pods(s.renderInput())[0]
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
	for name, reader := range map[string]client.Reader{"caches": w.reconciler.Client, "API server": w.reconciler.uncached().Client} {
		var own, others corev1.PodList
		w.must(reader.List(t.Context(), &own, selectOwnedBy(e, e.Namespace)...))
		w.must(reader.List(t.Context(), &others, selectOwnedBy(other, e.Namespace)...))
		if len(own.Items) != len(w.pods()) || len(others.Items) != 0 {
			t.Errorf("%s: %d pods of %d, and %d of an experiment that has none", name, len(own.Items), len(w.pods()), len(others.Items))
		}
	}
}
