package fieldpath

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Change of a field between two objects. A missing value is empty.
type Change struct {
	Path, From, To string
}

// Diff returns the fields in which two objects of a schema differ, in the order of their paths.
func Diff(before, after map[string]any, schema *Schema) []Change {
	var d differ
	d.compare(nil, before, after, schema)
	return d.changes
}

type differ struct{ changes []Change }

func (d *differ) compare(path Path, before, after any, schema *Schema) {
	if reflect.DeepEqual(before, after) {
		return
	}
	objects := both[map[string]any](before, after)
	lists := both[[]any](before, after)
	switch {
	case objects && len(schema.Properties) > 0:
		d.fields(path, before.(map[string]any), after.(map[string]any), schema)
	case lists && schema.Items != nil && schema.Items.Schema != nil && schema.Items.Schema.Type == "object":
		d.elements(path, before.([]any), after.([]any), schema)
	default:
		d.add(path, before, after)
	}
}

func both[T any](a, b any) bool {
	_, isA := a.(T)
	_, isB := b.(T)
	return isA && isB
}

func (d *differ) add(path Path, before, after any) {
	d.changes = append(d.changes, Change{path.String(), text(before), text(after)})
}

func (d *differ) fields(path Path, before, after map[string]any, schema *Schema) {
	names := map[string]bool{}
	for name := range before {
		names[name] = true
	}
	for name := range after {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		property := schema.Properties[name]
		d.compare(append(slices.Clone(path), Step{Name: name}), before[name], after[name], &property)
	}
}

// elements compares list elements by their names or indices. If only the order of named ones differs, that is the change.
func (d *differ) elements(path Path, before, after []any, schema *Schema) {
	was, is := names(before, schema), names(after, schema)
	for _, name := range slices.Concat(was, slices.DeleteFunc(slices.Clone(is), func(name string) bool { return slices.Contains(was, name) })) {
		d.compare(append(slices.Clone(path), Step{Name: name, Element: true}), elementOf(before, was, name), elementOf(after, is, name), schema.Items.Schema)
	}
	stayed := func(of, in []string) []string {
		return slices.DeleteFunc(slices.Clone(of), func(name string) bool { return !slices.Contains(in, name) })
	}
	if first, second := stayed(was, is), stayed(is, was); !slices.Equal(first, second) {
		d.changes = append(d.changes, Change{path.String(), "order " + strings.Join(first, ", "), "order " + strings.Join(second, ", ")})
	}
}

func elementOf(list []any, names []string, name string) any {
	if at := slices.Index(names, name); at >= 0 {
		return list[at]
	}
	return nil
}

// text is a string itself, or the JSON of another value.
func text(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	case bool:
		return strconv.FormatBool(value)
	}
	written, _ := json.Marshal(value) // it was read from JSON
	return string(written)
}
