package machine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLimitsAreRaisedAndNeverLowered(t *testing.T) {
	root := t.TempDir()
	before := map[string]string{"net/ipv4/neigh/default/gc_thresh2": "512\n", "fs/inotify/max_user_instances": "10000\n"}
	for name, value := range before {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := raiseLimits(root); err != nil {
		t.Errorf("%v; want none where the machine does not show the others", err)
	}
	for name, want := range map[string]string{"net/ipv4/neigh/default/gc_thresh2": "32768", "fs/inotify/max_user_instances": "10000"} {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("%s is %q, %v; want %s", name, got, err, want)
		}
	}
}

func TestALimitThatCannotBeRaisedIsNamed(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "fs/inotify/max_user_instances"), 0o755); err != nil { // a folder is no number
		t.Fatal(err)
	}
	if err := raiseLimits(root); err == nil || !strings.Contains(err.Error(), "max_user_instances") {
		t.Errorf("error %v; want the limit's name", err)
	}
}
