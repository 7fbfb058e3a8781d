package kueue

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
