package references

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

// checkVMs finds why the cluster cannot run the experiment's virtual machines.
func (r *Resolver) checkVMs(ctx context.Context, s *scope.Scope) error {
	if !s.UsesVMs() {
		return nil
	}
	if err := r.resolveTemplates(ctx, s); err != nil || s.Phase() == v1alpha1.PhaseProvisioning {
		return err
	}
	kind := kubevirtv1.VirtualMachineInstanceGroupVersionKind
	_, err := r.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		s.AddFinding(scope.ReasonKubeVirtMissing, field.Invalid(field.NewPath("spec", "nodes").Index(firstVM(s.Experiment)).Child("runtime"), v1alpha1.RuntimeVM,
			"KubeVirt is not installed in this cluster: install it, or make the node a pod"))
		return nil
	}
	if err != nil {
		return err
	}
	for _, err := range render.CheckGuestImage(s.RenderInput()) {
		s.AddFinding(scope.ReasonGuestMissing, err)
	}
	return nil
}

// resolveTemplates finds the templates of virtual machines in the experiment's namespace, else in the platform's.
// Existing machines do not change.
func (r *Resolver) resolveTemplates(ctx context.Context, s *scope.Scope) error {
	s.Templates = map[string]v1alpha1.VirtualMachine{}
	for i, node := range s.Experiment.Spec.Nodes {
		if node.VM == nil || node.VM.Template == "" {
			continue
		}
		name := node.VM.Template
		if _, known := s.Templates[name]; known {
			continue
		}
		template, err := r.template(ctx, s.Experiment.Namespace, name)
		if apierrors.IsNotFound(err) {
			s.AddFinding(scope.ReasonTemplateNotFound, field.NotFound(field.NewPath("spec", "nodes").Index(i).Child("vm", "template"), name))
			continue
		}
		if err != nil {
			return err
		}
		s.Templates[name] = template.Spec.VM
	}
	return nil
}

func (r *Resolver) template(ctx context.Context, namespace, name string) (*v1alpha1.NodeTemplate, error) {
	var template v1alpha1.NodeTemplate
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &template)
	if apierrors.IsNotFound(err) {
		err = r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, &template)
	}
	return &template, err
}

// CachedTemplates returns the cached templates of the experiment's virtual machines, and a fingerprint of them.
func (r *Resolver) CachedTemplates(e *v1alpha1.Experiment) (known map[string]v1alpha1.VirtualMachine, fingerprint string) {
	for _, node := range e.Spec.Nodes {
		if node.VM == nil || node.VM.Template == "" {
			continue
		}
		template, err := r.template(context.Background(), e.Namespace, node.VM.Template)
		if err != nil {
			continue // the experiment is not accepted without it
		}
		if known == nil {
			known = map[string]v1alpha1.VirtualMachine{}
		}
		known[node.VM.Template] = template.Spec.VM
		fingerprint += fmt.Sprintf("%s %d ", template.UID, template.Generation)
	}
	return known, fingerprint
}

func firstVM(e *v1alpha1.Experiment) int {
	return slices.IndexFunc(e.Spec.Nodes, func(n v1alpha1.Node) bool { return n.Runtime == v1alpha1.RuntimeVM })
}
