package validate

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/checks"
	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/scenario/compile"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// unaccepted returns problems that the API server accepts, as its rules cannot see them, and the operator or a radio then refuses, such as a
// broken schedule. Objects that neither these files nor the chart have are not judged.
func (d *document) unaccepted(known surroundings) (findings []Finding) {
	switch d.kind {
	case "Experiment":
		return d.unacceptedExperiment(known)
	case "Capture":
		return alone(d, func(c *v1alpha1.Capture) field.ErrorList { return render.CheckCaptureAlone(&c.Spec) }, "nothing would be captured")
	case "Waveform":
		return alone(d, func(w *v1alpha1.Waveform) field.ErrorList { return render.CheckWaveform(&w.Spec) }, "no experiment could use the waveform")
	case "LiveChange":
		return alone(d, func(c *v1alpha1.LiveChange) field.ErrorList { return render.CheckLiveChange(&c.Spec) }, "nothing would change")
	case "NodeTemplate":
		return alone(d, func(n *v1alpha1.NodeTemplate) field.ErrorList { return render.CheckNodeTemplate(&n.Spec) }, "no node could use the template")
	case "Scenario":
		return append(alone(d, checkScenario, "the scenario would not be compiled"), known.scenarios[d.name].findings...)
	}
	return nil
}

// alone checks what depends on no other object.
func alone[T any](d *document, check func(*T) field.ErrorList, consequence string) []Finding {
	object := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.object, object); err != nil {
		return []Finding{d.finding("", err.Error())}
	}
	return d.refuse(check(object), consequence)
}

func checkScenario(s *v1alpha1.Scenario) field.ErrorList {
	if err := compile.Check(&s.Spec); err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec"), "", err.Error())}
	}
	return nil
}

func (d *document) unacceptedExperiment(known surroundings) []Finding {
	var e v1alpha1.Experiment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.object, &e); err != nil {
		return []Finding{d.finding("", err.Error())}
	}
	scenario := known.scenarioOf(&e.Spec)
	found := problems(&e, known, scenario)
	if len(found) == 0 {
		return d.doubts(&e, known, scenario)
	}
	own := checks.Alone(&e)
	has := func(list field.ErrorList, e *field.Error) bool {
		return slices.ContainsFunc(list, func(o *field.Error) bool { return o.Error() == e.Error() })
	}
	byOthers := slices.DeleteFunc(found, func(e *field.Error) bool { return has(own, e) })
	findings := d.refuse(byOthers, "the experiment would wait with "+v1alpha1.ConditionAccepted+"=False until it is mended")
	return append(findings, d.refuse(own, "the operator would not accept the experiment")...)
}

// doubts are about accepted settings that the author hardly wants.
func (d *document) doubts(e *v1alpha1.Experiment, known surroundings, scenario *render.Scenario) (findings []Finding) {
	t, _ := topology.Expand(&e.Spec) // it has no errors
	for _, doubt := range render.SpecWarnings(render.Input{Experiment: e, Topology: t, Scripts: known.scripts}, render.WaveformsOf(&e.Spec, known.waveforms), scenario) {
		findings = append(findings, d.warning(doubt.Field, doubt.Detail))
	}
	return findings
}

func (d *document) refuse(problems field.ErrorList, consequence string) (findings []Finding) {
	for _, problem := range problems {
		findings = append(findings, d.finding(problem.Field, butTaken(describe(problem), consequence)))
	}
	return findings
}

// butTaken is what is wrong with an object that the cluster takes, and what follows. It is no part of the remedy before it.
func butTaken(problem, consequence string) string {
	return fmt.Sprintf("%s (the cluster takes this, but %s)", problem, consequence)
}

// problems returns those that the operator finds when it expands an experiment.
func problems(e *v1alpha1.Experiment, known surroundings, scenario *render.Scenario) field.ErrorList {
	input := render.Input{Experiment: e, Scripts: known.scripts, FileBytes: known.fileBytes, Scenario: scenario, Waveforms: render.WaveformsOf(&e.Spec, known.waveforms)}
	return checks.All(&checks.Subject{Input: input})
}

// scenarioOf returns an experiment's scenario; nil if it has none, or it is unknown.
func (known surroundings) scenarioOf(spec *v1alpha1.ExperimentSpec) *render.Scenario {
	if spec.Scenario == nil {
		return nil
	}
	return known.scenarios[spec.Scenario.Ref].with(spec, render.WaveformsOf(spec, known.waveforms))
}
