// Package run starts other programs with their output in a log file, so that
// a failure can show the last lines and say where the rest is.
package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const shownLines = 20

// Failure is the error of a failed program.
type Failure struct {
	Command string
	LogPath string
	Tail    []string
	Err     error
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s: %v; last lines of %s:\n  %s", f.Command, f.Err, f.LogPath, strings.Join(f.Tail, "\n  "))
}

func (f *Failure) Unwrap() error { return f.Err }

// Command is a program to run.
type Command struct {
	Name string
	Args []string
	Dir  string
	// Env is added to this process's environment.
	Env   []string
	Stdin io.Reader
	// OnLine is called with each line of the program's output.
	OnLine func(line string)
}

// Logged runs the program with its output appended to logPath.
func Logged(ctx context.Context, logPath string, c Command) error {
	if err := os.MkdirAll(filepath.Dir(logPath), 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	line := strings.Join(append([]string{c.Name}, c.Args...), " ")
	fmt.Fprintf(log, "+ %s\n", line)
	cmd := c.build(ctx)
	out := io.Writer(log)
	if c.OnLine != nil {
		out = io.MultiWriter(log, &lineWriter{onLine: c.OnLine})
	}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return &Failure{Command: brief(line), LogPath: logPath, Tail: Tail(logPath, shownLines), Err: err}
	}
	return nil
}

// Output runs the program and returns its standard output; its standard
// error becomes part of the error.
func Output(ctx context.Context, c Command) (string, error) {
	cmd := c.build(ctx)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		said := strings.TrimSpace(problems.String())
		return out.String(), fmt.Errorf("%s: %w: %s", brief(strings.Join(append([]string{c.Name}, c.Args...), " ")), err, said)
	}
	return out.String(), nil
}

func (c Command) build(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.Name, c.Args...)
	cmd.Dir, cmd.Stdin = c.Dir, c.Stdin
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

func brief(line string) string {
	if len(line) > 100 {
		return line[:100] + "…"
	}
	return line
}

// Tail returns the last n lines of a file, or nothing if it cannot be read.
func Tail(path string, n int) []string {
	const window = 16 << 10
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(size-window, 0), io.SeekStart)
	}
	data, err := io.ReadAll(f)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return lines[max(len(lines)-n, 0):]
}

// lineWriter calls onLine for each complete line written to it.
type lineWriter struct {
	rest   []byte
	onLine func(string)
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, found := bytes.Cut(w.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		w.onLine(string(line))
		w.rest = rest
	}
}

// ExitStatus is an error that means: exit with this status, without a message.
type ExitStatus int

func (s ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// Exit turns the error of a program on the terminal into an ExitStatus.
func Exit(err error) error {
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		return ExitStatus(failed.ExitCode())
	}
	return err
}
