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
	s, _ := open(t, folder, 10*blockBytes)
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
	s, got := open(t, folder, 10*blockBytes)
	if !slices.Equal(got, want) || s.Used() != 3*blockBytes {
		t.Errorf("%v with %d bytes; want %v with %d", got, s.Used(), want, 3*blockBytes)
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
	s, _ := open(t, folder, 2*blockBytes)
	if err := s.Put(record(1, Request), make([]byte, 2*blockBytes+1)); !errors.Is(err, ErrFull) {
		t.Errorf("%v; want %v", err, ErrFull)
	}
	if files, _ := os.ReadDir(folder); len(files) != 1 || s.Used() != 0 {
		t.Errorf("%v with %d bytes; want the lock only", files, s.Used())
	}
	if err := s.Put(record(1, Request), make([]byte, blockBytes+1)); err != nil {
		t.Errorf("%v; want room again", err)
	}
	if err := s.Put(record(2, Request), []byte{1}); !errors.Is(err, ErrFull) {
		t.Errorf("%v; want no room for a byte beyond two blocks that are taken", err)
	}
}

func TestAnAcknowledgedResponseTakesNoRoomAndIsFoundAgain(t *testing.T) {
	folder := t.TempDir()
	s, _ := open(t, folder, 1<<20)
	if err := s.Put(record(1, Response), make([]byte, 10_000)); err != nil {
		t.Fatal(err)
	}
	if err := s.Acknowledge(record(1, Response)); err != nil {
		t.Fatal(err)
	}
	if s.Used() != 0 {
		t.Errorf("%d bytes; want none", s.Used())
	}
	s.Close()
	s, records := open(t, folder, 1<<20)
	if want := record(1, Acknowledged); len(records) != 1 || records[0] != want || s.Used() != 0 {
		t.Errorf("%v with %d bytes; want %v with none", records, s.Used(), want)
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
	if err := s.Put(record(1, Request), make([]byte, 1000)); err != nil || s.Used() != blockBytes {
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
