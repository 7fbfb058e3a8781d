package render

import (
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Budget keeps the nodes of a run from being evicted, as by kubectl drain: a run cannot go on elsewhere.
func Budget(e *v1alpha1.Experiment, nodes int) *policyv1.PodDisruptionBudget {
	b := budget(ownedMeta(e, fmt.Sprintf("%s-nodes-%s", e.Name, e.UID), labels(e)), nodes)
	// In the platform's namespace EMANE's pods have the experiment's labels too.
	b.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: v1alpha1.LabelNode, Operator: metav1.LabelSelectorOpExists}}
	return b
}

// EMANEBudget keeps a network's pods of EMANE from being evicted.
func EMANEBudget(network *v1alpha1.RadioNetwork, pods int) *policyv1.PodDisruptionBudget {
	return budget(emaneMeta(network, network.Name), pods)
}

// budget is for the pods of an experiment, or of its network, in the namespace. Kubernetes takes no maxUnavailable for pods whose
// owner has no scale.
func budget(meta metav1.ObjectMeta, pods int) *policyv1.PodDisruptionBudget {
	of := map[string]string{v1alpha1.LabelExperimentUID: meta.Labels[v1alpha1.LabelExperimentUID]}
	if network, found := meta.Labels[v1alpha1.LabelNetwork]; found {
		of[v1alpha1.LabelNetwork] = network
	}
	return &policyv1.PodDisruptionBudget{
		TypeMeta: metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget"}, ObjectMeta: meta,
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt(pods)), Selector: &metav1.LabelSelector{MatchLabels: of}},
	}
}
