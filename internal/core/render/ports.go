package render

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/gpsd"
	"vignette.dev/vignette/internal/messagingconfig"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
	"vignette.dev/vignette/operators/apps/messaging"
	"vignette.dev/vignette/operators/apps/proxy"
	"vignette.dev/vignette/operators/apps/rabbitmq"
	"vignette.dev/vignette/operators/apps/vernemq"
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

func servicePort(m *v1alpha1.Messaging) port {
	return port{messaging.Port(m), messagingconfig.TransportOf(m.Transport).UDP}
}

// portsOf are the ports at which an app of the platform's listens on a node. Those of a user's own app are unknown.
func portsOf(t *topology.Topology, host topology.Node, app v1alpha1.App) (ports []port) {
	switch m, p := app.Messaging, app.Proxy; {
	case m != nil && m.Server != "": // it listens nowhere
		return nil
	case m != nil:
		return []port{servicePort(m)}
	case p != nil && p.Peer != "":
		return []port{{proxy.Port(p), false}}
	case p != nil:
		return linkPorts(t, host, app)
	case app.Own():
		return nil
	}
	switch app.Kind() {
	case rabbitmq.Kind{}.Name():
		ports = tcp(rabbitmq.InnerPorts())
	case vernemq.Kind{}.Name():
		ports = tcp(vernemq.InnerPorts())
	}
	for _, p := range trafficconfig.Protocols {
		if slices.Contains(p.Brokers, app.Kind()) {
			ports = append(ports, port{apps.Port(v1alpha1.Protocol(p.Name), app), p.UDP})
		}
	}
	return ports
}

func tcp(numbers []int) (ports []port) {
	for _, number := range numbers {
		ports = append(ports, port{number: number})
	}
	return ports
}

// linkPorts are those of a far proxy. By AMQP it takes its requests from a broker.
func linkPorts(t *topology.Topology, host topology.Node, far v1alpha1.App) []port {
	_, near := t.NearProxies(host, far.Name)
	if len(near) == 0 || near[0].Proxy.Protocol == v1alpha1.ProxyAMQP {
		return nil
	}
	return []port{{proxy.LinkPort, near[0].Proxy.Protocol == v1alpha1.ProxyCoAP}}
}

// gpsPort is the port of gpsd's protocol, at which an agent serves the node's position.
var gpsPort = port{number: int(netip.MustParseAddrPort(gpsd.Address).Port())}

// checkPorts finds messaging services and proxies at a port of another app of their node, of metrics or of GPS.
func checkPorts(spec *v1alpha1.ExperimentSpec, t *topology.Topology) (errs field.ErrorList) {
	for i, app := range spec.Apps {
		path := field.NewPath("spec", "apps").Index(i)
		var own port
		switch {
		case app.Messaging != nil && app.Messaging.Server == "":
			path, own = path.Child("messaging", "port"), servicePort(app.Messaging)
		case app.Proxy != nil && app.Proxy.Peer != "":
			path, own.number = path.Child("proxy", "port"), proxy.Port(app.Proxy)
		case app.Proxy != nil:
			path, own.number = path.Child("proxy"), proxy.LinkPort
		default:
			continue
		}
		number := own.number
		if own == gpsPort {
			errs = append(errs, field.Invalid(path, number, fmt.Sprintf("%s of a node is for its GPS: take another one", gpsPort)))
		}
		if number >= firstMetricsPort && number <= lastMetricsPort {
			errs = append(errs, field.Invalid(path, number, fmt.Sprintf("ports %d to %d are for metrics: take another one", firstMetricsPort, lastMetricsPort)))
		}
		if err := sharedPort(app, t); err != nil {
			errs = append(errs, field.Invalid(path, number, err.Error()))
		}
	}
	return errs
}

// sharedPort returns an error if another app of a node listens at a port of the app.
func sharedPort(app v1alpha1.App, t *topology.Topology) error {
	for _, host := range t.NodesRunning(app.Name) {
		taken := portsOf(t, host, app)
		for _, name := range host.Apps {
			other, _ := t.App(name)
			for _, p := range portsOf(t, host, other) {
				if name != app.Name && slices.Contains(taken, p) {
					return fmt.Errorf("app %s on node %s listens at port %d too: %s", name, host.Name, p.number, remedyOf(app, other))
				}
			}
		}
	}
	return nil
}

// remedyOf two apps at one port. That of far proxies is fixed.
func remedyOf(app, other v1alpha1.App) string {
	isFar := func(a v1alpha1.App) bool { return a.Proxy != nil && a.Proxy.Peer == "" }
	if isFar(app) && isFar(other) {
		return "run them on different nodes, or give one pair another protocol"
	}
	return "give one of them another port, or run them on different nodes"
}
