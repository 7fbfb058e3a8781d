package fieldpath

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"vignette.dev/vignette/internal/wording"
)

// Check checks a value against the type of the field at a path, and of the fields within it. Set reports invalid paths.
func Check(schema *Schema, path Path, value any) error {
	field := path.schemaIn(schema)
	if field == nil || value == nil {
		return nil
	}
	return check(field, path, value)
}

func check(field *Schema, path Path, value any) error {
	switch value := value.(type) {
	case map[string]any:
		if field.Type == "object" {
			return checkFields(field, path, value)
		}
	case []any:
		if field.Type == "array" && field.Items != nil && field.Items.Schema != nil {
			return checkElements(field, path, value)
		}
	case string:
		if field.Type == "string" {
			return nil
		}
	case bool:
		if field.Type == "boolean" {
			return nil
		}
	case int64, float64:
		if isNumber(field, value) {
			return nil
		}
	}
	if field.XIntOrString || field.Type == "" {
		return nil // the API server checks it
	}
	return fmt.Errorf("%s is %s %s: it %s", path, kindOf(value), text(value), wanted(field, value))
}

func checkFields(field *Schema, path Path, value map[string]any) error {
	if len(field.Properties) == 0 {
		return nil // a map
	}
	for _, name := range slices.Sorted(maps.Keys(value)) {
		inside := append(slices.Clone(path), Step{Name: name})
		property, known := field.Properties[name]
		if !known {
			return fmt.Errorf("%s: there is no such field%s", inside, wording.DidYouMean(name, slices.Sorted(maps.Keys(field.Properties))))
		}
		if value[name] == nil {
			continue
		}
		if err := check(&property, inside, value[name]); err != nil {
			return err
		}
	}
	return nil
}

func checkElements(field *Schema, path Path, value []any) error {
	for i, name := range names(value, field) {
		if name == "" {
			name = fmt.Sprint(i)
		}
		if err := check(field.Items.Schema, append(slices.Clone(path), Step{Name: name, Element: true}), value[i]); err != nil {
			return err
		}
	}
	return nil
}

// isNumber reports whether a field is a number.
func isNumber(field *Schema, value any) bool {
	whole, isWhole := value.(int64)
	switch {
	case field.Type == "number":
		return true
	case field.Type != "integer" || !isWhole:
		return false
	}
	return field.Format != "int32" || whole >= math.MinInt32 && whole <= math.MaxInt32
}

func kindOf(value any) string {
	switch value.(type) {
	case string:
		return "text,"
	case bool:
		return "the truth value"
	case []any:
		return "a list,"
	case map[string]any:
		return "an object,"
	case nil:
		return "nothing,"
	}
	return "the number"
}

// wantsQuotes reports whether the value would be valid in quotes.
func wantsQuotes(words string) bool {
	return strings.Contains(words, "letters") || strings.Contains(words, "in quotes")
}

// wanted says what a field must be, in the words of its definition if it has any.
func wanted(field *Schema, value any) string {
	if rules := field.XValidations; len(rules) > 0 && strings.HasPrefix(rules[0].Message, "must be ") && !wantsQuotes(rules[0].Message) {
		return rules[0].Message
	}
	switch field.Type {
	case "string":
		if len(field.Enum) > 0 {
			var all []string
			for _, one := range field.Enum {
				all = append(all, string(one.Raw))
			}
			return "must be one of " + strings.Join(all, ", ")
		}
		switch value.(type) {
		case bool, int64, float64:
			return fmt.Sprintf("must be text: write it in quotes, %q", text(value))
		}
		return "must be text"
	case "integer":
		return "must be a whole number, such as 5"
	case "number":
		return "must be a number, such as 0.5"
	case "boolean":
		return "must be true or false"
	case "array":
		return "must be a list, such as [a, b]"
	}
	return "must be an object, such as {name: value}"
}
