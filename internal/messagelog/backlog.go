package messagelog

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// ErrLost tells that lines are lost: the file takes nothing, and no more can wait for it.
var ErrLost = errors.New("lines are lost")

// Backlog writes lines to a file that may refuse them for a while, as on a full disk. What it did not take, be it the rest of a line,
// waits in memory and goes before what comes next, so that no line is torn. Safe for use by several goroutines.
type Backlog struct {
	mu      sync.Mutex
	out     io.Writer
	limit   int
	waiting []byte
}

// NewBacklog writes to out, and keeps up to limit bytes waiting.
func NewBacklog(out io.Writer, limit int) *Backlog { return &Backlog{out: out, limit: limit} }

// Write adds whole lines. Those that wait are no error; an ErrLost is of these lines alone, none of which is written.
func (b *Backlog) Write(lines []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		n, err := b.out.Write(lines)
		if err == nil {
			return len(lines), nil
		}
		// The rest of a line that is there in part must follow, however long it is.
		if rest := lines[max(n, 0):]; n > 0 || len(rest) <= b.limit {
			b.waiting = append(b.waiting, rest...)
			return len(lines), nil
		}
		return 0, fmt.Errorf("%w: %w", ErrLost, err)
	}
	err := b.flush()
	if err != nil && len(b.waiting)+len(lines) > b.limit {
		return 0, fmt.Errorf("%w: %w", ErrLost, err)
	}
	b.waiting = append(b.waiting, lines...)
	if err == nil {
		_ = b.flush() // what is left waits
	}
	return len(lines), nil
}

// Flush tries again to write what waits. The error says how much waits on.
func (b *Backlog) Flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.flush()
}

func (b *Backlog) flush() error {
	if len(b.waiting) == 0 {
		return nil
	}
	n, err := b.out.Write(b.waiting)
	b.waiting = append(b.waiting[:0], b.waiting[max(n, 0):]...)
	if err != nil {
		return fmt.Errorf("%d bytes wait: %w", len(b.waiting), err)
	}
	return nil
}
