package validate

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// nearestField names the field that a misspelt one, the last of a path, was most likely meant to be.
func nearestField(s *schema.Structural, path string) string {
	end := strings.LastIndex(path, ".")
	parent := schemaAt(s, path[:max(end, 0)])
	if parent == nil {
		return ""
	}
	return nearest(path[end+1:], slices.Sorted(maps.Keys(parent.Properties)))
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

// nearest name by the number of edits, if it is near at all.
func nearest(word string, names []string) string {
	best, fewest := "", max(1, min(3, len(word)/2))+1
	for _, name := range names {
		if n := edits(strings.ToLower(word), strings.ToLower(name)); n < fewest {
			best, fewest = name, n
		}
	}
	return best
}

// edits is Levenshtein's distance.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal, row[j] = row[j], min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
