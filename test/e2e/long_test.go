//go:build e2e && long

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLongFormsOfE4 runs every full-length variant of E4, four at a time.
func TestLongFormsOfE4(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "scenarios", "e4", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios found: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			runScenario(t, file, time.Hour)
		})
	}
}
