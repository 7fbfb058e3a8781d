// Package scenariotest makes scenarios for tests.
package scenariotest

import (
	"bytes"
	"testing"

	"vignette.dev/vignette/internal/scenario"
)

// Open opens the scenario of a builder.
func Open(t testing.TB, b *scenario.Builder) *scenario.Scenario {
	t.Helper()
	var compiled bytes.Buffer
	if _, err := b.Write(&compiled); err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Open(bytes.NewReader(compiled.Bytes()), int64(compiled.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
