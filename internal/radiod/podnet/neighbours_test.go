package podnet

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheARPTablesLimitsAreRaisedAndNeverLowered(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "ipv4/neigh/default")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"gc_thresh1": "128\n", "gc_thresh2": "512\n", "gc_thresh3": "100000\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(value), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := raiseNeighbourLimits(root); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"gc_thresh1": "16384", "gc_thresh2": "32768", "gc_thresh3": "100000"} {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("%s is %q, %v; want %s", name, got, err, want)
		}
	}
}

func TestANamespaceWithoutTheARPTablesLimitsIsAnError(t *testing.T) {
	if err := raiseNeighbourLimits(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v; want one that a file does not exist", err)
	}
}
