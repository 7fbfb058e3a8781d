// radio is the CNI plugin that attaches a pod to a radio network: it hands the pod's network
// namespace to radiod, which does the work.
package main

import (
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/version"

	"vignette.dev/vignette/internal/radiod/plugin"
)

func main() {
	skel.PluginMainFuncs(skel.CNIFuncs{Add: plugin.Add, Del: plugin.Del, Check: plugin.Check, GC: plugin.GC, Status: plugin.Status},
		version.PluginSupports("0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"), "CNI plugin radio: attaches pods to vignette's radio networks")
}
