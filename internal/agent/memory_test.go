package agent

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAKernelThatEndedAProcessForItsMemoryIsKnownByTheControlGroup(t *testing.T) {
	for text, c := range map[string]struct {
		file string
		want bool
	}{
		"low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\n":          {"memory.events", false},
		"max 12\noom 1\noom_kill 1\noom_group_kill 0\n":       {"memory.events", true},
		"oom_kill_disable 0\nunder_oom 0\noom_kill 0\n":       {"memory/memory.oom_control", false},
		"oom_kill_disable 0\nunder_oom 0\noom_kill 2\n":       {"memory/memory.oom_control", true},
		"oom_kill 2, in a file that says nothing of memory\n": {"memory.stat", false},
	} {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "memory"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := outOfMemory(dir); got != c.want {
			t.Errorf("%s with %q says %v", c.file, text, got)
		}
	}
}
