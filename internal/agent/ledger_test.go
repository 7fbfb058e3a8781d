package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"vignette.dev/vignette/internal/runapi"
)

func TestAStartDoesNotWaitForADiskThatIsBusy(t *testing.T) {
	a, in := newHolder(t, "sleep", "60")
	answer, synced := make(chan struct{}), make(chan struct{})
	a.ledger.sync = func(f *os.File) error { <-answer; defer close(synced); return f.Sync() }
	due := time.Now().Add(300 * time.Millisecond).Round(0)
	a.executeAction(t.Context(), runapi.Action{ID: "a1", Verb: runapi.VerbStart}, due)
	defer in.halt(syscall.SIGKILL)
	if !in.isActive() {
		t.Error("the app does not run; want it started while the disk is busy")
	}
	if text, err := os.ReadFile(a.ledger.path); string(text) != "a1\n" {
		t.Errorf("the ledger has %q, %v; want a1 in it for an agent that comes after this one", text, err)
	}
	close(answer)
	<-synced
}

func TestADiskThatFailsIsReported(t *testing.T) {
	a, _ := newHolder(t, "true")
	a.ledger.sync = func(*os.File) error { return errors.New("input/output error") }
	if err := a.ledger.add("a1"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the failure", func() bool { return strings.Contains(a.state.snapshot().Message, "input/output error") })
	waitFor(t, "its event", func() bool {
		text, _ := os.ReadFile(filepath.Join(a.logDir, eventsFile))
		return strings.Contains(string(text), "input/output error")
	})
}
