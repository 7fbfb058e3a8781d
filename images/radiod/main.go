// radiod emulates the radio networks of one Kubernetes node.
//
//	radiod [flags]               the parent: holds the TAPs, and runs the data plane and workers; it
//	                             becomes the program `radio` beside this one, if there is one
//	radiod worker [flags]        a worker; only a parent can start it
//	radiod plane                 the data plane; only a parent can start it
//	radiod install-cni --to DIR  copies the CNI plugin `radio` into a folder of the host
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radiod"
	"vignette.dev/vignette/internal/radiod/dataplane"
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
		case holder.PlaneCommand:
			return dataplane.Run(log.With("part", "data plane"))
		case "install-cni":
			return installCNI(arguments[1:])
		}
	}
	return runParent(log.With("part", "parent"), arguments)
}

func runParent(log *slog.Logger, arguments []string) error {
	if _, err := radiod.ParseOptions(arguments); err != nil {
		return err // fail here rather than in each worker
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("own program: %w", err)
	}
	// The plugin's program is a third of this one's size, which includes a client of the API server.
	err = holder.BecomeParent(filepath.Join(filepath.Dir(self), "radio"), self, arguments)
	log.Warn("the parent uses more memory than necessary", "error", err)
	return holder.RunParent(log, append([]string{self}, arguments...))
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
