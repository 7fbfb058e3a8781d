package archive

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"
)

func TestOnlyOneServerHasAnArchive(t *testing.T) {
	dir := t.TempDir()
	first, err := Lock(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	impatient, end := context.WithTimeout(t.Context(), 3*lockPause)
	defer end()
	if _, err := Lock(impatient, dir, slog.New(slog.DiscardHandler)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a second server got the archive beside the first: %v", err)
	}
	time.AfterFunc(lockPause, func() { _ = first.Close() })
	second, err := Lock(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("the archive was not free after the first server's end: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

func TestALockIsNoRun(t *testing.T) {
	dir := t.TempDir()
	lock, err := Lock(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	store, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if keys, err := store.Keys(); err != nil || len(keys) > 0 {
		t.Errorf("keys %v, %v", keys, err)
	}
}
