package holder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// The arguments that make a program the parent, whose arguments are the worker's program and radiod's flags, or the data plane.
const (
	ParentCommand = "hold"
	PlaneCommand  = "plane"
)

// parentGCPercent is low because the parent uses little memory and is not in a hurry.
const parentGCPercent = 20

// RunParent supervises a data plane, which is this program too, and workers, which are started as PROGRAM worker FLAGS, until
// a signal ends the process.
func RunParent(log *slog.Logger, arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("want the worker's program, and radiod's flags")
	}
	program, flags := arguments[0], arguments[1:]
	runtime.GOMAXPROCS(1) // it only waits
	debug.SetGCPercent(parentGCPercent)
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	return new(Holder).Supervise(ctx, log, Programs{
		Plane: func() *exec.Cmd {
			plane := child("/proc/self/exe", PlaneCommand)
			plane.Args[0] = os.Args[0]
			return plane
		},
		Worker: func() *exec.Cmd { return child(program, append([]string{"worker"}, flags...)...) },
	})
}

func child(program string, arguments ...string) *exec.Cmd {
	command := exec.Command(program, arguments...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	// A terminal's or runtime's signal to the group must not reach the child directly.
	command.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	return command
}

// BecomeParent replaces this process with a smaller program as the parent, which lives as long as the nodes'
// radios. It returns only on failure.
func BecomeParent(parent, program string, flags []string) error {
	err := unix.Exec(parent, append([]string{program, ParentCommand, program}, flags...), os.Environ())
	return fmt.Errorf("%s as the parent: %w", parent, err)
}
