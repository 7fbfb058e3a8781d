// radio is the CNI plugin that attaches a pod to a radio network: it passes the pod's network namespace to
// radiod. As `radio hold PROGRAM [flags]` it is radiod's parent process, as `radio plane` its data plane.
package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/version"

	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/holder"
	"vignette.dev/vignette/internal/radiod/plugin"
)

func main() {
	if len(os.Args) > 1 { // runtimes give plugins no arguments
		log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
		if err := run(log, os.Args[1], os.Args[2:]); err != nil {
			log.Error("radiod ends", "error", err)
			os.Exit(1)
		}
		return
	}
	skel.PluginMainFuncs(skel.CNIFuncs{Add: plugin.Add, Del: plugin.Del, Check: plugin.Check, GC: plugin.GC, Status: plugin.Status},
		version.PluginSupports("0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"), "CNI plugin radio: attaches pods to vignette's radio networks")
}

func run(log *slog.Logger, command string, arguments []string) error {
	switch command {
	case holder.ParentCommand:
		return holder.RunParent(log.With("part", "parent"), arguments)
	case holder.PlaneCommand:
		return dataplane.Run(log.With("part", "data plane"))
	}
	return fmt.Errorf("%q: want %s or %s", command, holder.ParentCommand, holder.PlaneCommand)
}
