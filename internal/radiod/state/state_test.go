package state

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/clock"
)

func open(t *testing.T) (f Folder, directory string) {
	t.Helper()
	directory = t.TempDir()
	f, err := Open(directory)
	if err != nil {
		t.Fatal(err)
	}
	return f, directory
}

func TestBrokenFilesAreReportedAndTheOthersRead(t *testing.T) {
	f, directory := open(t)
	if none, err := Load[string](f, "things"); err != nil || len(none) != 0 {
		t.Errorf("at first %q, %v; want none", none, err)
	}
	for _, name := range []string{"one", "two/of two"} {
		if err := f.Put("things", name, name); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"broken.json": "{", "three.json.new": `"half`} {
		if err := os.WriteFile(filepath.Join(directory, "things", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	values, err := Load[string](f, "things")
	slices.Sort(values)
	if err == nil || !slices.Equal(values, []string{"one", "two/of two"}) {
		t.Errorf("read %q, %v; want both, and an error about the broken one", values, err)
	}
	if values, err = Load[string](f, "things"); err != nil || len(values) != 2 {
		t.Errorf("read again %q, %v; want both: the broken one was removed", values, err)
	}
	if err := f.Keep("things", "two/of two"); err != nil {
		t.Fatal(err)
	}
	if values, err = Load[string](f, "things"); err != nil || !slices.Equal(values, []string{"two/of two"}) {
		t.Errorf("kept %q, %v; want the one that was named", values, err)
	}
	if err := f.Remove("things", "never there"); err != nil {
		t.Errorf("remove what is not there: %v", err)
	}
}

func TestAFolderKeepsItsName(t *testing.T) {
	f, _ := open(t)
	first, err := f.Instance()
	if err != nil || first == "" {
		t.Fatalf("%q, %v", first, err)
	}
	if second, err := f.Instance(); err != nil || second != first {
		t.Errorf("%q, %v; want %q as before", second, err, first)
	}
}

func TestOnlyAnotherBootIsANewOne(t *testing.T) {
	f, directory := open(t)
	for try := range 2 {
		if rebooted, err := f.NewBoot(); err != nil || rebooted {
			t.Errorf("try %d: rebooted %v, %v; want the same boot", try, rebooted, err)
		}
	}
	if err := os.WriteFile(filepath.Join(directory, bootFile), []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if rebooted, err := f.NewBoot(); err != nil || !rebooted {
		t.Errorf("rebooted %v, %v; want another boot", rebooted, err)
	}
}

// Every node would lose its radio to a boot that was none.
func TestAWorkerThatIsKilledWhileItNotesTheBootMakesItNoNewOne(t *testing.T) {
	f, directory := open(t)
	path := filepath.Join(directory, bootFile)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if rebooted, err := f.NewBoot(); err != nil || rebooted {
		t.Errorf("rebooted %v, %v; want the same boot", rebooted, err)
	}
	before, err := os.Stat(path)
	if err != nil || before.Size() == 0 {
		t.Fatalf("%+v, %v; want the boot", before, err)
	}
	if err := os.Chtimes(path, time.Time{}, before.ModTime().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if rebooted, err := f.NewBoot(); err != nil || rebooted {
		t.Errorf("rebooted %v, %v; want the same boot", rebooted, err)
	}
	if after, err := os.Stat(path); err != nil || !after.ModTime().Before(before.ModTime()) {
		t.Errorf("%+v, %v; want a file that is not written again", after, err)
	}
}

func TestAWorkerIsSeenAsLongAsItRuns(t *testing.T) {
	f, _ := open(t)
	if seen := f.LastSeen(Worker); seen != 0 {
		t.Errorf("seen at %d before anybody ran", seen)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := f.WriteHeartbeat(ctx, Worker); err != nil {
		t.Fatal(err)
	}
	if ago := time.Duration(clock.Realtime() - f.LastSeen(Worker)); ago < 0 || ago > 10*time.Second {
		t.Errorf("seen %v ago; want just now", ago)
	}
}
