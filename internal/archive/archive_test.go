package archive

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"
)

var testKey = Key{Namespace: "team-nor", Name: "quickstart", UID: "0b6fd5cc-1f7c-4c0e-9d7f-6c1b6a3c2b10"}

const testLog = "logs/nor/bft/messages-1.jsonl"

func openRun(t testing.TB, dir string, quota int64) *Run {
	t.Helper()
	store, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	run, err := store.Run(testKey, quota)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close(); store.Close() })
	return run
}

func read(t testing.TB, run *Run, path string) string {
	t.Helper()
	f, err := run.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAppendsByOffset(t *testing.T) {
	run := openRun(t, t.TempDir(), 0)
	steps := []struct {
		name      string
		offset    int64
		piece     string
		size      int64
		wantError string
		archived  string
	}{
		{"the first piece", 0, "abc", 3, "", "abc"},
		{"the same again", 0, "abc", 3, "", "abc"},
		{"a gap", 5, "x", 3, "want the archived size 3", "abc"},
		{"an overlap with the same bytes", 2, "cde", 5, "", "abcde"},
		{"an overlap with other bytes", 3, "XXf", 5, "other bytes at offset 3", "abcde"},
		{"nothing at the end", 5, "", 5, "", "abcde"},
		{"a negative offset", -1, "x", 0, "0 or more", "abcde"},
	}
	for _, step := range steps {
		size, err := run.Append(testLog, step.offset, []byte(step.piece))
		if size != step.size || (err == nil) != (step.wantError == "") || (err != nil && !strings.Contains(err.Error(), step.wantError)) {
			t.Errorf("%s: size %d, error %v; want %d, %q", step.name, size, err, step.size, step.wantError)
		}
		if got := read(t, run, testLog); got != step.archived {
			t.Errorf("%s: archived %q, want %q", step.name, got, step.archived)
		}
	}
}

func TestAnEmptyLogExistsAfterAnEmptyAppend(t *testing.T) {
	run := openRun(t, t.TempDir(), 0)
	if _, err := run.Append(testLog, 0, nil); err != nil {
		t.Fatal(err)
	}
	if got := read(t, run, testLog); got != "" {
		t.Fatalf("archived %q, want an empty file", got)
	}
}

func TestNoPathLeadsOutOfARun(t *testing.T) {
	dir := t.TempDir()
	run := openRun(t, dir, 0)
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, testKey.String(), "logs")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"../../../secret", "/secret", "logs/../../../secret", "logs/secret", "", ".", "logs//secret", "logs/./secret", "logs/a\x00b"} {
		if f, err := run.Open(path); err == nil {
			f.Close()
			t.Errorf("%q could be read", path)
		}
		if _, err := run.Append(path, 0, []byte("x")); err == nil {
			t.Errorf("%q could be appended to", path)
		}
		if _, err := run.Replace(path, strings.NewReader("x")); err == nil {
			t.Errorf("%q could be replaced", path)
		}
	}
}

func TestInvalidKeysAreRefused(t *testing.T) {
	store, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, key := range []Key{{}, {"a", "b", ".."}, {"..", "b", "u"}, {"a", "b/c", "u"}, {"a", "..", "u"}, {"A", "b", "u"}, {"a", "b", ".deleted-u"}} {
		if _, err := store.Run(key, 0); err == nil {
			t.Errorf("%+v was accepted", key)
		}
		if _, err := store.Discard(key); err == nil {
			t.Errorf("%+v could be discarded", key)
		}
	}
}

func TestTheQuotaBoundsAllLogsOfARunAlsoAfterARestart(t *testing.T) {
	dir := t.TempDir()
	run := openRun(t, dir, 10)
	if _, err := run.Append(testLog, 0, []byte("12345678")); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*Run{run, openRun(t, dir, 10)} {
		if _, err := r.Append("radio/host-a.jsonl", 0, []byte("123")); !errors.Is(err, ErrQuota) {
			t.Fatalf("error %v, want the quota's", err)
		}
	}
	if size, err := run.Append(testLog, 8, []byte("90")); size != 10 || err != nil {
		t.Fatalf("size %d, error %v: want the quota to be used up to the last byte", size, err)
	}
}

