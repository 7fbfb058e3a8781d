package render

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/messagingconfig"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
	"vignette.dev/vignette/operators/apps/messaging"
	"vignette.dev/vignette/operators/apps/proxy"
)

// port is one of a node, of UDP or TCP.
type port struct {
	number int
	udp    bool
}

func (p port) String() string {
	if p.udp {
		return fmt.Sprintf("UDP port %d", p.number)
	}
	return fmt.Sprintf("TCP port %d", p.number)
}

// portsOf are the ports at which an app of the platform's listens. Those of a user's own app are unknown.
func portsOf(app v1alpha1.App) (ports []port) {
	switch m, p := app.Messaging, app.Proxy; {
	case m != nil:
		return []port{{messaging.Port(m), messagingconfig.TransportOf(m.Transport).UDP}}
	case p != nil && p.Peer != "":
		return []port{{proxy.Port(p), false}}
	case p != nil:
		return []port{{proxy.LinkPort, false}, {proxy.LinkPort, true}}
	case app.Own():
		return nil
	}
	for _, p := range trafficconfig.Protocols {
		if slices.Contains(p.Brokers, app.Kind()) {
			ports = append(ports, port{apps.Port(v1alpha1.Protocol(p.Name), app), p.UDP})
		}
	}
	return ports
}

// checkPorts finds messaging services and proxies at a port that another app of their node has, or that metrics have.
func checkPorts(spec *v1alpha1.ExperimentSpec, t *topology.Topology) (errs field.ErrorList) {
	for i, app := range spec.Apps {
		path := field.NewPath("spec", "apps").Index(i)
		switch {
		case app.Messaging != nil:
			path = path.Child("messaging", "port")
		case app.Proxy != nil:
			path = path.Child("proxy", "port")
		default:
			continue
		}
		if number := portsOf(app)[0].number; number >= firstMetricsPort && number <= lastMetricsPort {
			errs = append(errs, field.Invalid(path, number, fmt.Sprintf("ports %d to %d are for metrics: take another one", firstMetricsPort, lastMetricsPort)))
		}
		if err := sharedPort(app, t); err != nil {
			errs = append(errs, field.Invalid(path, portsOf(app)[0].number, err.Error()))
		}
	}
	return errs
}

// sharedPort returns an error if another app of a node listens at a port of the app.
func sharedPort(app v1alpha1.App, t *topology.Topology) error {
	for _, host := range t.NodesRunning(app.Name) {
		taken := map[port]bool{}
		for _, own := range portsOf(app) {
			taken[own] = true
		}
		for _, name := range host.Apps {
			other, _ := t.App(name)
			for _, p := range portsOf(other) {
				if name != app.Name && taken[p] {
					return fmt.Errorf("app %s on node %s listens at port %d too: give one of them another port, or run them on different nodes", name, host.Name, p.number)
				}
			}
		}
	}
	return nil
}
