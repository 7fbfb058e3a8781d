package kueue

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"vignette.dev/vignette/internal/core/queue"
	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/objects"
	"vignette.dev/vignette/operators/experiment/scope"
)

func TestAWorkloadHasEightPodSetsAtMostThatHoldAllNodes(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 12 {
		for range i + 1 {
			requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse([]string{"10m", "900m"}[i%2]), corev1.ResourceMemory: *resource.NewQuantity(int64(12-i)<<20, resource.BinarySI)}
			pods = append(pods, &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "i", Resources: corev1.ResourceRequirements{Requests: requests}}}}})
		}
	}
	sets, err := podSets(pods)
	if err != nil {
		t.Fatal(err)
	}
	count := int64(0)
	for _, set := range sets {
		count += set.(map[string]any)["count"].(int64)
	}
	last := sets[len(sets)-1].(map[string]any)
	if len(sets) != maxPodSets || count != int64(len(pods)) {
		t.Errorf("%d pod sets hold %d of %d pods", len(sets), count, len(pods))
	}
	containers, _, _ := unstructured.NestedSlice(last, "template", "spec", "containers")
	if cpu, _, _ := unstructured.NestedString(containers[0].(map[string]any), "resources", "requests", "cpu"); cpu != "900m" {
		t.Errorf("the last set asks for cpu %s for each pod, want that of the largest", cpu)
	}
}

func TestAnExperimentWhoseQueueNameWasRemovedLeavesKueue(t *testing.T) {
	kind := schema.GroupVersionKind{Group: workloadKind.Group, Version: "v1beta1", Kind: workloadKind.Kind}
	for reason, leaves := range map[string]bool{
		scope.ReasonWaitingForKueue: true, scope.ReasonKueueInactive: true, queue.ReasonQuotaRefused: true, scope.ReasonNotStarted: true,
		queue.ReasonAdmitted: false,
	} {
		t.Run(reason, func(t *testing.T) {
			e := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "e", UID: "u"}}
			e.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAdmitted, Status: metav1.ConditionFalse, Reason: reason}}
			workload := &unstructured.Unstructured{}
			workload.SetGroupVersionKind(kind)
			workload.SetNamespace(e.Namespace)
			workload.SetName(Name(e))
			workload.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(e, v1alpha1.GroupVersion.WithKind("Experiment"))})
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(kind, meta.RESTScopeNamespace)
			api := fake.NewClientBuilder().WithScheme(testkube.Scheme()).WithRESTMapper(mapper).WithObjects(workload).Build()
			w := &Workloads{Objects: &objects.Objects{Client: api, Live: api}}
			if err := w.Leave(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			err := api.Get(t.Context(), client.ObjectKeyFromObject(workload), workload)
			if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) != leaves {
				t.Errorf("its Workload: %v, want it deleted: %v", err, leaves)
			}
		})
	}
}
