package render

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/topology"
)

// routingDomainWarnings are about networks of one routing domain with different settings that a router has only once. A router
// uses those of its node's first network.
func routingDomainWarnings(t *topology.Topology, spec *v1alpha1.ExperimentSpec) (warnings field.ErrorList) {
	said := map[string]bool{}
	for _, node := range t.Nodes {
		firsts := map[v1alpha1.RoutingProtocol]v1alpha1.Network{}
		for _, a := range node.Attachments {
			i := slices.IndexFunc(spec.Networks, func(n v1alpha1.Network) bool { return n.Name == a.Network })
			network := spec.Networks[i]
			if network.Routing == nil || network.Routing.Protocol == "" {
				continue
			}
			first, known := firsts[network.Routing.Protocol]
			if !known {
				firsts[network.Routing.Protocol] = network
				continue
			}
			if !said[network.Name] && !sameRouterSettings(first.Routing, network.Routing) {
				said[network.Name] = true
				warnings = append(warnings, field.Invalid(field.NewPath("spec", "networks").Index(i).Child("routing"), network.Name, fmt.Sprintf(
					"node %s is in network %s first, and takes tc, tcValidity and metric from there: a router has one of each", node.Name, first.Name)))
			}
		}
	}
	return warnings
}

// sameRouterSettings reports whether two networks have the same settings of a router, apart from those of an interface.
func sameRouterSettings(a, b *v1alpha1.Routing) bool {
	same := func(a, b *v1alpha1.Duration) bool { return ptr.Deref(a, "").Std() == ptr.Deref(b, "").Std() }
	return same(a.TC, b.TC) && same(a.TCValidity, b.TCValidity) && cmp.Or(a.Metric, v1alpha1.MetricHopCount) == cmp.Or(b.Metric, v1alpha1.MetricHopCount)
}
