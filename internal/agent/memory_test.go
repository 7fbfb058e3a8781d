package agent

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAKernelThatEndedAProcessForItsMemoryIsKnownByTheControlGroup(t *testing.T) {
	dir := t.TempDir()
	if outOfMemory(dir) {
		t.Error("nothing is known of the memory")
	}
	for text, want := range map[string]bool{"low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\n": false, "max 12\noom 1\noom_kill 1\noom_group_kill 0\n": true} {
		if err := os.WriteFile(filepath.Join(dir, "memory.events"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := outOfMemory(dir); got != want {
			t.Errorf("%q says %v", text, got)
		}
	}
}
