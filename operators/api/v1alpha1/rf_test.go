package v1alpha1

import (
	"os"
	"strings"
	"testing"
)

func TestDefaultsOfRadiosAreThoseOfTheirFields(t *testing.T) {
	source, err := os.ReadFile("rf_types.go")
	if err != nil {
		t.Fatal(err)
	}
	defaults := map[string]string{}
	marker := ""
	for line := range strings.Lines(string(source)) {
		line = strings.TrimSpace(line)
		if value, found := strings.CutPrefix(line, "// +kubebuilder:default="); found {
			marker = strings.Trim(value, `"`)
		} else if fields := strings.Fields(line); len(fields) > 1 && !strings.HasPrefix(line, "//") {
			if marker != "" {
				defaults[fields[0]+" "+fields[1]] += marker
			}
			marker = ""
		}
	}
	for field, want := range map[string]string{
		"Frequency Frequency": string(DefaultFrequency),
		"Bandwidth Frequency": string(DefaultBandwidth),
		"Rate DataRate":       strings.Repeat(string(DefaultRate), 2), // rfpipe's and tdma's
	} {
		if defaults[field] != want {
			t.Errorf("field %q has the default %q, want %q", field, defaults[field], want)
		}
	}
}
