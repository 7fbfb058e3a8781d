package store

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"vignette.dev/vignette/internal/proxy/frame"
)

func open(t *testing.T, folder string, limit int64) (*Store, []Record) {
	t.Helper()
	s, records, err := Open(folder, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, records
}

func record(n byte, state State) Record {
	return Record{ID: frame.ID{n}, Deadline: time.UnixMilli(1_000_000 + int64(n)), State: state}
}

func TestRecordsAreFoundAgainInTheirOrder(t *testing.T) {
	folder := t.TempDir()
	s, _ := open(t, folder, 1000)
	want := []Record{record(9, Request), record(1, Started), record(5, Response)}
	for _, r := range want {
		if err := s.Put(r, []byte("content")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	w, err := s.Create(record(7, Request))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	s.Close() // as a killed process
	s, got := open(t, folder, 1000)
	if !slices.Equal(got, want) || s.Used() != 3*7 {
		t.Errorf("%v with %d bytes; want %v with 21", got, s.Used(), want)
	}
	file, err := s.Open(want[0])
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if content, err := io.ReadAll(file); err != nil || string(content) != "content" {
		t.Errorf("%q, %v", content, err)
	}
	for _, r := range want {
		s.Remove(r)
		s.Remove(r)
	}
	if files, _ := os.ReadDir(folder); len(files) != 1 || s.Used() != 0 {
		t.Errorf("%v with %d bytes; want the lock only", files, s.Used())
	}
}

func TestARecordThatDoesNotFitLeavesNothing(t *testing.T) {
	folder := t.TempDir()
	s, _ := open(t, folder, 10)
	if err := s.Put(record(1, Request), make([]byte, 11)); !errors.Is(err, ErrFull) {
		t.Errorf("%v; want %v", err, ErrFull)
	}
	if files, _ := os.ReadDir(folder); len(files) != 1 || s.Used() != 0 {
		t.Errorf("%v with %d bytes; want the lock only", files, s.Used())
	}
	if err := s.Put(record(1, Request), make([]byte, 10)); err != nil {
		t.Errorf("%v; want room again", err)
	}
}

func TestAFullDiskLeavesNothing(t *testing.T) {
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("needs root for a small disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) })
	s, _ := open(t, folder, 1<<30)
	if err := s.Put(record(1, Request), make([]byte, 1<<20)); !errors.Is(err, ErrFull) {
		t.Errorf("%v; want %v", err, ErrFull)
	}
	if err := s.Put(record(1, Request), make([]byte, 1000)); err != nil || s.Used() != 1000 {
		t.Errorf("%v, %d bytes; want room again", err, s.Used())
	}
}

func TestAFolderHasOneProxy(t *testing.T) {
	folder := t.TempDir()
	open(t, folder, 1000)
	if _, _, err := Open(folder, 1000); err == nil || !strings.Contains(err.Error(), "in use by another proxy") {
		t.Errorf("%v; want a refusal", err)
	}
}

func TestAFolderThatCannotBeWrittenIsNamed(t *testing.T) {
	folder := t.TempDir()
	s, _ := open(t, folder, 1000)
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := Open(file, 1000)
	for at, err := range map[string]error{folder: s.Put(record(1, Request), nil), file: err} {
		want := "folder " + at + " cannot be read or written: want a folder that the proxy may change, on a disk that works"
		if err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
