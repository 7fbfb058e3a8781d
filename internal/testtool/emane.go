package testtool

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// EMANE is the prefix of the EMANE that is installed here: VIGNETTE_EMANE, or that of the emane on PATH. Without one the test is skipped.
func EMANE(t *testing.T) string {
	t.Helper()
	if prefix := os.Getenv("VIGNETTE_EMANE"); prefix != "" {
		return prefix
	}
	program, err := exec.LookPath("emane")
	if err != nil {
		t.Skip("EMANE not installed: no emane on PATH, and VIGNETTE_EMANE does not say where it is")
	}
	return filepath.Dir(filepath.Dir(program))
}
