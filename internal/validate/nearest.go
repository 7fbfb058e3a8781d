package validate

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"vignette.dev/vignette/internal/wording"
)

// nearestField returns the field most similar to a misspelt one, the last of a path.
func nearestField(s *schema.Structural, path string) string {
	end := strings.LastIndex(path, ".")
	parent := schemaAt(s, path[:max(end, 0)])
	if parent == nil {
		return ""
	}
	return wording.Nearest(path[end+1:], slices.Sorted(maps.Keys(parent.Properties)))
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
