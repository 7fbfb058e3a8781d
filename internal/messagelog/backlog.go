package messagelog

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// ErrLost reports lost lines: the file cannot be written, and no more lines can wait.
var ErrLost = errors.New("lines are lost")

// Backlog writes lines to a file that may refuse them for a while, as on a full disk. Unwritten bytes, such as the rest of a line,
// wait in memory and are written first, so that no line is torn. Safe for use by several goroutines.
type Backlog struct {
	mu      sync.Mutex
	out     io.Writer
	limit   int
	waiting []byte
}

// NewBacklog returns a Backlog that writes to out, with up to limit waiting bytes.
func NewBacklog(out io.Writer, limit int) *Backlog { return &Backlog{out: out, limit: limit} }

// Write adds complete lines. Waiting lines are no error. ErrLost concerns these lines only, none of which is written.
func (b *Backlog) Write(lines []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		n, err := b.out.Write(lines)
		if err == nil {
			return len(lines), nil
		}
		// The rest of a partly written line must follow, of any length.
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
		_ = b.flush() // the rest waits
	}
	return len(lines), nil
}

// Flush tries again to write waiting lines. The error says how many bytes still wait.
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
