package radiod

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheKeyForOtherHostsOutlivesTheWorkerAndIsNobodyElses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "peer-key")
	first, err := hostKey(path)
	if err != nil {
		t.Fatal(err)
	}
	second, err := hostKey(path)
	if err != nil || first.Public() != second.Public() {
		t.Errorf("another worker has another key, %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want only root to read it", info.Mode(), err)
	}
	if err := os.WriteFile(path, []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if third, err := hostKey(path); err != nil || third.Public() == first.Public() {
		t.Errorf("a torn key is not replaced, %v", err)
	}
}