func TestTheNumberOfLogsOfARunIsBounded(t *testing.T) {
	run := openRun(t, t.TempDir(), 0)
	run.maxLogs = 2
	for _, path := range []string{testLog, "logs/nor/bft/b.log"} {
		if _, err := run.Append(path, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := run.Append("logs/nor/bft/c.log", 0, nil); !errors.Is(err, ErrQuota) || !strings.Contains(err.Error(), "2 logs") {
		t.Errorf("error %v, want the quota's with the number of logs", err)
	}
	if _, err := run.Append(testLog, 0, []byte("x")); err != nil {
		t.Errorf("a log that is there: %v", err)
	}
	if sealed, err := run.Seal(); err != nil || len(sealed) != 2 {
		t.Errorf("sealed %+v, %v; want both logs", sealed, err)
	}
}

func TestSealedLogsKeepTheirChecksum(t *testing.T) {
	run := openRun(t, t.TempDir(), 0)
	for path, text := range map[string]string{testLog: "abc", "radio/host-a.jsonl": "{}\n"} {
		if _, err := run.Append(path, 0, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	sealed, err := run.Seal()
	if err != nil || len(sealed) != 2 {
		t.Fatalf("sealed %v, %v", sealed, err)
	}
	const sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-2's example "abc"
	if s := sealed[0]; s.Path != testLog || s.Size != 3 || s.SHA256 != sum || !s.Torn {
		t.Errorf("sealed %+v, want %s torn with checksum %s", s, testLog, sum)
	}
	if sealed[1].Torn {
		t.Errorf("%s is whole", sealed[1].Path)
	}
	if _, err := run.Append(testLog, 3, []byte("d")); !errors.Is(err, ErrSealed) {
		t.Errorf("append after the seal: %v", err)
	}
	if _, err := run.Append(testLog, 0, []byte("abc")); err != nil {
		t.Errorf("the same bytes again after the seal: %v", err)
	}
}

func TestTheSealHasALogThatAnAppendBeganBefore(t *testing.T) {
	run := openRun(t, t.TempDir(), 0)
	const log = "logs/nor/bft/stdout-1.log"
	run.space.mu.Lock() // keeps the append between its look at the seal and its write
	appended := make(chan error)
	go func() {
		_, err := run.Append(log, 0, []byte("line"))
		appended <- err
	}()
	for lf := run.logFile(log); lf.mu.TryLock(); {
		lf.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	sealed := make(chan []Sealed, 1)
	go func() {
		logs, err := run.Seal()
		if err != nil {
			t.Error(err)
		}
		sealed <- logs
	}()
	select {
	case logs := <-sealed:
		t.Errorf("the seal has %+v and did not wait for the append", logs)
		run.space.mu.Unlock()
		<-appended
	case <-time.After(100 * time.Millisecond):
		run.space.mu.Unlock()
		if err, logs := <-appended, <-sealed; err != nil || len(logs) != 1 || logs[0].Path != log || logs[0].Size != 4 {
			t.Errorf("appended with %v, sealed %+v; want the log with its line", err, logs)
		}
	}
}

func TestReplaceIsAtomic(t *testing.T) {
	dir := t.TempDir()
	run := openRun(t, dir, 0)
	if _, err := run.Replace("results/results.json", strings.NewReader("old")); err != nil {
		t.Fatal(err)
	}
	torn := io.MultiReader(strings.NewReader("ne"), errorReader{})
	if _, err := run.Replace("results/results.json", torn); err == nil {
		t.Fatal("a torn source was accepted")
	}
	if got := read(t, run, "results/results.json"); got != "old" {
		t.Fatalf("archived %q, want the old content", got)
	}
	left := filepath.Join(dir, testKey.String(), "results", temporaryPrefix+"killed")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := openRun(t, dir, 0).Files()
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v: want results.json alone", files, err)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s is left: %v", left, err)
	}
}

func TestAVolumeWithoutRoomIsFullToRecordsToo(t *testing.T) {
	run := openRun(t, t.TempDir(), 0)
	for _, refusal := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		if _, err := run.Replace("results/results.json", iotest.ErrReader(refusal)); !errors.Is(err, ErrFull) {
			t.Errorf("%v: %v; want %v", refusal, err, ErrFull)
		}
	}
}

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, errors.New("torn") }

func TestDeletedRunsLeaveNothingAndOthersStay(t *testing.T) {
	dir := t.TempDir()
	store, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	other := testKey
	other.UID = "other"
	for _, key := range []Key{testKey, other} {
		run, err := store.Run(key, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run.Append(testLog, 0, []byte("x")); err != nil {
			t.Fatal(err)
		}
		run.Close()
	}
	deleteRun(t, store, testKey)
	if keys, err := store.Keys(); err != nil || len(keys) != 1 || keys[0] != other {
		t.Fatalf("keys %v, %v; want only %v", keys, err, other)
	}
	deleteRun(t, store, other)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Fatalf("left %v, %v; want nothing", entries, err)
	}
}

func deleteRun(t *testing.T, store *Store, key Key) {
	t.Helper()
	discarded, err := store.Discard(key)
	if err == nil {
		err = store.Erase(discarded)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestARunBeginsAnewWhileItsDiscardedFilesAreThere(t *testing.T) {
	dir := t.TempDir()
	store, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // twice, as the first ones may still be there
		run, err := store.Run(testKey, 0)
		if err != nil {
			t.Fatal(err)
		}
		if size, err := run.Append(testLog, 0, []byte("x")); size != 1 || err != nil {
			t.Fatalf("size %d, %v; want a new log", size, err)
		}
		if _, err := store.Discard(testKey); err != nil {
			t.Fatal(err)
		}
		run.Close()
		if keys, err := store.Keys(); err != nil || len(keys) != 0 {
			t.Fatalf("keys %v, %v; want none", keys, err)
		}
	}
	store.Close() // as after a crash before Erase
	if store, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left %v, %v; want nothing", entries, err)
	}
}

// FuzzAppend holds a log against a plain byte slice, whatever comes at whatever offset, with restarts in between.
func FuzzAppend(f *testing.F) {
	f.Add([]byte{0, 3, 0, 2, 3, 1, 9, 9, 255, 255})
	f.Fuzz(func(t *testing.T, script []byte) {
		dir := t.TempDir()
		run := openRun(t, dir, 0)
		var told, want []byte
		run.OnAppend = func(_ string, piece []byte) { told = append(told, piece...) }
		for ; len(script) >= 2 && len(want) < 1<<12; script = script[2:] {
			offset, length := int64(script[0]), int(script[1])
			if offset == 255 {
				run = openRun(t, dir, 0)
				run.OnAppend = func(_ string, piece []byte) { told = append(told, piece...) }
				continue
			}
			piece := bytes.Repeat([]byte{script[1] % 3}, length)
			good := offset <= int64(len(want)) && bytes.HasPrefix(piece, want[offset:min(int64(len(want)), offset+int64(length))])
			size, err := run.Append(testLog, offset, piece)
			if good && offset+int64(length) > int64(len(want)) {
				want = append(want[:offset], piece...)
			}
			if (err == nil) != good || size != int64(len(want)) {
				t.Fatalf("append %d bytes at %d: size %d, error %v; want size %d, good %v", length, offset, size, err, len(want), good)
			}
		}
		if !bytes.Equal(told, want) {
			t.Fatalf("OnAppend was told %v, want %v", told, want)
		}
		if len(want) > 0 && read(t, run, testLog) != string(want) {
			t.Fatalf("archived %v, want %v", read(t, run, testLog), want)
		}
	})
}

func FuzzPathsStayInside(f *testing.F) {
	f.Add("../x")
	f.Add("results/../../x")
	dir := f.TempDir()
	run := openRun(f, filepath.Join(mkdir(f, dir, "archive")), 0)
	f.Fuzz(func(t *testing.T, path string) {
		_, _ = run.Replace(path, strings.NewReader("x"))
		_, _ = run.Append(path, 0, []byte("x"))
		for folder, names := range map[string]int{dir: 1, filepath.Join(dir, "archive"): 1} {
			if entries, err := os.ReadDir(folder); err != nil || len(entries) != names {
				t.Fatalf("%q changed %s: %v, %v", path, folder, entries, err)
			}
		}
	})
}

func mkdir(t testing.TB, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.Mkdir(path, 0o750); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAnAppendDuringADeletionLeavesTheTeamsCountRight(t *testing.T) {
	store, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	run, err := store.Run(testKey, 0)
	if err != nil {
		t.Fatal(err)
	}
	const log = "logs/hq/bft/messages.jsonl"
	if err := run.reserve(log, 10); err != nil { // an append is about to write
		t.Fatal(err)
	}
	if err := run.Close(); err != nil { // the deletion comes in between
		t.Fatal(err)
	}
	run.release(10) // the folder is gone, so that nothing was written
	_ = run.reserve(log, 7)
	if used, _ := store.TeamUsed(testKey.Namespace); used != 0 {
		t.Errorf("the team has %d bytes after its only run is deleted; want none", used)
	}
}
