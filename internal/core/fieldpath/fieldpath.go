// Package fieldpath finds and sets the fields of an experiment's spec that a campaign varies. The schema of the
// CustomResourceDefinition has the types of fields, and the keys of list elements.
package fieldpath

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"vignette.dev/vignette/internal/wording"
)

// Step is one step of a path: to a field of an object, or to an element of a list or a map.
type Step struct {
	// Name of the field, or of the element.
	Name string
	// Element means that the step was in brackets.
	Element bool
}

// Path leads from a spec to one of its fields.
type Path []Step

func (p Path) String() string {
	var b strings.Builder
	for _, step := range p {
		switch {
		case step.Element:
			b.WriteString("[" + step.Name + "]")
		case b.Len() > 0:
			b.WriteString("." + step.Name)
		default:
			b.WriteString(step.Name)
		}
	}
	return b.String()
}

// Parse parses a path such as networks[wan].link.rate.
func Parse(text string) (Path, error) {
	var path Path
	for rest := text; rest != ""; {
		name := rest
		if end := strings.IndexAny(rest, ".["); end >= 0 {
			name = rest[:end]
		}
		if !isName(name) {
			return nil, fmt.Errorf("path %q: %q is no name of a field: use letters and digits, such as networks[wan].link.rate", text, name)
		}
		path, rest = append(path, Step{Name: name}), rest[len(name):]
		for strings.HasPrefix(rest, "[") {
			end := strings.Index(rest, "]")
			if end < 0 || !isElement(rest[1:end]) {
				return nil, fmt.Errorf("path %q: put the name of a list's element, or its index from 0, between [ and ]", text)
			}
			path, rest = append(path, Step{Name: rest[1:end], Element: true}), rest[end+1:]
		}
		if rest == "" {
			return path, nil
		}
		if rest[0] != '.' {
			return nil, fmt.Errorf("path %q: put a dot before %q", text, rest)
		}
		if rest = rest[1:]; rest == "" {
			return nil, fmt.Errorf("path %q ends with a dot", text)
		}
	}
	return nil, fmt.Errorf("the path is empty: use one such as networks[wan].link.rate")
}

func isName(name string) bool {
	return name != "" && isLetter(name[0]) && !strings.ContainsFunc(name, func(r rune) bool { return !isAlphanumeric(r) })
}

