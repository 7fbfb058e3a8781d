package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAFailureShowsTheLastLinesAndWhereTheRestIs(t *testing.T) {
	log := filepath.Join(t.TempDir(), "logs", "x.log")
	var seen []string
	err := Logged(t.Context(), log, Command{
		Name: "sh", Args: []string{"-c", "for i in $(seq 50); do echo line $i; done; echo wrong >&2; exit 3"},
		OnLine: func(line string) { seen = append(seen, line) },
	})
	failure := new(Failure)
	if !errors.As(err, &failure) {
		t.Fatalf("error %v", err)
	}
	text := err.Error()
	if !strings.Contains(text, log) || !strings.Contains(text, "wrong") || strings.Contains(text, "line 5\n") {
		t.Errorf("error %q", text)
	}
	if len(failure.Tail) != shownLines || len(seen) != 51 {
		t.Errorf("%d lines shown, %d seen", len(failure.Tail), len(seen))
	}
}

func TestAnInterruptedProgramEndsAndSaysSo(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	err := Logged(ctx, filepath.Join(t.TempDir(), "x.log"), Command{Name: "sleep", Args: []string{"600"}})
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 5*time.Minute {
		t.Errorf("error %v after %s", err, time.Since(began))
	}
}

func TestTheTailOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	var long strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&long, "line %d\n", i)
	}
	if err := os.WriteFile(path, []byte(long.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := Tail(path, 2); len(got) != 2 || got[0] != "line 4998" || got[1] != "line 4999" {
		t.Errorf("got %q", got)
	}
	if got := Tail(path+".none", 2); got != nil {
		t.Errorf("got %q", got)
	}
}
