// Program agent is process 1 of every app's container: it starts and stops the app at absolute times and ships its logs
// (package internal/agent). In a virtual machine it also sets up the node (package internal/guest).
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"vignette.dev/vignette/internal/agent"
	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/guest"
)

const usage = `agent starts and stops an app at absolute times and ships its logs to the archive.

Usage:
  agent install DIR   copy this program to DIR/agent, for containers of other images
  agent run           be process 1 of an app's container
  agent guest [--config DIR] [--tools DIR]
                      make a node of a virtual machine, as root: radios, names, clock, and an agent run for each app

agent run takes its configuration as JSON from the environment variable VIGNETTE_AGENT:
the server, the run, the node and the app, the instances' commands, files to write beforehand.

agent guest takes its configuration from guest.json in DIR, or on the disk labelled vignette, and the platform's programs
from DIR, or from the disk labelled vgtools. It goes on until SIGTERM.

Examples:
  agent install /vignette/bin
  VIGNETTE_AGENT='{"server":"http://vignette-server.vignette-system.svc","runUID":"…","node":"nor","app":"bft",
    "instances":[{"name":"nor/bft","command":["/traffic","--config","/vignette/run/1.json"]}],"stopGraceSeconds":3}' agent run
`

func main() {
	if len(os.Args) > 1 && (os.Args[1] == "--help" || os.Args[1] == "-h" || os.Args[1] == "help") {
		fmt.Print(usage)
		return
	}
	switch {
	case len(os.Args) == 3 && os.Args[1] == "install":
		exitOn(agent.Install(os.Args[2]))
	case len(os.Args) == 2 && os.Args[1] == "run":
		config, err := agentconfig.FromEnv()
		exitOn(err)
		a, err := agent.New(config, agent.Options{})
		exitOn(err)
		os.Exit(a.Run(context.Background(), agent.Signals()))
	case len(os.Args) > 1 && os.Args[1] == "guest":
		exitOn(runGuest(os.Args[2:]))
	case len(os.Args) == 2 && os.Args[1] == guest.AppCommand:
		exitOn(guest.Enter())
	default:
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
}

func runGuest(arguments []string) error {
	o := guest.Options{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	flags := flag.NewFlagSet("agent guest", flag.ExitOnError)
	flags.StringVar(&o.ConfigDir, "config", "", "folder with guest.json and token; if empty, the disk labelled vignette")
	flags.StringVar(&o.ToolsDir, "tools", "", "folder with the platform's programs; if empty, the disk labelled vgtools")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("guest %q: want flags only", flags.Arg(0))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return guest.Run(ctx, o)
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}
