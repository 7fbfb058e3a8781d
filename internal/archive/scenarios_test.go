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
		if size, err := s.Put(digestOf("hills"), strings.NewReader("hills"), 0, Spare{}); err != nil || size != again {
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
			if _, err := s.Put(c.digest, c.content, c.quota, Spare{}); err == nil || (c.want != nil && !errors.Is(err, c.want)) {
				t.Errorf("put: %v; want %v", err, c.want)
			}
			entries, err := os.ReadDir(filepath.Join(dir, scenariosDir))
			if err != nil || len(entries) != 0 || s.Used() != 0 {
				t.Errorf("%d files, %d bytes used, %v; want nothing", len(entries), s.Used(), err)
			}
		})
	}
}

// atEnd calls a function before the end of a content.
type atEnd struct {
	io.Reader
	do func()
}

func (r *atEnd) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		r.do()
	}
	return n, err
}

func TestAScenarioCountsOnceIfItsSecondPutFails(t *testing.T) {
	dir := t.TempDir()
	s := openScenarios(t, dir)
	meanwhile := &atEnd{strings.NewReader("hills"), func() {
		begun, err := filepath.Glob(filepath.Join(dir, scenariosDir, temporaryPrefix+"*"))
		if err != nil || len(begun) != 1 {
			t.Fatalf("temporary files %v, %v; want one", begun, err)
		}
		if _, err := s.Put(digestOf("hills"), strings.NewReader("hills"), 0, Spare{}); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(begun[0]); err != nil {
			t.Fatal(err)
		}
	}}
	if _, err := s.Put(digestOf("hills"), meanwhile, 0, Spare{}); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("put without its file: %v; want an error", err)
	}
	if s.Used() != 5 {
		t.Errorf("%d bytes used, want the 5 of the first put", s.Used())
	}
}

func TestWhatAKilledPutLeftIsRemovedAndDoesNotCount(t *testing.T) {
	dir := t.TempDir()
	s := openScenarios(t, dir)
	if _, err := s.Put(digestOf("hills"), strings.NewReader("hills"), 0, Spare{}); err != nil {
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
		if _, err := s.Put(digestOf(text), strings.NewReader(text), 0, Spare{}); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, scenariosDir, digests.File(digestOf(text))), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if !s.Has(digestOf("sea")) {
		t.Fatal("the sea is not there")
	}
	deleted, err := s.Expire(Spare{Before: time.Now().Add(-time.Minute)})
	if err != nil || len(deleted) != 1 || deleted[0] != digestOf("hills") || s.Used() != 3 || s.Has(digestOf("hills")) {
		t.Errorf("deleted %v, %v, %d bytes used; want hills deleted", deleted, err, s.Used())
	}
}

// storeAged stores texts as scenarios of 10 bytes that were last used so many hours ago.
func storeAged(t *testing.T, s *Scenarios, dir string, hours map[string]int) {
	t.Helper()
	for text, ago := range hours {
		if _, err := s.Put(digestOf(text), strings.NewReader(text), 0, Spare{}); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-time.Duration(ago) * time.Hour)
		if err := os.Chtimes(filepath.Join(dir, scenariosDir, digests.File(digestOf(text))), at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// has reports whether a text is stored, without a use of it.
func has(t *testing.T, dir, text string) bool {
	t.Helper()
	_, err := os.Stat(filepath.Join(dir, scenariosDir, digests.File(digestOf(text))))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func TestSpareScenariosMakeRoomTheLongestUnusedFirst(t *testing.T) {
	dir := t.TempDir()
	s := openScenarios(t, dir)
	var told []string
	s.OnDelete = func(digest string) { told = append(told, digest) }
	storeAged(t, s, dir, map[string]int{"older-----": 5, "old-------": 4, "needed----": 6, "used------": 0})
	spare := Spare{Before: time.Now().Add(-time.Hour), Needed: map[string]bool{digestOf("needed----"): true}}
	put := func(text string) error {
		_, err := s.Put(digestOf(text), strings.NewReader(text), 40, spare)
		return err
	}
	if err := errors.Join(s.CheckRoom(10, 40, spare), put("first-----")); err != nil {
		t.Fatal(err)
	}
	if has(t, dir, "older-----") || !has(t, dir, "old-------") || len(told) != 1 || told[0] != digestOf("older-----") {
		t.Errorf("deleted %v; want older alone, which was unused for longest", told)
	}
	if err := errors.Join(s.CheckRoom(10, 40, spare), put("second----")); err != nil {
		t.Fatal(err)
	}
	if err := s.CheckRoom(10, 40, spare); !errors.Is(err, ErrScenarioQuota) {
		t.Errorf("room for a third: %v; want none", err)
	}
	if err := put("third-----"); !errors.Is(err, ErrScenarioQuota) {
		t.Errorf("put a third: %v; want no room", err)
	}
	if !has(t, dir, "needed----") || !has(t, dir, "used------") || has(t, dir, "old-------") || s.Used() != 40 {
		t.Errorf("%d bytes used; want needed and used to stay, and old to be deleted", s.Used())
	}
}

func TestNothingIsDeletedForAScenarioThatHasRoom(t *testing.T) {
	dir := t.TempDir()
	s := openScenarios(t, dir)
	storeAged(t, s, dir, map[string]int{"old-------": 5})
	for text, quota := range map[string]int64{"bounded---": 20, "unbounded-": 0} {
		if _, err := s.Put(digestOf(text), strings.NewReader(text), quota, Spare{Before: time.Now()}); err != nil {
			t.Fatal(err)
		}
		if !has(t, dir, "old-------") {
			t.Fatalf("with a quota of %d the old one is deleted for nothing", quota)
		}
		if err := s.root.Remove(digests.File(digestOf(text))); err != nil {
			t.Fatal(err)
		}
		s.used -= 10
	}
}

func TestOnAFullVolumeSpareScenariosMakeRoomAndTheReserveStays(t *testing.T) {
	dir := t.TempDir()
	s := openScenarios(t, dir)
	storeAged(t, s, dir, map[string]int{"old-------": 5})
	s.space.checkedAt, s.space.bytesLeft = time.Now().Add(time.Hour), 5
	spare := Spare{Before: time.Now().Add(-time.Hour)}
	put := func(text string) error {
		_, err := s.Put(digestOf(text), strings.NewReader(text), 0, spare)
		return err
	}
	if err := errors.Join(s.CheckRoom(15, 0, spare), put("new-------")); err != nil {
		t.Fatal(err)
	}
	if has(t, dir, "old-------") || !has(t, dir, "new-------") {
		t.Error("the spare scenario has not made room for the new one")
	}
	for what, err := range map[string]error{"room": s.CheckRoom(10, 0, spare), "another one": put("another---")} {
		if !errors.Is(err, ErrFull) {
			t.Errorf("%s: %v; want the volume full, as 5 bytes are left", what, err)
		}
	}
	if s.space.bytesLeft != 5 {
		t.Errorf("%d bytes are left after the refusal; want 5", s.space.bytesLeft)
	}
}
