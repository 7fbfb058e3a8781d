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
// limit or as another object decides, and what the operator then does not accept, such as a broker that a
// client has no network in common with.
func (d *document) unaccepted(known surroundings) (findings []Finding) {
	switch d.kind {
	case "Experiment":
		var e v1alpha1.Experiment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.object, &e); err != nil {
			return []Finding{d.finding("", err.Error())}
		}
		found := problems(&e, known)
		if len(found) == 0 {
			return d.doubts(&e, known)
		}
		return d.warn(found, "the experiment would wait with "+v1alpha1.ConditionAccepted+"=False")
	case "Capture":
		var c v1alpha1.Capture
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.object, &c); err != nil {
			return []Finding{d.finding("", err.Error())}
		}
		return d.warn(render.CheckCaptureAlone(&c.Spec), "nothing would be captured")
	}
	return nil
}

// doubts are about what the operator accepts and the author hardly wants.
func (d *document) doubts(e *v1alpha1.Experiment, known surroundings) (findings []Finding) {
	t, _ := topology.Expand(&e.Spec) // it has no errors
	for _, doubt := range render.Doubts(t, &e.Spec, waveformsOf(&e.Spec, known.waveforms)) {
		f := d.finding(doubt.Field, doubt.Detail)
		f.Warning = true
		findings = append(findings, f)
	}
	return findings
}

func (d *document) warn(problems field.ErrorList, consequence string) (findings []Finding) {
	for _, problem := range problems {
		f := d.finding(problem.Field, fmt.Sprintf("%s: the API server lets this pass, but %s", problem.ErrorBody(), consequence))
		f.Warning = true
		findings = append(findings, f)
	}
	return findings
}

// Unaccepted is what keeps an experiment that the API server lets pass from being accepted, as far as it alone decides that: nothing is
// known of what it refers to.
func Unaccepted(e *v1alpha1.Experiment) field.ErrorList {
	return problems(e, surroundings{scripts: map[v1alpha1.KeyReference]string{}, fileBytes: map[v1alpha1.KeyReference]int{}})
}

// problems that the operator finds when it expands an experiment.
func problems(e *v1alpha1.Experiment, known surroundings) field.ErrorList {
	t, errs := topology.Expand(&e.Spec)
	errs = append(errs, render.Check(&e.Spec)...)
	if len(errs) > 0 {
		return errs
	}
	_, timelineErrs := timeline.Compile(&e.Spec, t)
	errs = append(t.CheckReferences(&e.Spec), timelineErrs...)
	errs = append(errs, render.CheckRadio(&e.Spec, t)...)
	input := render.Input{Experiment: e, Topology: t, Scripts: known.scripts, FileBytes: known.fileBytes}
	errs = append(errs, render.CheckScripts(input)...)
	errs = append(errs, render.CheckPayloads(input)...)
	waveforms := waveformsOf(&e.Spec, known.waveforms)
	errs = append(errs, render.CheckBase(&e.Spec, waveforms)...)
	errs = append(errs, render.CheckVMs(input)...)
	// Nothing is known of the scenario: it is compiled in the cluster.
	if errs = append(errs, render.CheckRadioModels(&e.Spec, t, waveforms, nil)...); len(errs) > 0 {
		return errs
	}
	return render.CheckSize(render.Pods(input), &e.Spec)
}

// waveformsOf are those of an experiment's networks that are known, by the network's name.
func waveformsOf(spec *v1alpha1.ExperimentSpec, known map[string]v1alpha1.WaveformSpec) map[string]v1alpha1.WaveformSpec {
	found := map[string]v1alpha1.WaveformSpec{}
	for _, network := range spec.Networks {
		if waveform, ok := render.InPlace(network); ok {
			found[network.Name] = waveform
		} else if waveform, ok := known[network.Waveform]; ok {
			found[network.Name] = waveform
		}
	}
	return found
}
