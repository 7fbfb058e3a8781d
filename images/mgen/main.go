// Program mgen-app is one app whose traffic is an MGEN script; see package internal/mgenapp.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/appinstance"
	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/mgenapp"
)

const usage = `mgen-app runs Debian's mgen with a script and turns what mgen logs into the message log.

Usage:
  mgen-app --config FILE [--mgen PROGRAM] [--dir DIR]

FILE is JSON:
  {"instance": "hq/voice", "node": "hq", "nodes": {"198.18.0.1": "hq", "198.18.0.2": "veh-1"},
   "script": "0.0 LISTEN UDP 5000\n1.0 ON 1 UDP DST 198.18.0.2/5000 PERIODIC [10 200]\n"}

The script's times count from VIGNETTE_START_NS (nanoseconds since the Unix epoch; now without it). The message log goes to the file
that VIGNETTE_MESSAGE_LOG names, else to standard output. SIGTERM ends; SIGUSR1 turns all flows off and receives on. So does the time
of VIGNETTE_STOP_NS, if it is given.
`

func main() {
	flags := flag.NewFlagSet("mgen-app", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(flags.Output(), usage) }
	path := flags.String("config", "", "configuration file")
	program := flags.String("mgen", "/usr/bin/mgen", "mgen itself")
	dir := flags.String("dir", agentconfig.RunDir, "folder for the script that mgen reads")
	switch err := flags.Parse(os.Args[1:]); {
	case err == flag.ErrHelp:
		return
	case err != nil || *path == "" || flags.NArg() > 0:
		if err == nil {
			flags.Usage()
		}
		os.Exit(2)
	}
	if err := run(*path, *program, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "mgen-app:", err)
		os.Exit(1)
	}
}

func run(path, program, dir string) error {
	config, err := appinstance.ReadConfig[mgenapp.Config](path)
	if err != nil {
		return err
	}
	start, err := appinstance.Start()
	if err != nil {
		return err
	}
	end, err := appinstance.Stop()
	if err != nil {
		return err
	}
	log, err := messagelog.Open()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	runner := &mgenapp.Runner{Config: config, Program: program, Start: start, Stop: end, Dir: dir, Log: log, Out: os.Stderr,
		Warn: func(text string) { fmt.Fprintf(os.Stderr, "mgen-app %s: %s\n", config.Instance, text) }}
	return errors.Join(runner.Run(ctx, appinstance.QuietOn(syscall.SIGUSR1)), log.Flush())
}
