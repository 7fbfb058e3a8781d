package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestASecondHolderWaitsForTheLock(t *testing.T) {
	path := t.TempDir() + "/lock"
	unlock, err := Lock(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	waited := false
	short, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	if _, err := Lock(short, path, func() { waited = true }); !errors.Is(err, context.DeadlineExceeded) || !waited {
		t.Errorf("error %v, waited: %v", err, waited)
	}
	unlock()
	again, err := Lock(t.Context(), path, func() { t.Error("it waits for a lock that is free") })
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestAFileIsReplacedWhole(t *testing.T) {
	path := t.TempDir() + "/sub/file"
	for _, text := range []string{"one", "two"} {
		if err := WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != text {
			t.Errorf("got %q, error %v", got, err)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("left beside it: %v, error %v", entries, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
}

func TestALinkIsReplaced(t *testing.T) {
	path := t.TempDir() + "/link"
	for _, target := range []string{"/a", "/b", "/b"} {
		if err := Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		if got, err := os.Readlink(path); err != nil || got != target {
			t.Errorf("got %q, error %v", got, err)
		}
	}
}
