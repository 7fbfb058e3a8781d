package archive

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"vignette.dev/vignette/internal/digests"
)

func digestOf(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }

func openScenarios(t *testing.T, dir string) *Scenarios {
	t.Helper()
	store, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	scenarios, err := store.Scenarios()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = scenarios.Close(); _ = store.Close() })
	return scenarios
}

func TestAScenarioIsStoredByItsDigestAndReadBack(t *testing.T) {
	dir := t.TempDir()
	s := openScenarios(t, dir)
	for _, again := range []int64{5, 0} {
		if size, err := s.Put(digestOf("hills"), strings.NewReader("hills"), 0); err != nil || size != again {
			t.Fatalf("put: %d bytes, %v; want %d", size, err, again)
		}
	}
	f, err := openScenarios(t, dir).Open(digestOf("hills"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if text, err := io.ReadAll(f); err != nil || string(text) != "hills" {
		t.Errorf("read %q, %v", text, err)
	}
	if s.Used() != 5 {
		t.Errorf("%d bytes used, want 5", s.Used())
	}
	if _, err := s.Open(digestOf("sea")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("opening what is not there: %v", err)
	}
}

func TestAScenarioThatCannotBeStoredLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		digest  string
		content io.Reader
		quota   int64
		want    error
	}{
		"another digest":       {digestOf("sea"), strings.NewReader("hills"), 0, ErrDigest},
		"no room":              {digestOf("hills"), strings.NewReader("hills"), 4, ErrScenarioQuota},
		"a body that breaks":   {digestOf("hills"), iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("hills"))), 0, iotest.ErrTimeout},
		"a digest that is bad": {"sha256:../../x", strings.NewReader("hills"), 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openScenarios(t, dir)
			if _, err := s.Put(c.digest, c.content, c.quota); err == nil || (c.want != nil && !errors.Is(err, c.want)) {
				t.Errorf("put: %v; want %v", err, c.want)
			}
			entries, err := os.ReadDir(filepath.Join(dir, scenariosDir))
			if err != nil || len(entries) != 0 || s.Used() != 0 {
				t.Errorf("%d files, %d bytes used, %v; want nothing", len(entries), s.Used(), err)
			}
		})
	}
}

func TestWhatAKilledPutLeftIsRemovedAndDoesNotCount(t *testing.T) {
	dir := t.TempDir()
	s := openScenarios(t, dir)
	if _, err := s.Put(digestOf("hills"), strings.NewReader("hills"), 0); err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(dir, scenariosDir, temporaryPrefix+"half")
	if err := os.WriteFile(half, bytes.Repeat([]byte("x"), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	if again := openScenarios(t, dir); again.Used() != 5 {
		t.Errorf("%d bytes used, want 5", again.Used())
	}
	if _, err := os.Stat(half); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the half is still there: %v", err)
	}
	store, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if keys, err := store.Keys(); err != nil || len(keys) != 0 {
		t.Errorf("runs %v, %v; scenarios are none", keys, err)
	}
}

func TestAScenarioThatIsUsedDoesNotExpire(t *testing.T) {
	dir := t.TempDir()
	s := openScenarios(t, dir)
	old := time.Now().Add(-time.Hour)
	for _, text := range []string{"hills", "sea"} {
		if _, err := s.Put(digestOf(text), strings.NewReader(text), 0); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, scenariosDir, digests.File(digestOf(text))), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if !s.Has(digestOf("sea")) {
		t.Fatal("the sea is not there")
	}
	deleted, err := s.Expire(time.Now().Add(-time.Minute))
	if err != nil || len(deleted) != 1 || deleted[0] != digestOf("hills") || s.Used() != 3 || s.Has(digestOf("hills")) {
		t.Errorf("deleted %v, %v, %d bytes used; want hills deleted", deleted, err, s.Used())
	}
}
