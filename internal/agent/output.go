package agent

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
)

// spoolBudget is how much output of all instances may still be spooled.
type spoolBudget struct{ bytesLeft atomic.Int64 }

// take grants up to n bytes.
func (b *spoolBudget) take(n int) int {
	for {
		left := b.bytesLeft.Load()
		granted := min(int64(n), max(left, 0))
		if b.bytesLeft.CompareAndSwap(left, left-granted) {
			return int(granted)
		}
	}
}

// giveBack returns granted bytes.
func (b *spoolBudget) giveBack(n int64) { b.bytesLeft.Add(n) }

// tee copies an instance's output to the container's output and into the spool, and keeps its end for error messages. It never
// blocks: a full spool must not stop the app.
type tee struct {
	mu        sync.Mutex
	spool     io.Writer
	container io.Writer
	budget    *spoolBudget
	// onFull is called once, when the spool accepts no more.
	onFull func()
	cutOff bool
	tail   tail
}

func (t *tee) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tail.add(p)
	_, _ = t.container.Write(p) // an error does not matter: the spool has it
	granted := 0
	if !t.cutOff {
		granted = t.budget.take(len(p))
		if n, err := t.spool.Write(p[:granted]); err != nil {
			granted = n
		}
	}
	if granted < len(p) && !t.cutOff {
		t.cutOff = true
		t.onFull()
	}
	return len(p), nil
}

func (t *tee) lastLines(n int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tail.lines(n)
}

// tailBytes of an instance's latest output are kept for messages.
const tailBytes = 4 << 10

// tail is the end of a stream.
type tail struct{ buf []byte }

func (t *tail) add(p []byte) {
	if len(p) > tailBytes {
		p = p[len(p)-tailBytes:]
	}
	if drop := len(t.buf) + len(p) - tailBytes; drop > 0 {
		t.buf = t.buf[:copy(t.buf, t.buf[drop:])]
	}
	t.buf = append(t.buf, p...)
}

// lines returns the last n lines, without empty ones at the end.
func (t *tail) lines(n int) string {
	lines := strings.Split(strings.TrimRight(string(t.buf), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// lockedWriter lets several instances share the container's output.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func openSpool(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return nil, fmt.Errorf("spool of output: %w", err)
	}
	return f, nil
}
