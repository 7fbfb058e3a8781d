package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/tutorial"
	"vignette.dev/vignette/internal/validate"
)

// TestTutorialsCanBeFollowed as far as that needs no cluster. test/e2e runs their commands.
func TestTutorialsCanBeFollowed(t *testing.T) {
	pages, err := filepath.Glob("tutorials/*.md")
	if err != nil || len(pages) != 4 {
		t.Fatalf("%d tutorials, %v; want 4", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		steps, err := tutorial.Steps(string(text))
		if err != nil || len(steps) < 5 {
			t.Errorf("%s: %d steps, %v; want those of a tutorial", page, len(steps), err)
		}
		for _, step := range steps {
			if !strings.HasSuffix(step.File, ".yaml") {
				continue
			}
			if report := validate.Text(step.File, []byte(step.Text)); report.Failed() || len(report.Objects) == 0 {
				t.Errorf("%s:%d: %s has %d objects and the findings %v; want objects without findings", page, step.Line, step.File, len(report.Objects), report.Findings)
			}
		}
	}
}
