package validate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/render"
	"vignette.dev/vignette/operators/experiment/timeline"
	"vignette.dev/vignette/operators/experiment/topology"
)

// unaccepted warns of what the API server lets pass, as rules over all pairs of nodes would exceed its cost
// limit, and what the operator then does not accept, such as a broker that a client has no network in common with.
func (d *document) unaccepted() (findings []Finding) {
	var e v1alpha1.Experiment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.object, &e); err != nil {
		return []Finding{d.finding("", err.Error())}
	}
	for _, problem := range problems(&e) {
		f := d.finding(problem.Field, fmt.Sprintf("%s: the API server lets this pass, but the experiment would wait with %s=False",
			problem.ErrorBody(), v1alpha1.ConditionAccepted))
		f.Warning = true
		findings = append(findings, f)
	}
	return findings
}

// problems that the operator finds when it expands an experiment.
func problems(e *v1alpha1.Experiment) field.ErrorList {
	t, errs := topology.Expand(&e.Spec)
	errs = append(errs, render.Check(&e.Spec)...)
	if len(errs) > 0 {
		return errs
	}
	_, timelineErrs := timeline.Compile(&e.Spec, t)
	errs = append(t.CheckReferences(&e.Spec), timelineErrs...)
	if errs = append(errs, render.CheckRadio(&e.Spec, t)...); len(errs) > 0 {
		return errs
	}
	return render.CheckSize(render.Pods(render.Input{Experiment: e, Topology: t}), &e.Spec)
}
