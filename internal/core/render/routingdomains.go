package render

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	defaultTC = 5 * time.Second
	// tcIntervals is how many intervals a TC holds by default.
	tcIntervals = 3
)

// maxTCValidity is the longest time that a TC holds.
var maxTCValidity = map[v1alpha1.RoutingProtocol]time.Duration{v1alpha1.RoutingOLSRv1: 3968 * time.Second, v1alpha1.RoutingOLSRv2: 24 * time.Hour}

func networkIndex(spec *v1alpha1.ExperimentSpec, name string) int {
	return slices.IndexFunc(spec.Networks, func(n v1alpha1.Network) bool { return n.Name == name })
}

func tcOf(routing *v1alpha1.Routing) time.Duration {
	if routing.TC == nil {
		return defaultTC
	}
	return routing.TC.Std()
}

// slowest returns the network of a domain with the longest interval of TCs.
func slowest(spec *v1alpha1.ExperimentSpec, domain []int) v1alpha1.Network {
	return spec.Networks[slices.MaxFunc(domain, func(a, b int) int {
		return cmp.Compare(tcOf(spec.Networks[a].Routing), tcOf(spec.Networks[b].Routing))
	})]
}

// domainRouting is a network's routing with the defaults that depend on its domain. TCs that go on over a slower
// network hold until that network carries the next ones.
func domainRouting(t *topology.Topology, spec *v1alpha1.ExperimentSpec, network v1alpha1.Network) *v1alpha1.Routing {
	routing := network.Routing
	if !routing.SetsRoutes() {
		return nil
	}
	if routing.TCValidity != nil || !isOLSR(routing) {
		return routing
	}
	longest := tcOf(slowest(spec, t.RoutingDomain(spec, network.Name)).Routing)
	if longest <= tcOf(routing) {
		return routing
	}
	routing = routing.DeepCopy()
	routing.TCValidity = ptr.To(v1alpha1.Duration(min(tcIntervals*longest, maxTCValidity[routing.Protocol]).String()))
	return routing
}

func isOLSR(routing *v1alpha1.Routing) bool {
	return routing.Protocol == v1alpha1.RoutingOLSRv2 || routing.Protocol == v1alpha1.RoutingOLSRv1
}

// routingDomainWarnings are about networks of one routing domain whose settings do not fit each other.
func routingDomainWarnings(t *topology.Topology, spec *v1alpha1.ExperimentSpec) field.ErrorList {
	return append(metricWarnings(t, spec), validityWarnings(t, spec)...)
}

// metricWarnings are about networks with another metric than the first network of a node. A router uses that.
func metricWarnings(t *topology.Topology, spec *v1alpha1.ExperimentSpec) (warnings field.ErrorList) {
	said := map[string]bool{}
	for _, node := range t.Nodes {
		firsts := map[v1alpha1.RoutingProtocol]v1alpha1.Network{}
		for _, a := range node.Attachments {
			i := networkIndex(spec, a.Network)
			network := spec.Networks[i]
			if !network.Routing.SetsRoutes() {
				continue
			}
			first, known := firsts[network.Routing.Protocol]
			if !known {
				firsts[network.Routing.Protocol] = network
				continue
			}
			if !said[network.Name] && metricOf(first.Routing) != metricOf(network.Routing) {
				said[network.Name] = true
				warnings = append(warnings, field.Invalid(routingPath(i).Child("metric"), metricOf(network.Routing), fmt.Sprintf(
					"node %s is in network %s first, and takes the metric from there: a router has one", node.Name, first.Name)))
			}
		}
	}
	return warnings
}

// validityWarnings are about TCs that expire before a slower network of the domain carries the next ones.
func validityWarnings(t *topology.Topology, spec *v1alpha1.ExperimentSpec) (warnings field.ErrorList) {
	for i, network := range spec.Networks {
		routing := network.Routing
		if routing == nil || routing.TCValidity == nil || !isOLSR(routing) {
			continue
		}
		slow := slowest(spec, t.RoutingDomain(spec, network.Name))
		if longest := tcOf(slow.Routing); routing.TCValidity.Std() < longest {
			warnings = append(warnings, field.Invalid(routingPath(i).Child("tcValidity"), *routing.TCValidity, fmt.Sprintf(
				"network %s of the same routing domain carries TCs every %s, by its tc: those of this network expire in between. Want %s or more",
				slow.Name, longest, tcIntervals*longest)))
		}
	}
	return warnings
}

// smallestHello has the headers of Ethernet, IPv4 and UDP only.
const smallestHello = 14 + 20 + 8

const defaultHello = 2 * time.Second

// dutyCycleWarnings are about networks of OLSR whose radios may not send as often as HELLOs are due.
func dutyCycleWarnings(spec *v1alpha1.ExperimentSpec, waveforms map[string]v1alpha1.WaveformSpec) (warnings field.ErrorList) {
	for i, network := range spec.Networks {
		radio := waveforms[network.Name].RFPipe
		if network.Routing == nil || !isOLSR(network.Routing) || radio == nil || radio.DutyCycle == nil {
			continue
		}
		hello := defaultHello
		if network.Routing.Hello != nil {
			hello = network.Routing.Hello.Std()
		}
		seconds := 8 * smallestHello / radio.Rate.BitsPerSecond()
		if every := seconds / radio.DutyCycle.Fraction(); every > hello.Seconds() {
			warnings = append(warnings, field.Invalid(routingPath(i).Child("hello"), hello.String(), fmt.Sprintf(
				"an empty HELLO takes %.2g s on the air, and a duty cycle of %s allows one each %.2g s: neighbours expire, and HELLOs fill the queue. Want a hello well above that, or protocol static",
				seconds, *radio.DutyCycle, every)))
		}
	}
	return warnings
}

func routingPath(network int) *field.Path {
	return field.NewPath("spec", "networks").Index(network).Child("routing")
}

func metricOf(routing *v1alpha1.Routing) v1alpha1.LinkMetric {
	return cmp.Or(routing.Metric, v1alpha1.MetricHopCount)
}
