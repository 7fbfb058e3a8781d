package holder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
)

const (
	// ParentSocket is the descriptor at which worker and data plane find the socket to their parent.
	ParentSocket = 3
	// PlaneSocket is the descriptor at which a worker finds the socket to the data plane.
	PlaneSocket = 4
)

const (
	// restartDelay for each process in a row that ended at once, up to longestDelay; others are replaced without delay.
	restartDelay = 10 * time.Millisecond
	longestDelay = 80 * time.Millisecond
	quickFailure = time.Second
	// maxFailures is the number of processes in a row that ended at once after which a parent without descriptors
	// gives up. Kubernetes then shows the failure.
	maxFailures = 20
	// stopGrace for a process to end by itself.
	stopGrace = 5 * time.Second
)

// Programs make the commands of the processes. Their sockets are added to them.
type Programs struct{ Plane, Worker func() *exec.Cmd }

// supervision of the processes.
type supervision struct {
	*Holder
	Programs
	log      *slog.Logger
	failures int // in a row
}

// Supervise runs a data plane, and workers one after the other, until ctx ends. A worker ends with its data plane.
func (h *Holder) Supervise(ctx context.Context, log *slog.Logger, p Programs) error {
	s := &supervision{Holder: h, Programs: p, log: log}
	for {
		started := time.Now()
		err, gaveUp := s.runPlane(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if gaveUp == nil {
			gaveUp = s.note(ctx, "data plane", err, started)
		}
		if gaveUp != nil {
			return gaveUp
		}
	}
}

// note notes the end of a process, and waits before the next one. An error says that there is to be none.
func (s *supervision) note(ctx context.Context, what string, err error, started time.Time) error {
	s.log.Error("a process ended; starting another", "process", what, "error", err, "held", s.Held(), "after", time.Since(started))
	if time.Since(started) > quickFailure {
		s.failures = 0
		return nil
	}
	s.failures++
	if s.failures >= maxFailures && s.Held() == 0 {
		return fmt.Errorf("%d processes in a row ended at once, the last a %s: %w", s.failures, what, err)
	}
	clock.Pause(ctx, min(time.Duration(s.failures)*restartDelay, longestDelay))
	return nil
}

// runPlane runs a data plane with its workers, and returns how it ended, and why there is to be no other.
func (s *supervision) runPlane(ctx context.Context) (ended, gaveUp error) {
	control, theirs, err := Pair()
	if err != nil {
		return err, nil
	}
	command := s.Plane()
	command.ExtraFiles = []*os.File{theirs}
	err = command.Start()
	_ = theirs.Close()
	if err != nil {
		return errors.Join(fmt.Errorf("start the data plane: %w", err), control.Close()), nil
	}
	alive, dead := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		ended = command.Wait()
		dead()
	}()
	for ctx.Err() == nil && alive.Err() == nil && gaveUp == nil {
		started := time.Now()
		err := s.runWorker(ctx, alive, control)
		if ctx.Err() == nil && alive.Err() == nil {
			gaveUp = s.note(ctx, "worker", err, started)
		}
	}
	_ = control.Close() // ends the data plane
	late := time.AfterFunc(stopGrace, func() { _ = command.Process.Kill() })
	defer late.Stop()
	<-alive.Done()
	return ended, gaveUp
}

// runWorker runs a worker until it ends, ctx ends or the data plane is not alive any more.
func (s *supervision) runWorker(ctx, alive context.Context, control *net.UnixConn) error {
	parent, worker, err := Pair()
	if err != nil {
		return err
	}
	defer parent.Close()
	command := s.Worker()
	plane, err := ConnectTo(control)
	if err != nil {
		return errors.Join(err, worker.Close())
	}
	command.ExtraFiles = []*os.File{worker, plane}
	err = command.Start()
	_, _ = worker.Close(), plane.Close()
	if err != nil {
		return fmt.Errorf("start the worker: %w", err)
	}
	defer context.AfterFunc(alive, func() { _ = command.Process.Kill() })()
	defer context.AfterFunc(ctx, func() {
		_ = command.Process.Signal(unix.SIGTERM)
		time.AfterFunc(stopGrace, func() { _ = command.Process.Kill() })
	})()
	served := make(chan error, 1)
	go func() { served <- s.Serve(parent) }()
	err = command.Wait()
	_ = parent.Close() // ends Serve, if the end of the worker did not
	return errors.Join(err, <-served)
}

// ConnectTo makes a worker's connection to the data plane at the other end of control.
func ConnectTo(control *net.UnixConn) (worker *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	worker = os.NewFile(uintptr(fds[0]), "data plane")
	if err := errors.Join(Send(control, message{Do: "serve"}, fds[1]), unix.Close(fds[1])); err != nil {
		return nil, errors.Join(fmt.Errorf("the data plane takes no worker: %w", err), worker.Close())
	}
	return worker, nil
}

// NextWorker returns the connection of the next worker that a data plane's parent starts.
func NextWorker(parent *net.UnixConn) (*net.UnixConn, error) {
	_, fd, err := receive(parent)
	if err != nil {
		return nil, err
	}
	return Conn(os.NewFile(uintptr(fd), "worker")) //nolint:gosec // a descriptor
}
