package experiment

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestExperimentsWaitForChangesOfHostsButNotForHeartbeats(t *testing.T) {
	before := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		want   bool
	}{
		"a heartbeat": {func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.Now() }, false},
		"less room":   {func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("1") }, true},
		"not ready":   {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, true},
		"cordoned":    {func(n *corev1.Node) { n.Spec.Unschedulable = true }, true},
		"tainted":     {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Effect: corev1.TaintEffectNoSchedule}} }, true},
		"kept free":   {func(n *corev1.Node) { n.Labels[v1alpha1.LabelTakesExperiments] = v1alpha1.NoExperiments }, true},
	} {
		after := before.DeepCopy()
		c.change(after)
		for _, e := range []event.UpdateEvent{{ObjectOld: before, ObjectNew: after}, {ObjectOld: after, ObjectNew: before}} {
			if got := capacityChanges().Update(e); got != c.want {
				t.Errorf("%s: counted anew: %v, want %v", name, got, c.want)
			}
		}
	}
}
