package messagelog

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// numbersOf opens the numbers of a sender in a process of the planned start.
func numbersOf(t *testing.T, sender string, start time.Time) Numbers {
	t.Helper()
	n, err := OpenNumbers(sender, start)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.file.Close() })
	return n
}

func TestNumbersGoOnAfterACrashAndAfterAnotherStart(t *testing.T) {
	t.Setenv(EnvPath, filepath.Join(t.TempDir(), "messages-1.jsonl"))
	first, second := time.Unix(1000, 0), time.Unix(1900, 0)
	for _, c := range []struct {
		name         string
		start        time.Time
		before, last int64
		noted        int64
	}{
		{"first life", first, 0, 0, 60},
		{"after a crash", first, 0, 60, 63},
		{"after another start", second, 63, 63, 64},
		{"after a crash of the second life", second, 63, 64, 70},
		{"after a crash without a further message", second, 63, 70, 70},
	} {
		n := numbersOf(t, "nor/chat", c.start)
		if n.Before != c.before || n.Last != c.last {
			t.Errorf("%s: %d before this start, %d the last; want %d and %d", c.name, n.Before, n.Last, c.before, c.last)
		}
		if err := n.Note(c.noted); err != nil {
			t.Fatal(err)
		}
	}
	if other := numbersOf(t, "nor/other", second); other.Last != 0 {
		t.Errorf("another sender with the same log goes on after %d; want 0", other.Last)
	}
}

func TestNumbersOutliveTheLogsBeginning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "messages-1.jsonl")
	t.Setenv(EnvPath, path)
	if err := os.WriteFile(path, make([]byte, 2*maxLine), 0o600); err != nil { // as a hole reads
		t.Fatal(err)
	}
	if err := numbersOf(t, "X", time.Unix(1000, 0)).Note(7); err != nil {
		t.Fatal(err)
	}
	if n := numbersOf(t, "X", time.Unix(1000, 0)); n.Last != 7 {
		t.Errorf("the last is %d; want 7", n.Last)
	}
}

func TestANumberThatAFullDiskCutOffIsNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "messages-1.jsonl")
	t.Setenv(EnvPath, path)
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), ".messages-1.jsonl.X"), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := numbersOf(t, "X", time.Unix(1000, 0)); n.Last != 0 {
		t.Errorf("the last is %d; want 0", n.Last)
	}
}
