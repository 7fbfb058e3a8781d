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

// ledgerFile holds the ids of actions that have been carried out, one per line. Its leading dot
// keeps it out of the shipped logs.
const ledgerFile = ".executed"

// ledger remembers across restarts of the agent which actions were carried out.
type ledger struct {
	path string
	// sync puts the file on disk; notSynced hears where it does not.
	sync      func(*os.File) error
	notSynced func(error)
	mu        sync.Mutex
	ids       map[string]bool
}

// ledgerBytes are kept free for it: some thousand actions.
const ledgerBytes = 64 << 10

func openLedger(logDir string) (*ledger, error) {
	l := &ledger{path: filepath.Join(logDir, ledgerFile), sync: (*os.File).Sync, notSynced: func(error) {}, ids: map[string]bool{}}
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, fmt.Errorf("executed actions: %w", err)
	}
	defer f.Close()
	// A disk that is full later must not keep an action from being carried out; where room cannot be kept, that is said then.
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

// add writes the id down. It comes before the deed: a crash in between loses an action, which shows, whereas the other order could repeat a
// start, which would not. What this program leaves behind in the kernel's cache outlives it. Only the end of the machine does not spare that, and by then
// it is on disk unless it was written the moment before: nobody waits for a disk, which many nodes that begin at once keep busy for a second.
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
			l.notSynced(fmt.Errorf("executed actions: %w", err))
		}
	}()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids[id] = true
	return nil
}

// verdict on an action of a plan.
type verdict int

const (
	known    verdict = iota // accepted or carried out before
	accepted                // to be carried out
	tooLate                 // a start whose time had passed when it arrived
	refused                 // makes no sense
)

// judge decides what becomes of an action that has just arrived.
func judge(a runapi.Action, due, now time.Time, seen func(id string) bool) (verdict, error) {
	switch {
	case a.ID == "" || strings.ContainsAny(a.ID, "\r\n"):
		return refused, fmt.Errorf("action with id %q: want an id on one line", a.ID)
	case seen(a.ID):
		return known, nil
	case a.Verb != runapi.VerbStart && a.Verb != runapi.VerbStop:
		return refused, fmt.Errorf("action %s has verb %q: want start or stop", a.ID, a.Verb)
	case a.AtNanoseconds < 0:
		return refused, fmt.Errorf("action %s is at %d ns: want 0 or more after T0", a.ID, a.AtNanoseconds)
	case a.Verb == runapi.VerbStart && !due.After(now):
		return tooLate, nil
	}
	return accepted, nil // a late stop is carried out at once: without it the app would run on
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
