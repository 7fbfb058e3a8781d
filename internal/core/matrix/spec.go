package matrix

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"vignette.dev/vignette/internal/core/fieldpath"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Spec is the spec of a point's experiments.
type Spec struct {
	// Object is the spec to create. It keeps fields with zero values, which the type would omit.
	Object map[string]any
	// Typed is the same as a type.
	Typed v1alpha1.ExperimentSpec
	// Digest is equal for runs with the same spec apart from the seed.
	Digest string
}

// Spec is the spec of a point, from the campaign's template, for a seed.
func (p *Point) Spec(template *v1alpha1.ExperimentSpec, seed int64) (*Spec, error) {
	text, err := json.Marshal(template)
	if err != nil {
		return nil, err
	}
	s := &Spec{Object: map[string]any{}}
	if err := utiljson.Unmarshal(text, &s.Object); err != nil { // integers stay integers
		return nil, err
	}
	for _, setting := range p.Settings {
		if err := set(s.Object, setting); err != nil {
			return nil, err
		}
	}
	delete(s.Object, "seed")
	if text, err = json.Marshal(s.Object); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	s.Digest = hex.EncodeToString(sum[:6])
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if strict.Decode(&s.Typed) != nil { // values have been checked against their fields: Expand
		return nil, errors.New("the template with the settings is no valid spec of an experiment")
	}
	s.Object["seed"], s.Typed.Seed = seed, seed
	return s, p.check(&s.Typed)
}

// check refuses specs that are valid for an experiment but not for a run.
func (p *Point) check(spec *v1alpha1.ExperimentSpec) error {
	if spec.Duration == "" {
		return fmt.Errorf("duration: a run needs one, or it would never end")
	}
	if spec.Stop {
		return fmt.Errorf("stop: a run that is stopped before it starts measures nothing")
	}
	return nil
}

func set(object map[string]any, setting v1alpha1.Setting) error {
	path, err := fieldpath.Parse(string(setting.Path))
	if err != nil {
		return err
	}
	value, err := valueOf(setting)
	if err != nil {
		return err
	}
	return fieldpath.Set(object, fieldpath.Experiment(), path, value)
}

// valueOf is the value of a setting, nil if it removes the field.
func valueOf(setting v1alpha1.Setting) (value any, err error) {
	if setting.Value != nil {
		err = utiljson.Unmarshal(setting.Value.Raw, &value)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: the value is null: give one, or levels of which one leaves it out", setting.Path)
	}
	return value, nil
}

// Duration is the planned duration of a run of the point, including the longest drain; 0 if it has none.
func (p *Point) Duration(template *v1alpha1.ExperimentSpec) time.Duration {
	times := &Point{}
	for _, setting := range p.Settings {
		if path := string(setting.Path); isWithin(path, "duration") || isWithin(path, "drain") {
			times.Settings = append(times.Settings, setting)
		}
	}
	spec, err := times.Spec(&v1alpha1.ExperimentSpec{Duration: template.Duration, Drain: template.Drain}, 1)
	if err != nil {
		return 0
	}
	return spec.Typed.Duration.Std() + spec.Typed.Drain.Max.Std()
}
