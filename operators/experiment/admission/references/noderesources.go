package references

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

// checkNodeResources finds out by a trial whether the cluster knows resources of pods as a whole. An API server that does not
// leaves the field out of the pod and says nothing.
func (r *Resolver) checkNodeResources(ctx context.Context, s *scope.Scope) error {
	nodes := s.Experiment.Spec.Nodes
	limited := slices.IndexFunc(nodes, func(n v1alpha1.Node) bool { return n.Resources != nil })
	if limited < 0 || !s.Valid || s.Phase() == v1alpha1.PhaseProvisioning {
		return nil
	}
	pods := render.Pods(s.RenderInput())
	at := slices.IndexFunc(pods, func(p *corev1.Pod) bool { return p.Spec.Resources != nil })
	if at < 0 {
		return nil
	}
	trial := pods[at]
	trial.Name, trial.GenerateName = "", "vignette-trial-"
	err := r.Client.Create(ctx, trial, client.DryRunAll)
	switch {
	case apierrors.ReasonForError(err) != metav1.StatusReasonUnknown:
		return nil // such as a quota: another stage says so, and waits
	case err != nil:
		return err
	}
	if trial.Spec.Resources == nil {
		s.AddFinding(scope.ReasonNodeResources, field.Forbidden(field.NewPath("spec", "nodes").Index(limited).Child("resources"),
			"the cluster does not limit pods as a whole: want Kubernetes 1.34 or later with its feature PodLevelResources, or resources of the apps instead"))
	}
	return nil
}
