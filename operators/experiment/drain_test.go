package experiment

import (
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mayEvict reports whether the budgets of a namespace let one of its pods be evicted while all run. Of a pod with two the API server
// refuses evictions as an error, at which kubectl drain gives up.
func (w *world) mayEvict(namespace string) bool {
	w.t.Helper()
	var budgets policyv1.PodDisruptionBudgetList
	w.must(w.api.List(w.t.Context(), &budgets, client.InNamespace(namespace)))
	for _, pod := range w.podsIn(namespace) {
		kept := 0
		for _, budget := range budgets.Items {
			selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
			w.must(err)
			matched := 0
			for _, other := range w.podsIn(namespace) {
				if selector.Matches(labels.Set(other.Labels)) {
					matched++
				}
			}
			if selector.Matches(labels.Set(pod.Labels)) && budget.Spec.MinAvailable.IntValue() >= matched {
				kept++
			}
		}
		if kept != 1 {
			return true
		}
	}
	return false
}

func TestNoNodeOfARunAndNoEMANEOfItsNetworksIsEvictedUntilItIsOver(t *testing.T) {
	w := emaneWorld(t)
	w.untilAfterT0(5 * time.Second)
	for _, namespace := range []string{w.key.Namespace, platform} {
		if len(w.podsIn(namespace)) == 0 || w.mayEvict(namespace) {
			t.Errorf("kubectl drain may evict one of the %d pods in namespace %s", len(w.podsIn(namespace)), namespace)
		}
	}
	w.untilFinished()
	w.settle()
	for _, object := range w.objects() {
		if strings.HasPrefix(object, "PodDisruptionBudget "+w.key.Name) {
			t.Errorf("the run is over, and %s is left", object)
		}
	}
}
