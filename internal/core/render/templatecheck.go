package render

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// CheckNodeTemplate finds the errors of a template that do not depend on its nodes.
func CheckNodeTemplate(spec *v1alpha1.NodeTemplateSpec) (errs field.ErrorList) {
	for _, agent := range []bool{false, true} {
		vm := spec.VM.DeepCopy()
		vm.Agent = &agent
		e := &v1alpha1.Experiment{Spec: v1alpha1.ExperimentSpec{Nodes: []v1alpha1.Node{{Name: "node", Runtime: v1alpha1.RuntimeVM, VM: vm}}}}
		t, _ := topology.Expand(&e.Spec)
		if errs = CheckVMs(Input{Experiment: e, Topology: t}); len(errs) == 0 {
			return nil
		}
	}
	for _, err := range errs {
		err.Field = strings.Replace(err.Field, "spec.nodes[0].vm", "spec.vm", 1)
	}
	return errs
}
