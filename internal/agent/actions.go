package agent

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/runapi"
)

// ledgerFile has the ids of executed actions, one per line. The dot excludes it from the shipped logs.
const ledgerFile = ".executed"

// ledger remembers executed actions across restarts of the agent.
type ledger struct {
	path string
	// sync puts the file on disk; onSyncError is called if that fails.
	sync        func(*os.File) error
	onSyncError func(error)
	mu          sync.Mutex
	ids         map[string]bool
}

// ledgerBytes are reserved for it on the disk: about a thousand actions.
const ledgerBytes = 64 << 10

func openLedger(logDir string) (*ledger, error) {
	l := &ledger{path: filepath.Join(logDir, ledgerFile), sync: (*os.File).Sync, onSyncError: func(error) {}, ids: map[string]bool{}}
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, fmt.Errorf("executed actions: %w", err)
	}
	defer f.Close()
	// A disk that fills up later must not prevent an action. If nothing can be reserved, the write fails then.
	_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, ledgerBytes)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if id := strings.TrimSpace(lines.Text()); id != "" {
			l.ids[id] = true
		}
	}
	return l, lines.Err()
}

func (l *ledger) has(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ids[id]
}

// add writes the id before the action is executed: a crash in between loses an action, which shows; the other order could
// repeat a start, which would not. The kernel's cache survives this program, so nobody waits for the disk, which many nodes
// starting at once keep busy for a second.
func (l *ledger) add(id string) error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return fmt.Errorf("executed actions: %w", err)
	}
	if _, err := f.WriteString(id + "\n"); err != nil {
		f.Close()
		return fmt.Errorf("executed actions: %w", err)
	}
	go func() {
		defer f.Close()
		if err := l.sync(f); err != nil {
			l.onSyncError(fmt.Errorf("executed actions: %w", err))
		}
	}()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids[id] = true
	return nil
}

// actionStatus of an action in a plan.
type actionStatus int

const (
	alreadyKnown actionStatus = iota // accepted or executed before
	accepted                         // to be executed
	tooLate                          // a start whose time had passed when it arrived
	invalid                          // its fields are wrong
)

// classifyAction decides about an action that has just arrived.
func classifyAction(a runapi.Action, at, now time.Time, seen func(id string) bool) (actionStatus, error) {
	switch {
	case a.ID == "" || strings.ContainsAny(a.ID, "\r\n"):
		return invalid, fmt.Errorf("action with id %q: want an id on one line", a.ID)
	case seen(a.ID):
		return alreadyKnown, nil
	case a.Verb != runapi.VerbStart && a.Verb != runapi.VerbStop:
		return invalid, fmt.Errorf("action %s has verb %q: want start or stop", a.ID, a.Verb)
	case a.AtNanoseconds < 0:
		return invalid, fmt.Errorf("action %s is at %d ns: want 0 or more after T0", a.ID, a.AtNanoseconds)
	case a.Verb == runapi.VerbStart && !at.After(now):
		return tooLate, nil
	}
	return accepted, nil // a late stop is executed at once, or the app would run on
}

// insert keeps actions in order of time, and those of the same time in order of arrival.
func insert(pending []runapi.Action, a runapi.Action) []runapi.Action {
	at, _ := slices.BinarySearchFunc(pending, a, func(x, y runapi.Action) int {
		if x.AtNanoseconds <= y.AtNanoseconds {
			return -1
		}
		return 1
	})
	return slices.Insert(pending, at, a)
}
