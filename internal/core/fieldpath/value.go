package fieldpath

import (
	"fmt"
	"strconv"

	"sigs.k8s.io/yaml"
)

// Value parses the value of a field from a command line: null for none, YAML for objects and lists.
func Value(schema *Schema, path Path, typed string) (value any, err error) {
	want, field := "", path.schemaIn(schema)
	switch {
	case typed == "null" || field == nil: // Set reports errors of the path
		return nil, nil
	case field.Type == "string":
		return typed, nil
	case field.Type == "integer":
		want = "a whole number, such as 5"
		value, err = strconv.ParseInt(typed, 10, 64)
	case field.Type == "boolean":
		want = "true or false"
		value, err = strconv.ParseBool(typed)
	default:
		want = "YAML of " + map[string]string{"object": "an object, such as {name: value}", "array": "a list, such as [a, b]"}[field.Type]
		err = yaml.Unmarshal([]byte(typed), &value)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %q is invalid: must be %s", path, typed, want)
	}
	return value, nil
}

// EndsAtIndex reports whether the path ends at an element of a list whose elements have no names.
func (p Path) EndsAtIndex(schema *Schema) bool {
	last := len(p) - 1
	list := p[:last].schemaIn(schema)
	return p[last].Element && list != nil && list.Items != nil && keyOf(list) == ""
}

// schemaIn is the schema of the field at a path, nil if there is none.
func (p Path) schemaIn(schema *Schema) *Schema {
	for _, step := range p {
		property, known := schema.Properties[step.Name]
		switch {
		case !step.Element && known:
			schema = &property
		case step.Element && schema.Items != nil && schema.Items.Schema != nil:
			schema = schema.Items.Schema
		case step.Element && schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
			schema = schema.AdditionalProperties.Schema
		default:
			return nil
		}
	}
	return schema
}
