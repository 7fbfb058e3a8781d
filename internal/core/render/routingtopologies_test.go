package render

import (
	"testing"

	"k8s.io/utils/ptr"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestTopologiesOfADomainMustAgree(t *testing.T) {
	bulk := func(change func(*v1alpha1.RoutingTopology)) []v1alpha1.RoutingTopology {
		b := v1alpha1.RoutingTopology{Name: "bulk", Metric: v1alpha1.MetricDAT, DSCP: []int32{8, 10}}
		if change != nil {
			change(&b)
		}
		return []v1alpha1.RoutingTopology{b}
	}
	voice := v1alpha1.RoutingTopology{Name: "voice", Metric: v1alpha1.MetricHopCount, DSCP: []int32{46}}
	set := func(network int, topologies []v1alpha1.RoutingTopology) func(*v1alpha1.ExperimentSpec) {
		return func(s *v1alpha1.ExperimentSpec) {
			s.Networks[0].Routing.Topologies, s.Networks[network].Routing.Topologies = bulk(nil), topologies
		}
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.ExperimentSpec)
		want   string
	}{
		"one on some networks":     {set(0, bulk(nil)), ""},
		"the same on two":          {set(2, bulk(func(b *v1alpha1.RoutingTopology) { b.DSCP = []int32{10, 8} })), ""},
		"two on one network":       {set(0, append(bulk(nil), voice)), ""},
		"others on two":            {set(1, []v1alpha1.RoutingTopology{voice}), ""},
		"others beside the domain": {set(3, bulk(func(b *v1alpha1.RoutingTopology) { b.Metric, b.DSCP = v1alpha1.MetricHopCount, []int32{1} })), ""},
		"another metric": {set(1, bulk(func(b *v1alpha1.RoutingTopology) {
			b.Metric, b.MetricType = v1alpha1.MetricHopCount, ptr.To[int32](225)
		})),
			`spec.networks[1].routing.topologies[0].metric: Invalid value: "hopcount": topology bulk has dat on network one of the same routing domain`},
		"another type": {set(1, bulk(func(b *v1alpha1.RoutingTopology) { b.MetricType = ptr.To[int32](7) })),
			`spec.networks[1].routing.topologies[0].metricType: Invalid value: 7: topology bulk has 225 on network one`},
		"other DSCPs": {set(2, bulk(func(b *v1alpha1.RoutingTopology) { b.DSCP = []int32{8} })),
			`spec.networks[2].routing.topologies[0].dscp: Invalid value: [8]: topology bulk has [8 10] on network one`},
		"a DSCP of two": {set(0, append(bulk(nil), v1alpha1.RoutingTopology{Name: "voice", Metric: v1alpha1.MetricHopCount, DSCP: []int32{46, 10}})),
			`spec.networks[0].routing.topologies[1].dscp[1]: Invalid value: 10: topology bulk has this DSCP: a packet belongs to one topology`},
		"a metric of two": {set(0, append(bulk(nil), v1alpha1.RoutingTopology{Name: "video", Metric: v1alpha1.MetricDAT, DSCP: []int32{34}})),
			`spec.networks[0].routing.topologies[1].metricType: Invalid value: 225: topology bulk has this metric type: give one of them another`},
		"three in a domain": {set(1, []v1alpha1.RoutingTopology{voice, {Name: "video", Metric: v1alpha1.MetricDAT, DSCP: []int32{34}, MetricType: ptr.To[int32](9)}}),
			`spec.networks[1].routing.topologies[1].name: Invalid value: "video": a routing domain has 2 topologies at most beside that of metric, and this one has bulk and voice already`},
		"another protocol": {func(s *v1alpha1.ExperimentSpec) {
			s.Networks[3].Routing.Protocol, s.Networks[3].Routing.Topologies = v1alpha1.RoutingOLSRv1, bulk(nil)
		}, `spec.networks[3].routing.topologies: Forbidden: topologies are for protocol olsrv2, and network apart has protocol olsrv1`},
	} {
		t.Run(name, func(t *testing.T) {
			expanded, spec := hybrid(t, c.change)
			wantSaid(t, name, CheckRadioModels(spec, expanded, nil, nil), c.want)
		})
	}
}
