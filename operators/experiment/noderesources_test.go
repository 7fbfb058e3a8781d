package experiment

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

// olderCluster leaves resources of pods as a whole out, as Kubernetes before 1.34 does.
type olderCluster struct{ client.Client }

func (c olderCluster) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if pod, ok := object.(*corev1.Pod); ok {
		pod.Spec.Resources = nil
	}
	return c.Client.Create(ctx, object, options...)
}

func TestResourcesOfANodeNeedAClusterThatHasThem(t *testing.T) {
	four := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	w := newWorld(t, briefly, func(e *v1alpha1.Experiment) { e.Spec.Nodes[0].Resources = &corev1.ResourceRequirements{Limits: four} })
	w.reconciler.Client = olderCluster{w.reconciler.Client}
	e := w.until("not accepted", notAccepted)
	c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionAccepted)
	if c.Reason != scope.ReasonNodeResources || !strings.Contains(c.Message, "spec.nodes[0].resources: Forbidden: the cluster does not limit pods as a whole: want Kubernetes 1.34") {
		t.Errorf("condition %+v", c)
	}
	if made := w.objects(); len(made) > 0 {
		t.Errorf("%v were made before", made)
	}
	w.restart() // of the newer Kubernetes
	w.untilPhase(v1alpha1.PhaseRunning)
	if got := w.pod("nor").Spec.Resources; got == nil || got.Limits.Cpu().String() != "4" {
		t.Errorf("the pod has resources %v; want a limit of 4 processors", got)
	}
}

func TestACPULimitThatNobodyAskedForIsNamedBeforeTheRun(t *testing.T) {
	w := newWorld(t)
	w.untilPhase(v1alpha1.PhaseProvisioning)
	w.until("pods", func(*v1alpha1.Experiment) bool { return len(w.pods()) > 0 })
	pod := w.pod("veh-1")
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: quantity("500m")} // as the API server does by a LimitRange
	w.must(w.api.Update(t.Context(), pod))
	w.untilPhase(v1alpha1.PhaseRunning)
	want := "app " + pod.Spec.Containers[0].Name + " on node veh-1, and maybe others, has a CPU limit of 500m by a LimitRange of namespace team-nor"
	named := 0
	for _, event := range w.recorded() {
		if strings.Contains(event, want) {
			named++
		}
	}
	if named != 1 {
		t.Errorf("%d events say %q; want one", named, want)
	}
}
