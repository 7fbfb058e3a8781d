package render

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelabels "k8s.io/apimachinery/pkg/labels"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// One more would let a node be evicted, as each budget counts its pods.
func TestABudgetCountsNoPodsOfAnother(t *testing.T) {
	e := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Name: "e1", Namespace: "vignette-system", UID: "1234"}}
	network := emaneNetwork()
	network.Labels = labels(e, v1alpha1.LabelNetwork, "vhf")
	pod, _, err := EMANEPod(network, "host-a", network.Spec.Members, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	node := labels(e, v1alpha1.LabelNode, "hq", v1alpha1.LabelGroup, "hq")
	nodes, err := metav1.LabelSelectorAsSelector(Budget(e, 1).Spec.Selector)
	if err != nil || !nodes.Matches(kubelabels.Set(node)) || nodes.Matches(kubelabels.Set(pod.Labels)) {
		t.Errorf("that of nodes selects %s: %v; want nodes alone", nodes, err)
	}
	carriers, err := metav1.LabelSelectorAsSelector(EMANEBudget(network, 1).Spec.Selector)
	if err != nil || carriers.Matches(kubelabels.Set(node)) || !carriers.Matches(kubelabels.Set(pod.Labels)) {
		t.Errorf("that of EMANE selects %s: %v; want its pods alone", carriers, err)
	}
}
