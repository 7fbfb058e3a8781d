package validate

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"vignette.dev/vignette/internal/nearest"
)

// nearestField names the field that a misspelt one, the last of a path, was most likely meant to be.
func nearestField(s *schema.Structural, path string) string {
	end := strings.LastIndex(path, ".")
	parent := schemaAt(s, path[:max(end, 0)])
	if parent == nil {
		return ""
	}
	return nearest.Of(path[end+1:], slices.Sorted(maps.Keys(parent.Properties)))
}

// schemaAt gives the schema of the field at a path; nil where there is none.
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
