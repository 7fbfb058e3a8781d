// Program agent is process 1 of every app's container in a node: it starts and stops the app at
// absolute times and ships its logs. Package internal/agent says how.
package main

import (
	"context"
	"fmt"
	"os"

	"vignette.dev/vignette/internal/agent"
	"vignette.dev/vignette/internal/agentconfig"
)

const usage = `agent starts and stops an app at absolute times and ships its logs to the archive.

Usage:
  agent install DIR   copy this program to DIR/agent, for containers of other images
  agent run           be process 1 of an app's container

agent run takes its configuration as JSON from the environment variable VIGNETTE_AGENT:
the server, the run, the node and the app, the instances' commands, files to write beforehand.

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
	default:
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}
