// devcluster is the program of hack/cluster: a Kubernetes cluster for developers,
// made of namespaces on this machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"vignette.dev/vignette/hack/devcluster/images"
	"vignette.dev/vignette/hack/devcluster/node"
	"vignette.dev/vignette/hack/devcluster/run"
	"vignette.dev/vignette/hack/devcluster/store"
)

const usage = `usage: hack/cluster COMMAND [--name NAME]

  up [--nodes N] [--with argocd,kubevirt]
                      build what is missing, and bring the cluster up; with Argo CD or KubeVirt in it
  down [--purge]      end it and leave nothing running; --purge removes its data too
  status              what runs, and what does not
  env                 lines for a shell: eval "$(hack/cluster env)"
  load IMAGE...       bring images (names in buildah's storage, or archive files) to all nodes
  build               build and cache everything, but start nothing
  enter [NODE] [COMMAND...]
                      a shell, or a command, in a node (default: n1)
  buildah ARGUMENTS   buildah on our own storage of images

All it writes lies in $VIGNETTE_HOME (default: $XDG_CACHE_HOME/vignette or ~/.cache/vignette).
`

// command is one of hack/cluster's commands.
type command func(ctx context.Context, home store.Home, arguments []string) error

var commands = map[string]command{
	"up": up, "down": down, "status": status, "env": environment, "load": load,
	"build": buildAll, "enter": enter, "images": buildImages,
	images.BuildahCommand: buildah,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil && os.Args[1] != "node" {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if os.Args[1] == "node" {
		fail(node.Main())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	home, err := store.Find()
	if err != nil {
		fail(err)
	}
	if err := commands[os.Args[1]](ctx, home, os.Args[2:]); err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted; run it again to go on")
		}
		fail(err)
	}
}

func fail(err error) {
	if status := new(run.ExitStatus); errors.As(err, status) {
		os.Exit(int(*status))
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}
