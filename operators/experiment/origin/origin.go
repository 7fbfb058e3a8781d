// Package origin tells which recorded run an experiment repeats, or which it was made of, and with what changes.
package origin

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/campaign/fieldpath"
)

const (
	// maxSpec bounds what is unpacked of an annotation, which anybody may write.
	maxSpec = 4 << 20
	// maxChanges of a spec are named, each with up to maxValue bytes of its values.
	maxChanges, maxValue = 100, 200
)

// Fields of a spec as JSON has them. A seed of 0 is one, too.
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

// Mark an experiment as made of a recorded run, whose spec it may have changed; spec is that of a rerun without changes.
// It returns what Of finds of it.
func Mark(e *v1alpha1.Experiment, run runapi.Rerun, spec, changed map[string]any) (runapi.Rerun, error) {
	packed, err := pack(spec)
	if err != nil {
		return run, err
	}
	run.Spec = packed
	text, err := json.Marshal(run)
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

// Of an experiment: the run that it repeats, or the one that it is based on as its spec differs. Its labels and annotation are the
// user's own words: the spec decides. Changes are absent where the spec of the other run is not known.
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

// withDefaults has the defaults of this version. A stop by hand is no part of what is repeated.
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

func pack(spec map[string]any) ([]byte, error) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if err := json.NewEncoder(w).Encode(spec); err != nil {
		return nil, err
	}
	err := w.Close()
	return packed.Bytes(), err
}

func unpack(packed []byte) (map[string]any, bool) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, false
	}
	text, err := io.ReadAll(io.LimitReader(r, maxSpec))
	if err != nil {
		return nil, false
	}
	var spec map[string]any
	err = utiljson.Unmarshal(text, &spec)
	return spec, err == nil && spec != nil
}
