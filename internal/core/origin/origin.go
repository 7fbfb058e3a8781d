// Package origin finds the recorded run that an experiment repeats or is based on, and its changes.
package origin

import (
	"bytes"
	"cmp"
	"encoding/json"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"vignette.dev/vignette/internal/core/fieldpath"
	"vignette.dev/vignette/internal/gz"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	// maxSpec limits the unpacked size of an annotation, which anybody may write.
	maxSpec = 4 << 20
	// maxChanges limits the listed changes of a spec, maxValue the bytes of each value.
	maxChanges, maxValue = 100, 200
)

// Fields returns a spec as JSON fields, including a seed of 0.
func Fields(spec *v1alpha1.ExperimentSpec) (map[string]any, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	err = utiljson.Unmarshal(text, &fields)
	fields["seed"] = spec.Seed
	return fields, err
}

// Mark marks an experiment as based on a recorded run. spec is that of a rerun without changes. Mark returns what Of finds.
func Mark(e *v1alpha1.Experiment, run runapi.Rerun, spec, changed map[string]any) (runapi.Rerun, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return run, err
	}
	run.Spec = gz.Append(nil, text)
	text, err = json.Marshal(run)
	if err != nil {
		return run, err
	}
	run.Spec = nil
	setChanges(&run, spec, changed)
	label := v1alpha1.LabelRerunOf
	if len(run.Changes) > 0 {
		label = v1alpha1.LabelBasedOn
	}
	e.Labels, e.Annotations = map[string]string{label: run.UID}, map[string]string{v1alpha1.AnnotationRerun: string(text)}
	return run, nil
}

// Of returns the run that an experiment repeats, or the one that it is based on if its spec differs. Users can write its
// labels and annotation, so the spec decides. Without the other run's spec there are no changes.
func Of(e *v1alpha1.Experiment) (rerunOf, basedOn *runapi.Rerun) {
	uid := cmp.Or(e.Labels[v1alpha1.LabelRerunOf], e.Labels[v1alpha1.LabelBasedOn])
	if uid == "" {
		return nil, nil
	}
	var run runapi.Rerun
	if err := json.Unmarshal([]byte(e.Annotations[v1alpha1.AnnotationRerun]), &run); err != nil || run.UID != uid {
		return nil, &runapi.Rerun{UID: uid}
	}
	before, known := unpack(run.Spec)
	after, err := Fields(&e.Spec)
	run.Spec, run.Changes, run.MoreChanges = nil, nil, 0
	if !known || err != nil {
		return nil, &run
	}
	if setChanges(&run, before, after); len(run.Changes) > 0 {
		return nil, &run
	}
	return &run, nil
}

func setChanges(run *runapi.Rerun, before, after map[string]any) {
	changes := fieldpath.Diff(withDefaults(before), withDefaults(after), fieldpath.Experiment())
	run.MoreChanges = max(0, len(changes)-maxChanges)
	for _, c := range changes[:len(changes)-run.MoreChanges] {
		run.Changes = append(run.Changes, runapi.SpecChange{Path: c.Path, From: truncate(c.From), To: truncate(c.To)})
	}
}

// withDefaults adds the defaults of this version and removes a manual stop, which does not count as a change.
func withDefaults(spec map[string]any) map[string]any {
	text, _ := json.Marshal(spec) // it came from JSON
	copied := map[string]any{}
	_ = utiljson.Unmarshal(text, &copied)
	delete(copied, "stop")
	fieldpath.Default(copied)
	return copied
}

func truncate(value string) string {
	if len(value) <= maxValue {
		return value
	}
	return string(bytes.ToValidUTF8([]byte(value[:maxValue]), nil)) + "\u2026"
}

func unpack(packed []byte) (map[string]any, bool) {
	text, err := gz.Expand(packed, maxSpec)
	if err != nil {
		return nil, false
	}
	var spec map[string]any
	err = utiljson.Unmarshal(text, &spec)
	return spec, err == nil && spec != nil
}
