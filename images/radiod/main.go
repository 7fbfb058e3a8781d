// radiod emulates the radio networks of one Kubernetes node.
//
//	radiod [flags]               the parent: holds the TAPs and runs workers, with the same flags
//	radiod worker [flags]        a worker; only a parent can start it
//	radiod install-cni --to DIR  copies the CNI plugin `radio` into a folder of the host
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radiod"
	"vignette.dev/vignette/internal/radiod/holder"
)

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	if err := run(ctx, log, os.Args[1:]); err != nil {
		log.Error("radiod ends", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, log *slog.Logger, arguments []string) error {
	if len(arguments) > 0 {
		switch arguments[0] {
		case "worker":
			return radiod.RunWorker(ctx, log.With("part", "worker"), arguments[1:])
		case "install-cni":
			return installCNI(arguments[1:])
		}
	}
	return runParent(ctx, log.With("part", "parent"), arguments)
}

func runParent(ctx context.Context, log *slog.Logger, arguments []string) error {
	if _, err := radiod.ParseOptions(arguments); err != nil {
		return err // rather here than in a worker, again and again
	}
	runtime.GOMAXPROCS(1) // it only waits
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("own program: %w", err)
	}
	return new(holder.Holder).Supervise(ctx, log, func() *exec.Cmd {
		command := exec.Command(self, append([]string{"worker"}, arguments...)...)
		command.Stdout, command.Stderr = os.Stdout, os.Stderr
		// A terminal's or runtime's signal to the group must not end a worker behind its parent's back.
		command.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
		return command
	})
}

func installCNI(arguments []string) error {
	flags := flag.NewFlagSet("install-cni", flag.ContinueOnError)
	from := flags.String("from", "/radio", "the plugin's program")
	to := flags.String("to", "", "folder where the container runtime looks for CNI plugins")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *to == "" {
		return fmt.Errorf("--to: want the folder of CNI plugins, such as /opt/cni/bin")
	}
	return radiod.InstallPlugin(*from, *to)
}
