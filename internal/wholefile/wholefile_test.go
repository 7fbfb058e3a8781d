package wholefile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func expect(t *testing.T, path, content string) {
	t.Helper()
	if text, err := os.ReadFile(path); err != nil || string(text) != content {
		t.Errorf("the file has %q, %v; want %q", text, err, content)
	}
}

func TestAFullVolumeLeavesTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := Write(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/full", path+Unfinished); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("new"), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v; want that no space is left", err)
	}
	expect(t, path, "old")
	if err := Write(path, []byte("new"), 0o600); err != nil {
		t.Errorf("with space again: %v", err)
	}
	expect(t, path, "new")
}

func TestAWriteAfterAKillLeavesNothingOfTheOneBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path+Unfinished, []byte(strings.Repeat("killed", 100)), 0o400); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("new"), 0o640); err != nil {
		t.Fatal(err)
	}
	expect(t, path, "new")
	if is, err := os.Stat(path); err != nil || is.Mode() != 0o640 {
		t.Errorf("mode %v, %v; want that of the write", is.Mode(), err)
	}
	if all, err := os.ReadDir(filepath.Dir(path)); err != nil || len(all) != 1 {
		t.Errorf("the folder has %v, %v; want the file alone", all, err)
	}
}
