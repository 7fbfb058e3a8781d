package archive

import (
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	// maxOpenLogs of all runs, if the process may open at least four times as many files.
	maxOpenLogs = 4096
	// idleAfter is how long a log must not have grown before another one may take its place.
	idleAfter = 5 * time.Second
)

// openLogs keeps logs open between appends: opening one, folder by folder, costs more than writing its few lines.
// Logs beyond the limit are opened for each append.
type openLogs struct {
	maxOpen int

	mu    sync.Mutex
	logs  map[*logFile]struct{}
	swept time.Time
}

func newOpenLogs() *openLogs {
	most := maxOpenLogs
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil && limit.Cur/4 < maxOpenLogs {
		most = int(limit.Cur / 4)
	}
	return &openLogs{maxOpen: most, logs: map[*logFile]struct{}{}}
}

// keepOpen keeps the file of a locked log open, and reports whether there was a place for it.
func (o *openLogs) keepOpen(lf *logFile, f *os.File) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := time.Now(); len(o.logs) >= o.maxOpen && now.Sub(o.swept) > idleAfter {
		o.swept = now
		o.closeIdle(now)
	}
	if len(o.logs) >= o.maxOpen {
		return false
	}
	o.logs[lf], lf.file = struct{}{}, f
	return true
}

// closeIdle closes logs that do not grow. A locked log is in use.
func (o *openLogs) closeIdle(now time.Time) {
	for lf := range o.logs {
		if !lf.mu.TryLock() {
			continue
		}
		if now.Sub(lf.grown) > idleAfter {
			_ = lf.file.Close() // nothing is buffered
			lf.file = nil
			delete(o.logs, lf)
		}
		lf.mu.Unlock()
	}
}

// release closes a locked log, if it is open.
func (o *openLogs) release(lf *logFile) {
	if lf.file == nil {
		return
	}
	_ = lf.file.Close()
	lf.file = nil
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.logs, lf)
}
