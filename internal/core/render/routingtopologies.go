package render

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// checkTopologies finds topologies that a routing domain cannot have. All its routers must agree on metrics, and a packet
// belongs to one topology.
func checkTopologies(t *topology.Topology, spec *v1alpha1.ExperimentSpec) (errs field.ErrorList) {
	checked := map[int]bool{}
	for i, network := range spec.Networks {
		if network.Routing == nil || len(network.Routing.Topologies) == 0 {
			continue
		}
		if network.Routing.Protocol != v1alpha1.RoutingOLSRv2 {
			errs = append(errs, field.Forbidden(routingPath(i).Child("topologies"), fmt.Sprintf(
				"topologies are for protocol olsrv2, and network %s has protocol %s", network.Name, network.Routing.Protocol)))
			continue
		}
		if checked[i] {
			continue
		}
		domain := t.RoutingDomain(spec, network.Name)
		for _, n := range domain {
			checked[n] = true
		}
		errs = append(errs, checkDomain(spec, domain)...)
	}
	return errs
}

// knownTopology is a topology and the network where the domain has it first.
type knownTopology struct {
	*v1alpha1.RoutingTopology
	network string
}

func checkDomain(spec *v1alpha1.ExperimentSpec, domain []int) (errs field.ErrorList) {
	var known []knownTopology
	for _, i := range domain {
		for k := range spec.Networks[i].Routing.Topologies {
			next := knownTopology{&spec.Networks[i].Routing.Topologies[k], spec.Networks[i].Name}
			path := routingPath(i).Child("topologies").Index(k)
			again := false
			for _, other := range known {
				again = again || other.Name == next.Name
				if err := other.conflict(next, path); err != nil {
					errs = append(errs, err)
				}
			}
			switch {
			case again:
			case len(known) == olsr.MaxTopologies-1:
				errs = append(errs, field.Invalid(path.Child("name"), next.Name, fmt.Sprintf(
					"a routing domain has %d topologies at most beside that of metric, and this one has %s and %s already", olsr.MaxTopologies-1, known[0].Name, known[1].Name)))
			default:
				known = append(known, next)
			}
		}
	}
	return errs
}

// conflict returns why another topology cannot be in the same domain, or nil.
func (t knownTopology) conflict(next knownTopology, path *field.Path) *field.Error {
	has := func(code int32) bool { return slices.Contains(t.DSCP, code) }
	if t.Name != next.Name {
		if at := slices.IndexFunc(next.DSCP, has); at >= 0 {
			return field.Invalid(path.Child("dscp").Index(at), next.DSCP[at], fmt.Sprintf("topology %s has this DSCP: a packet belongs to one topology", t.Name))
		}
		if t.Type() == next.Type() {
			return field.Invalid(path.Child("metricType"), next.Type(), fmt.Sprintf("topology %s has this metric type: give one of them another", t.Name))
		}
		return nil
	}
	differs := func(name string, value, other any) *field.Error {
		return field.Invalid(path.Child(name), value, fmt.Sprintf("topology %s has %v on network %s of the same routing domain", t.Name, other, t.network))
	}
	switch {
	case t.Metric != next.Metric:
		return differs("metric", next.Metric, t.Metric)
	case t.Type() != next.Type():
		return differs("metricType", next.Type(), t.Type())
	case len(t.DSCP) != len(next.DSCP) || !slices.ContainsFunc(next.DSCP, has) || slices.ContainsFunc(next.DSCP, func(code int32) bool { return !has(code) }):
		return differs("dscp", next.DSCP, t.DSCP)
	}
	return nil
}
