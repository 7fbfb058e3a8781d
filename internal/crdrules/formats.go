package crdrules

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// Format is what a string of an object must look like.
type Format struct {
	// Path of the string, such as spec.apps[].env[].name; an asterisk stands for all keys of a map.
	Path string `json:"path"`
	// Pattern that it matches. Without one it must not be empty.
	Pattern string `json:"pattern,omitempty"`

	steps []step
}

// step of a path: a field, an entry of a list or a value of a map.
type step struct {
	field string // empty for an entry or a value
	named bool   // entries have names
	isMap bool
}

// words say what the string must be.
func (f Format) words() string {
	if f.Pattern == "" {
		return "must not be empty"
	}
	return patterns[f.Pattern]
}

// TakeFormats removes patterns and least lengths from a definition, as the API server would answer with a regular expression.
func TakeFormats(crd *apiextensionsv1.CustomResourceDefinition) (formats []Format, err error) {
	visitStrings(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, nil, func(s *apiextensionsv1.JSONSchemaProps, path []step) {
		if s.Pattern == "" && s.MinLength == nil {
			return
		}
		f := Format{Path: written(path), Pattern: s.Pattern, steps: slices.Clone(path)}
		if f.words() == "" {
			err = errors.Join(err, fmt.Errorf("%s: pattern %s has no words in package crdrules", f.Path, s.Pattern))
		}
		formats = append(formats, f)
		if f.Pattern != "" && s.MinLength != nil {
			formats = append(formats, Format{Path: f.Path, steps: f.steps})
		}
		s.Pattern, s.MinLength = "", nil
	})
	return formats, err
}

// AddFormats as rules of a definition, which say in words what is wrong.
func AddFormats(crd *apiextensionsv1.CustomResourceDefinition, formats []Format) {
	visitStrings(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, nil, func(s *apiextensionsv1.JSONSchemaProps, path []step) {
		for _, f := range formats {
			if f.Path == written(path) {
				s.XValidations = append(f.rules(), s.XValidations...)
			}
		}
	})
}

// rules of a definition for the format; several where the API server takes one for too costly.
func (f Format) rules() (rules apiextensionsv1.ValidationRules) {
	parts, found := parted[f.Pattern]
	if !found {
		parts = []string{f.holds("self")}
	}
	for _, part := range parts {
		rules = append(rules, apiextensionsv1.ValidationRule{Rule: part, Message: f.words()})
	}
	return rules
}

// visitStrings of the spec of a schema.
func visitStrings(s *apiextensionsv1.JSONSchemaProps, path []step, visit func(*apiextensionsv1.JSONSchemaProps, []step)) {
	if s.Type == "string" {
		visit(s, path)
	}
	if s.Items != nil && s.Items.Schema != nil {
		visitStrings(s.Items.Schema, append(slices.Clone(path), step{named: slices.Contains(s.Items.Schema.Required, "name")}), visit)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		visitStrings(s.AdditionalProperties.Schema, append(slices.Clone(path), step{isMap: true}), visit)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if len(path) == 0 && name != "spec" {
			continue // the platform writes the status, and Kubernetes judges metadata
		}
		property := s.Properties[name]
		visitStrings(&property, append(slices.Clone(path), step{field: name}), visit)
		s.Properties[name] = property
	}
}

func written(path []step) string {
	var b strings.Builder
	for i, s := range path {
		switch {
		case s.isMap:
			b.WriteString(".*")
		case s.field == "":
			b.WriteString("[]")
		default:
			b.WriteString(strings.Repeat(".", min(i, 1)) + s.field)
		}
	}
	return b.String()
}

//go:embed formats.yaml
var formatsFile []byte

// ExperimentFormats are those of an Experiment: its definition has no room for them, and the chart has a policy instead.
var ExperimentFormats = sync.OnceValue(func() (formats []Format) {
	if err := yaml.UnmarshalStrict(formatsFile, &formats); err != nil {
		panic(err) // the file is part of this program
	}
	return formats
})

// matcher of a pattern, made once.
var matcher = sync.OnceValue(func() map[string]*regexp.Regexp {
	made := map[string]*regexp.Regexp{}
	for _, f := range ExperimentFormats() {
		made[f.Pattern] = regexp.MustCompile(f.Pattern)
	}
	return made
})

// CheckFormats of the strings of an Experiment, for clusters without the chart's policy and for validation without a cluster.
func CheckFormats(experiment map[string]any) (errs field.ErrorList) {
	for _, f := range ExperimentFormats() {
		f.check(experiment, strings.Split(strings.ReplaceAll(f.Path, "[]", ".[]"), "."), nil, &errs)
	}
	return errs
}

// check the strings at the rest of the path below a value.
func (f Format) check(value any, rest []string, path *field.Path, errs *field.ErrorList) {
	if len(rest) == 0 {
		text, ok := value.(string)
		if ok && (f.Pattern == "" && text == "" || f.Pattern != "" && !matcher()[f.Pattern].MatchString(text)) {
			*errs = append(*errs, field.Invalid(path, text, f.words()))
		}
		return
	}
	switch value := value.(type) {
	case []any:
		for i, entry := range value {
			f.check(entry, rest[1:], path.Index(i), errs)
		}
	case map[string]any:
		if rest[0] == "*" {
			for _, key := range slices.Sorted(maps.Keys(value)) {
				f.check(value[key], rest[1:], path.Child(key), errs)
			}
			return
		}
		if child, found := value[rest[0]]; found {
			f.check(child, rest[1:], path.Child(rest[0]), errs)
		}
	}
}

// indexes are those of lists in a path.
var indexes = regexp.MustCompile(`\[[^\]]*\]`)

// WordsOf returns what a string of an Experiment must be; empty if its definition says that itself.
func WordsOf(path string) string {
	path = indexes.ReplaceAllString(path, "[]")
	for _, f := range ExperimentFormats() {
		if f.Path == path {
			return f.words()
		}
	}
	return ""
}
