package holder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// WorkerSocket is the descriptor at which a worker finds the socket to its parent.
const WorkerSocket = 3

const (
	// restartDelay after a worker that ended at once; others are replaced without delay.
	restartDelay = 80 * time.Millisecond
	quickFailure = time.Second
	// maxFailures is the number of workers in a row that ended at once after which a parent without descriptors
	// gives up. Kubernetes then shows the failure.
	maxFailures = 20
	// stopGrace for a worker to end by itself.
	stopGrace = 5 * time.Second
)

// Supervise runs workers one after the other, until ctx ends. command makes the command of a worker. The
// socket to this process is added to it as descriptor WorkerSocket.
func (h *Holder) Supervise(ctx context.Context, log *slog.Logger, command func() *exec.Cmd) error {
	for failures := 0; ; {
		started := time.Now()
		err := h.runWorker(ctx, command())
		if ctx.Err() != nil {
			return nil
		}
		log.Error("the worker ended; starting another", "error", err, "held", h.Held(), "after", time.Since(started))
		if time.Since(started) > quickFailure {
			failures = 0
			continue
		}
		failures++
		if failures >= maxFailures && h.Held() == 0 {
			return fmt.Errorf("%d workers in a row ended at once, the last: %w", failures, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(restartDelay):
		}
	}
}

func (h *Holder) runWorker(ctx context.Context, command *exec.Cmd) error {
	parent, worker, err := Pair()
	if err != nil {
		return err
	}
	defer parent.Close()
	command.ExtraFiles = []*os.File{worker}
	err = command.Start()
	_ = worker.Close()
	if err != nil {
		return fmt.Errorf("start the worker: %w", err)
	}
	stop := context.AfterFunc(ctx, func() {
		_ = command.Process.Signal(unix.SIGTERM)
		time.AfterFunc(stopGrace, func() { _ = command.Process.Kill() })
	})
	defer stop()
	served := make(chan error, 1)
	go func() { served <- h.Serve(parent) }()
	err = command.Wait()
	_ = parent.Close() // ends Serve, if the end of the worker did not
	return errors.Join(err, <-served)
}
