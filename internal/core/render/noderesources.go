package render

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// limitToNode lowers the default memory limit of a container to that of its node, as Kubernetes refuses a higher one.
func limitToNode(resources *corev1.ResourceRequirements, node topology.Node, app v1alpha1.App) {
	if node.Resources == nil || app.Resources != nil && app.Resources.Limits.Memory().Sign() > 0 {
		return
	}
	limit, limited := node.Resources.Limits[corev1.ResourceMemory]
	if has, ok := resources.Limits[corev1.ResourceMemory]; limited && ok && has.Cmp(limit) > 0 {
		setMemory(&resources.Limits, limit)
	}
}

// checkNodeResources refuses what no pod as a whole may have.
func checkNodeResources(node v1alpha1.Node, path *field.Path) (errs field.ErrorList) {
	r := node.Resources
	switch {
	case r == nil:
		return nil
	case node.Runtime == v1alpha1.RuntimeVM:
		return field.ErrorList{field.Forbidden(path, "a virtual machine has vm.cores and vm.memory: leave out resources")}
	}
	for _, part := range partsOf(r) {
		for _, name := range slices.Sorted(maps.Keys(part.list)) {
			if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
				errs = append(errs, field.NotSupported(path.Child(part.key), name, []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}))
			}
		}
	}
	return append(errs, checkResources(r, path)...)
}

// CheckNodeResources finds nodes whose apps need more than the node as a whole may have.
func CheckNodeResources(pods []*corev1.Pod, spec *v1alpha1.ExperimentSpec, t *topology.Topology) (errs field.ErrorList) {
	for i, entry := range spec.Nodes {
		at := slices.IndexFunc(t.Nodes, func(n topology.Node) bool { return n.Template == entry.Name })
		if entry.Resources == nil || at < 0 {
			continue
		}
		path := field.NewPath("spec", "nodes").Index(i).Child("resources")
		for _, p := range pods {
			if p.Labels[v1alpha1.LabelNode] == t.Nodes[at].Name {
				errs = append(errs, checkWithinNode(p, entry.Resources, path)...)
			}
		}
	}
	return errs
}

// checkWithinNode compares the containers of a pod with the resources of its node.
func checkWithinNode(p *corev1.Pod, r *corev1.ResourceRequirements, path *field.Path) (errs field.ErrorList) {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		limit, limited := r.Limits[name]
		total := resource.Quantity{}
		for _, c := range p.Spec.Containers {
			if has, ok := c.Resources.Limits[name]; limited && ok && has.Cmp(limit) > 0 {
				errs = append(errs, field.Invalid(path.Child("limits", string(name)), limit.String(),
					fmt.Sprintf("app %s has a limit of %s: want a limit of the node that is no lower", c.Name, has.String())))
			}
			total.Add(c.Resources.Requests[name])
		}
		for _, part := range partsOf(r) {
			if most, ok := part.list[name]; ok && total.Cmp(most) > 0 {
				errs = append(errs, field.Invalid(path.Child(part.key, string(name)), most.String(),
					fmt.Sprintf("apps of the node request %s: want so much at least", total.String())))
			}
		}
	}
	return errs
}
