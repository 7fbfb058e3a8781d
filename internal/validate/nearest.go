package validate

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"vignette.dev/vignette/internal/wording"
)

// otherField asks for the field most similar to a misspelt one, the last of a path, or lists those of its object.
func otherField(s *schema.Structural, path string) string {
	end := strings.LastIndex(path, ".")
	parent := schemaAt(s, path[:max(end, 0)])
	if parent == nil {
		return ""
	}
	return wording.DidYouMean(path[end+1:], fieldsOf(parent))
}

// fieldsOf an object by the alphabet, without former names, which are words that YAML reads otherwise.
func fieldsOf(s *schema.Structural) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.Properties)), func(name string) bool { return name == "false" || plainWord.MatchString(name) })
}

// schemaAt returns the schema of the field at a path; nil if there is none.
func schemaAt(s *schema.Structural, path string) *schema.Structural {
	for path != "" && s != nil {
		var step string
		step, path = nextStep(path)
		if strings.HasPrefix(step, "[") {
			s = s.Items
		} else if property, found := s.Properties[step]; found {
			s = &property
		} else {
			return nil
		}
	}
	return s
}
