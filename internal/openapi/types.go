package openapi

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"strings"

	"github.com/invopop/jsonschema"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	module = "vignette.dev/vignette"
	// definitionsPath and schemasPath are where JSON Schema and OpenAPI have named schemas.
	definitionsPath = "#/$defs/"
	schemasPath     = "#/components/schemas/"
)

// types makes schemas of Go types, each named one once.
type types struct {
	reflector   jsonschema.Reflector
	definitions map[string]*jsonschema.Schema
	// named are the Go types of definitions.
	named map[string]reflect.Type
	// wholeLists as in the API.
	wholeLists bool
}

// newTypes reads the comments of an API's sources.
func newTypes(api API) (*types, error) {
	t := &types{definitions: map[string]*jsonschema.Schema{}, named: map[string]reflect.Type{}, wholeLists: api.WholeLists}
	enumerated := func(of reflect.Type) *jsonschema.Schema {
		if values, known := api.Values[of]; known {
			return &jsonschema.Schema{Type: "string", Enum: values}
		}
		return special(of)
	}
	t.reflector = jsonschema.Reflector{Anonymous: true, AllowAdditionalProperties: true, Mapper: enumerated, Namer: t.name}
	for _, source := range api.Sources {
		if err := t.reflector.AddGoComments(module, source, jsonschema.WithFullComment()); err != nil {
			return nil, fmt.Errorf("comments of %s: %w", source, err)
		}
	}
	return t, nil
}

// name is that of the type. Types of another package with the same name have their package's before it.
func (t *types) name(of reflect.Type) string {
	name := of.Name()
	if name == "" {
		return ""
	}
	if known, taken := t.named[name]; taken && known != of {
		name = strings.ToUpper(path.Base(of.PkgPath())[:1]) + path.Base(of.PkgPath())[1:] + name
	}
	t.named[name] = of
	return name
}

// special are types whose JSON is not that of their fields.
func special(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case reflect.TypeFor[metav1.Duration]():
		return &jsonschema.Schema{Type: "string"}
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString]():
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "integer"}, {Type: "string"}}}
	case reflect.TypeFor[runtime.RawExtension]():
		return &jsonschema.Schema{Type: "object"}
	}
	return nil
}

// schema returns that of a value's type, and keeps those of the named types in it.
func (t *types) schema(value any) *jsonschema.Schema {
	root := t.reflector.Reflect(value)
	root.Version = ""
	for name, definition := range root.Definitions {
		if t.definitions[name] == nil {
			t.definitions[name] = definition
			t.finish(definition, t.named[name])
		}
	}
	root.Definitions = nil
	t.walk(root)
	return root
}

// finish corrects what the reflection does not know of a struct: which fields may be null, and their names in JSON.
func (t *types) finish(definition *jsonschema.Schema, of reflect.Type) {
	t.walk(definition)
	if definition.Description == "" && strings.HasPrefix(of.PkgPath(), "k8s.io/") {
		definition.Description = "As in Kubernetes."
	}
	if definition.Properties == nil {
		return
	}
	names := map[string]string{}
	fields := map[string]reflect.StructField{}
	for _, field := range reflect.VisibleFields(of) {
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || tag == "" || tag == "-" {
			continue
		}
		names[field.Name] = tag
		if !strings.Contains(options, "omit") {
			fields[tag] = field
		}
	}
	definition.Description = inJSON(definition.Description, names)
	for pair := definition.Properties.Oldest(); pair != nil; pair = pair.Next() {
		pair.Value.Description = inJSON(pair.Value.Description, names)
		field, always := fields[pair.Key]
		if always && field.Type.Kind() == reflect.Slice && field.Type.Elem().Kind() == reflect.Pointer {
			pair.Value.Items = nullable(pair.Value.Items)
		}
		if always && t.canBeNull(field) {
			definition.Properties.Set(pair.Key, nullable(pair.Value))
		}
	}
}

func (t *types) canBeNull(field reflect.StructField) bool {
	kind := field.Type.Kind()
	isList := kind == reflect.Slice || kind == reflect.Map
	return kind == reflect.Pointer || isList && (!t.wholeLists || field.Tag.Get("openapi") == "nullable")
}

func nullable(schema *jsonschema.Schema) *jsonschema.Schema {
	description := schema.Description
	schema.Description = ""
	return &jsonschema.Schema{Description: description, AnyOf: []*jsonschema.Schema{schema, {Type: "null"}}}
}

// walk moves references to where OpenAPI has named schemas, and removes markers from descriptions.
func (t *types) walk(schema *jsonschema.Schema) {
	if schema == nil {
		return
	}
	schema.Ref = strings.Replace(schema.Ref, definitionsPath, schemasPath, 1)
	schema.Description = withoutMarkers(schema.Description)
	t.walk(schema.Items)
	t.walk(schema.AdditionalProperties)
	for inner := range maps.Values(schema.PatternProperties) {
		t.walk(inner)
	}
	if schema.Properties == nil {
		return
	}
	for pair := schema.Properties.Oldest(); pair != nil; pair = pair.Next() {
		t.walk(pair.Value)
	}
}

// withoutMarkers removes the lines for controller-gen, and joins the others.
func withoutMarkers(comment string) string {
	var kept []string
	for line := range strings.Lines(comment) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "+") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, " ")
}

var word = regexp.MustCompile(`[A-Za-z][A-Za-z0-9]*`)

// inJSON has the names of fields as they are in JSON.
func inJSON(comment string, names map[string]string) string {
	return word.ReplaceAllStringFunc(comment, func(w string) string {
		if name, field := names[w]; field {
			return name
		}
		return w
	})
}