func isElement(name string) bool {
	return name != "" && isAlphanumeric(rune(name[0])) &&
		!strings.ContainsFunc(name, func(r rune) bool { return !isAlphanumeric(r) && !strings.ContainsRune("._-", r) })
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isAlphanumeric(r rune) bool { return r < 0x80 && (isLetter(byte(r)) || r >= '0' && r <= '9') }

// Schema of what is set.
type Schema = apiextensionsv1.JSONSchemaProps

// Set sets the field at a path of an object, in place. nil removes it. Missing parent objects are created, but not missing list
// elements, because their names are probably wrong. A path that ends at an element replaces or adds it.
func Set(object map[string]any, schema *Schema, path Path, value any) error {
	set := setter{path: path, value: value}
	_, err := set.field(object, schema, 0)
	return err
}

type setter struct {
	path  Path
	value any
}

func (s setter) last(i int) bool { return i == len(s.path)-1 }

func (s setter) fail(i int, format string, args ...any) error {
	return fmt.Errorf("%s: %s", s.path[:i+1], fmt.Sprintf(format, args...))
}

// follow follows the i-th step within a container and returns the changed container.
func (s setter) follow(container any, schema *Schema, i int) (any, error) {
	if !s.path[i].Element {
		return s.field(container, schema, i)
	}
	switch {
	case schema.Items != nil && schema.Items.Schema != nil:
		return s.element(container, schema, i)
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		return s.entry(container, schema.AdditionalProperties.Schema, i)
	}
	return nil, s.fail(i-1, "is no list, so it has no element %s", s.path[i].Name)
}

func (s setter) field(container any, schema *Schema, i int) (any, error) {
	property, known := schema.Properties[s.path[i].Name]
	switch {
	case known:
		return s.entry(container, &property, i)
	case schema.Items != nil:
		return nil, s.fail(i-1, "is a list: name one of its elements in brackets, such as %s[%s]", s.path[i-1].Name, example(container, schema))
	case len(schema.Properties) == 0 && schema.AdditionalProperties != nil:
		return nil, s.fail(i-1, "is a map: name one of its entries in brackets")
	case len(schema.Properties) == 0:
		return nil, s.fail(i-1, "has no fields")
	}
	if i == 0 && s.path[i].Name == "spec" {
		return nil, s.fail(i, "paths begin below spec: leave spec out, such as in apps[bft].publisher.period")
	}
	fields := slices.Sorted(maps.Keys(schema.Properties))
	return nil, s.fail(i, "there is no such field%s", wording.DidYouMean(s.path[i].Name, fields))
}

// entry sets or follows an entry of an object.
func (s setter) entry(container any, schema *Schema, i int) (any, error) {
	object, ok := container.(map[string]any)
	if container != nil && !ok {
		return nil, s.fail(i, "its parent is no object but %v", container)
	}
	name := s.path[i].Name
	if s.last(i) && s.value == nil {
		delete(object, name)
		return container, nil
	}
	after, err := s.value, error(nil)
	if !s.last(i) {
		after, err = s.follow(object[name], schema, i+1)
	}
	if err != nil || after == nil {
		return container, err
	}
	if object == nil {
		object = map[string]any{}
	}
	object[name] = after
	return object, nil
}

// element sets or follows an element of a list.
func (s setter) element(container any, schema *Schema, i int) (any, error) {
	list, ok := container.([]any)
	if container != nil && !ok {
		return nil, s.fail(i-1, "is no list but %v", container)
	}
	at, err := s.indexOf(list, schema, i)
	if err != nil {
		return nil, err
	}
	switch {
	case !s.last(i) && at == len(list):
		return nil, s.fail(i, "there is no such element%s", wording.DidYouMean(s.path[i].Name, names(list, schema)))
	case !s.last(i):
		list[at], err = s.follow(list[at], schema.Items.Schema, i+1)
	case s.value == nil && at == len(list):
	case s.value == nil:
		list = slices.Delete(list, at, at+1)
	default:
		list, err = s.replace(list, at, schema, i)
	}
	return list, err
}

// replace puts the value into a list, at its end if it is new. An element with a key gets the name.
func (s setter) replace(list []any, at int, schema *Schema, i int) ([]any, error) {
	if key := keyOf(schema); key != "" {
		object, ok := s.value.(map[string]any)
		if !ok {
			return list, s.fail(i, "the value must be an object, not %v", s.value)
		}
		if given, has := object[key]; has && given != s.path[i].Name {
			return list, s.fail(i, "the value has %s %v", key, given)
		}
		object[key] = s.path[i].Name
	}
	if at == len(list) {
		return append(list, s.value), nil
	}
	list[at] = s.value
	return list, nil
}

// indexOf is the index of an element, the list's length if it does not exist.
func (s setter) indexOf(list []any, schema *Schema, i int) (int, error) {
	if key := keyOf(schema); key != "" {
		at := slices.IndexFunc(list, func(e any) bool { return nameOf(e, key) == s.path[i].Name })
		if at < 0 {
			at = len(list)
		}
		return at, nil
	}
	at, err := strconv.Atoi(s.path[i].Name)
	if err != nil || at < 0 || at > len(list) || strconv.Itoa(at) != s.path[i].Name { // 00 would be another path to the element of 0
		return 0, s.fail(i, "the elements have no names: use an index from 0 to %d", max(0, len(list)-1))
	}
	return at, nil
}

// keyOf is the field with the names of a list's elements, empty if they have only indices.
func keyOf(schema *Schema) string {
	if len(schema.XListMapKeys) != 1 {
		return ""
	}
	return schema.XListMapKeys[0]
}

func nameOf(element any, key string) string {
	object, _ := element.(map[string]any)
	if name, has := object[key]; has {
		return fmt.Sprint(name)
	}
	return ""
}

func names(list []any, schema *Schema) (all []string) {
	for at, element := range list {
		if key := keyOf(schema); key != "" {
			all = append(all, nameOf(element, key))
		} else {
			all = append(all, strconv.Itoa(at))
		}
	}
	return all
}

func example(container any, schema *Schema) string {
	list, _ := container.([]any)
	if all := names(list, schema); len(all) > 0 {
		return all[0]
	}
	return "NAME"
}
