package archive

import (
	"fmt"
	"testing"
	"time"
)

func appendTo(t *testing.T, run *Run, log string, offset int64, text string) {
	t.Helper()
	if _, err := run.Append(log, offset, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func TestLogsGrowWhetherOrNotTheyAreKeptOpen(t *testing.T) {
	run := openRun(t, t.TempDir(), 0)
	run.open.maxOpen = 2
	logs := make([]string, 5)
	for i := range logs {
		logs[i] = fmt.Sprintf("logs/nor/bft/log-%d.log", i)
	}
	for round := range 3 {
		for _, log := range logs {
			appendTo(t, run, log, int64(4*round), "line")
		}
	}
	if len(run.open.logs) != 2 {
		t.Errorf("%d logs are kept open; want 2", len(run.open.logs))
	}
	for _, log := range logs {
		if got := read(t, run, log); got != "linelineline" {
			t.Errorf("%s has %q; want all three lines", log, got)
		}
	}
}

func TestALogWhoseFileWasLostIsOpenedAnew(t *testing.T) {
	run := openRun(t, t.TempDir(), 0)
	const log = "logs/nor/bft/stdout-1.log"
	appendTo(t, run, log, 0, "line")
	if err := run.files[log].file.Close(); err != nil { // as a network file system does
		t.Fatal(err)
	}
	if _, err := run.Append(log, 4, []byte("line")); err == nil {
		t.Fatal("an append to a closed file succeeded")
	}
	appendTo(t, run, log, 4, "line")
	if got := read(t, run, log); got != "lineline" {
		t.Errorf("the log has %q; want both lines", got)
	}
}

func TestIdleLogsMakeRoomForThoseThatGrow(t *testing.T) {
	run := openRun(t, t.TempDir(), 0)
	run.open.maxOpen = 1
	appendTo(t, run, "logs/nor/bft/idle.log", 0, "one")
	run.files["logs/nor/bft/idle.log"].grown = time.Now().Add(-2 * idleAfter)
	appendTo(t, run, "logs/nor/bft/new.log", 0, "two")
	if run.files["logs/nor/bft/idle.log"].file != nil || run.files["logs/nor/bft/new.log"].file == nil {
		t.Error("want the idle log closed and the new one kept open")
	}
	appendTo(t, run, "logs/nor/bft/idle.log", 3, "more")
	if got := read(t, run, "logs/nor/bft/idle.log"); got != "onemore" {
		t.Errorf("the idle log has %q; want onemore", got)
	}
}

func TestALogThatWasClosedGrowsOn(t *testing.T) {
	run := openRun(t, t.TempDir(), 0)
	appendTo(t, run, testLog, 0, "one")
	run.CloseLogs()
	if len(run.open.logs) != 0 {
		t.Errorf("%d logs are still open; want none", len(run.open.logs))
	}
	appendTo(t, run, testLog, 3, "two")
	if got := read(t, run, testLog); got != "onetwo" {
		t.Errorf("archived %q; want onetwo", got)
	}
}

func TestNothingStaysOpenOfARunThatIsSealedOrClosed(t *testing.T) {
	for name, end := range map[string]func(*Run) error{
		"sealed": func(r *Run) error { _, err := r.Seal(); return err },
		"closed": (*Run).Close,
	} {
		run := openRun(t, t.TempDir(), 0)
		appendTo(t, run, testLog, 0, "one")
		if len(run.open.logs) != 1 {
			t.Fatalf("%s: %d logs are open before; want 1", name, len(run.open.logs))
		}
		if err := end(run); err != nil {
			t.Fatal(err)
		}
		if len(run.open.logs) != 0 {
			t.Errorf("%s: %d logs are still open; want none", name, len(run.open.logs))
		}
		if _, err := run.Append(testLog, 3, []byte("more")); err == nil || len(run.open.logs) != 0 {
			t.Errorf("%s: append: error %v, %d logs open; want an error and none", name, err, len(run.open.logs))
		}
	}
}
