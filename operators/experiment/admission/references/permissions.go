package references

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

// checkSecretsAndClaims finds Secrets and claims that do not exist or that experiments must not use. An app can read them,
// so otherwise everybody who may run experiments could read any Secret of the namespace.
func (r *Resolver) checkSecretsAndClaims(ctx context.Context, s *scope.Scope) error {
	checked := map[string]bool{}
	for _, secret := range render.SecretReferences(s.RenderInput()) {
		if checked[secret.Name] {
			continue
		}
		checked[secret.Name] = true
		if err := r.checkAllowedByLabel(ctx, s, "Secret", secret, scope.ReasonSecretNotFound, scope.ReasonSecretNotAllowed); err != nil {
			return err
		}
	}
	for _, claim := range render.ClaimReferences(s.RenderInput()) {
		if err := r.checkAllowedByLabel(ctx, s, "PersistentVolumeClaim", claim, scope.ReasonDiskNotFound, scope.ReasonDiskNotAllowed); err != nil {
			return err
		}
	}
	return nil
}

// checkAllowedByLabel checks the label that allows a use in experiments. It reads only metadata, never a Secret's content.
func (r *Resolver) checkAllowedByLabel(ctx context.Context, s *scope.Scope, kind string, of render.Reference, notFound, notAllowed string) error {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: s.Experiment.Namespace, Name: of.Name}, object)
	switch {
	case apierrors.IsNotFound(err):
		s.AddFinding(notFound, field.NotFound(of.Path, of.Name))
	case apierrors.IsForbidden(err):
		s.AddFinding(notAllowed, field.Forbidden(of.Path, fmt.Sprintf("the platform is not allowed to read %s %s", kind, of.Name)))
	case err != nil:
		return err
	case object.Labels[v1alpha1.LabelForExperiments] != v1alpha1.ForExperiments:
		s.AddFinding(notAllowed, field.Forbidden(of.Path, fmt.Sprintf("%s %s does not have the label %s=%s, by which an administrator lets experiments use it",
			kind, of.Name, v1alpha1.LabelForExperiments, v1alpha1.ForExperiments)))
	}
	return nil
}

// checkOpenManagement finds nodes with an open cluster interface in a namespace that does not allow them. Such nodes can
// reach whatever pods of the cluster can.
func (r *Resolver) checkOpenManagement(ctx context.Context, s *scope.Scope) error {
	i := slices.IndexFunc(s.Experiment.Spec.Nodes, func(n v1alpha1.Node) bool { return n.OpensManagement() })
	if i < 0 {
		return nil
	}
	var namespace corev1.Namespace
	if err := r.Client.Get(ctx, types.NamespacedName{Name: s.Experiment.Namespace}, &namespace); err != nil {
		return err
	}
	if namespace.Labels[v1alpha1.LabelManagementNetwork] == string(v1alpha1.ManagementOpen) {
		return nil
	}
	path, why := field.NewPath("spec", "nodes").Index(i).Child("managementNetwork"), ""
	if len(s.Experiment.Spec.Nodes[i].Networks) == 0 {
		path, why = field.NewPath("spec", "nodes").Index(i).Child("networks"), "a node without a network has an open cluster interface: "
	}
	s.AddFinding(scope.ReasonOpenNotAllowed, field.Forbidden(path, fmt.Sprintf("%snamespace %s does not have the label %s=%s, by which an administrator allows that",
		why, s.Experiment.Namespace, v1alpha1.LabelManagementNetwork, v1alpha1.ManagementOpen)))
	return nil
}
