// Package progress runs a list of steps and shows at every moment the running
// step, how long it has taken and what is left.
package progress

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	terminalRefresh = 200 * time.Millisecond
	logFirstLine    = time.Second
	logNextLines    = 15 * time.Second
)

// Step is one named part of a command's work.
type Step struct {
	Label string
	// Expect is how long the step is likely to take; zero if unknown.
	Expect time.Duration
	Do     func(ctx context.Context, h *Handle) error
}

// Handle lets a running step show its progress.
type Handle struct {
	mu     sync.Mutex
	detail string
	result string
}

// Detail replaces the short text behind the step's label.
func (h *Handle) Detail(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.detail = fmt.Sprintf(format, args...)
}

// Result sets the text that stays behind the label after the step.
func (h *Handle) Result(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.result = fmt.Sprintf(format, args...)
}

func (h *Handle) texts() (detail, result string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.detail, h.result
}

// Reporter writes the progress of steps to a terminal or a log.
type Reporter struct {
	out      io.Writer
	terminal bool
	columns  func() int
	now      func() time.Time
	mu       sync.Mutex
}

// New returns a reporter for out, which refreshes in place if out is a terminal.
func New(out *os.File) *Reporter {
	columns := func() int {
		size, err := unix.IoctlGetWinsize(int(out.Fd()), unix.TIOCGWINSZ)
		if err != nil || size.Col == 0 {
			return 0
		}
		return int(size.Col)
	}
	_, err := unix.IoctlGetTermios(int(out.Fd()), unix.TCGETS)
	return &Reporter{out: out, terminal: err == nil, columns: columns, now: time.Now}
}

// Run runs the steps in order and stops at the first which fails.
func (r *Reporter) Run(ctx context.Context, steps []Step) error {
	for i, s := range steps {
		left := time.Duration(0)
		for _, later := range steps[i+1:] {
			left += later.Expect
		}
		if err := r.runOne(ctx, s, i+1, len(steps), left); err != nil {
			return err
		}
	}
	return nil
}

// runOne runs one step as number index of total; after is the time that the
// steps behind it are likely to take.
func (r *Reporter) runOne(ctx context.Context, s Step, index, total int, after time.Duration) error {
	h, start := &Handle{}, r.now()
	line := func() Line {
		detail, _ := h.texts()
		l := Line{Index: index, Total: total, Label: s.Label, Detail: detail, Elapsed: r.now().Sub(start)}
		l.Left = max(s.Expect-l.Elapsed, 0) + after
		return l
	}
	done := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() { r.watch(line, done) })
	err := s.Do(ctx, h)
	close(done)
	watcher.Wait()

	last := line()
	last.Left = 0
	_, last.Detail = h.texts()
	last.State = Done
	if err != nil {
		last.State = Failed
	}
	r.print(last.String(), true)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Label, err)
	}
	return nil
}

// watch prints the line of a running step until done is closed.
func (r *Reporter) watch(line func() Line, done <-chan struct{}) {
	wait := logFirstLine
	if r.terminal {
		wait = terminalRefresh
		r.print(line().String(), false)
	}
	for {
		select {
		case <-done:
			return
		case <-time.After(wait):
			r.print(line().String(), false)
			if !r.terminal {
				wait = logNextLines
			}
		}
	}
}

func (r *Reporter) print(text string, final bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.terminal {
		fmt.Fprintln(r.out, text)
		return
	}
	if width := r.columns(); width > 0 && !final {
		text = clip(text, width-1)
	}
	end := ""
	if final {
		end = "\n"
	}
	fmt.Fprintf(r.out, "\r\x1b[K%s%s", text, end)
}

func clip(text string, width int) string {
	runes := []rune(text)
	if width <= 0 || len(runes) <= width {
		return text
	}
	return string(runes[:width-1]) + "…"
}

// State says where a step is.
type State int

// The states of a step.
const (
	Running State = iota
	Done
	Failed
)

// Line is the displayed state of one step.
type Line struct {
	Index, Total  int
	Label, Detail string
	Elapsed, Left time.Duration
	State         State
}

// String renders the line, e.g. "[3/9] build Kubernetes 2m31s … (812 packages; about 4m left)".
func (l Line) String() string {
	var b strings.Builder
	if l.Total > 0 {
		fmt.Fprintf(&b, "[%d/%d] ", l.Index, l.Total)
	}
	fmt.Fprintf(&b, "%s %s", l.Label, Short(l.Elapsed))
	switch l.State {
	case Running:
		b.WriteString(" …")
	case Failed:
		b.WriteString(" FAILED")
	}
	notes := []string{}
	if l.Detail != "" {
		notes = append(notes, l.Detail)
	}
	if l.Left >= 10*time.Second {
		notes = append(notes, "about "+Short(l.Left.Round(10*time.Second))+" left")
	}
	if len(notes) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(notes, "; "))
	}
	return b.String()
}

// Short renders a duration for people: "0.4s", "12s", "2m31s", "1h02m".
func Short(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
}
