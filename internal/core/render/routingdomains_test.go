package render

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// hybrid is an experiment of two platoons whose leaders share another network. change alters it before it is expanded.
func hybrid(t *testing.T, change func(*v1alpha1.ExperimentSpec)) (*topology.Topology, *v1alpha1.ExperimentSpec) {
	t.Helper()
	routing := func(tc v1alpha1.Duration) *v1alpha1.Routing {
		return &v1alpha1.Routing{Protocol: v1alpha1.RoutingOLSRv2, Metric: v1alpha1.MetricHopCount, TC: ptr.To(tc)}
	}
	spec := &v1alpha1.ExperimentSpec{
		Networks: []v1alpha1.Network{
			{Name: "one", Subnet: "198.18.1.0/24", Routing: routing("4s")}, {Name: "two", Subnet: "198.18.2.0/24", Routing: routing("4s")},
			{Name: "leaders", Subnet: "198.18.3.0/24", Routing: routing("30s")}, {Name: "apart", Subnet: "198.18.4.0/24", Routing: routing("2m")},
		},
		Nodes: []v1alpha1.Node{
			{Name: "lead", Networks: []string{"one", "leaders"}}, {Name: "second", Networks: []string{"two", "leaders"}},
			{Name: "veh", Networks: []string{"one"}}, {Name: "car", Networks: []string{"two"}}, {Name: "far", Networks: []string{"apart"}},
		},
	}
	if change != nil {
		change(spec)
	}
	expanded, errs := topology.Expand(spec)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return expanded, spec
}

func TestTCsHoldUntilTheSlowestNetworkOfTheDomainCarriesTheNext(t *testing.T) {
	expanded, spec := hybrid(t, nil)
	for i, want := range []v1alpha1.Duration{"1m30s", "1m30s", "", ""} {
		if got := ptr.Deref(domainRouting(expanded, spec, spec.Networks[i]).TCValidity, ""); got != want {
			t.Errorf("network %s: tcValidity %q; want %q", spec.Networks[i].Name, got, want)
		}
	}
	spec.Networks[0].Routing.TCValidity = ptr.To[v1alpha1.Duration]("45s")
	if got := *domainRouting(expanded, spec, spec.Networks[0]).TCValidity; got != "45s" {
		t.Errorf("a tcValidity of 45s became %s", got)
	}
	expanded, spec = hybrid(t, func(s *v1alpha1.ExperimentSpec) {
		for i := range s.Networks {
			s.Networks[i].Routing.Protocol = v1alpha1.RoutingOLSRv1
		}
		s.Networks[2].Routing.TC = ptr.To[v1alpha1.Duration]("1h")
	})
	if got := *domainRouting(expanded, spec, spec.Networks[0]).TCValidity; got.Std() != 3968*time.Second {
		t.Errorf("with OLSRv1 tcValidity is %s; want 1h6m8s, as its messages can say no more", got)
	}
	expanded, spec = hybrid(t, func(s *v1alpha1.ExperimentSpec) { s.Networks[2].Routing.Protocol = v1alpha1.RoutingBabel })
	if got := domainRouting(expanded, spec, spec.Networks[1]).TCValidity; got != nil {
		t.Errorf("a network alone in its domain has tcValidity %s; want none", *got)
	}
}

func TestNetworksOfADomainThatDoNotFitHaveWarnings(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.ExperimentSpec)
		want   string
	}{
		"other intervals": {nil, ""},
		"another metric": {func(s *v1alpha1.ExperimentSpec) { s.Networks[2].Routing.Metric = v1alpha1.MetricDAT },
			`spec.networks[2].routing.metric: Invalid value: "dat": node lead is in network one first, and takes the metric from there`},
		"the default metric by name": {func(s *v1alpha1.ExperimentSpec) { s.Networks[2].Routing.Metric = "" }, ""},
		"a validity that is too short": {func(s *v1alpha1.ExperimentSpec) { s.Networks[1].Routing.TCValidity = ptr.To[v1alpha1.Duration]("12s") },
			`spec.networks[1].routing.tcValidity: Invalid value: "12s": network leaders of the same routing domain carries TCs every 30s, by its tc: those of this network expire in between. Want 1m30s or more`},
		"a validity that is long enough": {func(s *v1alpha1.ExperimentSpec) { s.Networks[1].Routing.TCValidity = ptr.To[v1alpha1.Duration]("40s") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			expanded, spec := hybrid(t, c.change)
			wantSaid(t, name, SpecWarnings(Input{Experiment: &v1alpha1.Experiment{Spec: *spec}, Topology: expanded}, nil, nil), c.want)
		})
	}
}

func TestHELLOsThatADutyCycleDoesNotAllowHaveAWarning(t *testing.T) {
	for name, c := range map[string]struct {
		duty    string
		routing v1alpha1.Routing
		want    string
	}{
		"the default hello": {"1%", v1alpha1.Routing{Protocol: v1alpha1.RoutingOLSRv2},
			`spec.networks[0].routing.hello: Invalid value: "2s": an empty HELLO takes 0.061 s on the air, and a duty cycle of 1% allows one each 6.1 s`},
		"a hello too often":    {"1%", v1alpha1.Routing{Protocol: v1alpha1.RoutingOLSRv1, Hello: ptr.To[v1alpha1.Duration]("6s")}, `"6s": an empty HELLO`},
		"a hello seldom":       {"1%", v1alpha1.Routing{Protocol: v1alpha1.RoutingOLSRv2, Hello: ptr.To[v1alpha1.Duration]("30s")}, ""},
		"no limit":             {"", v1alpha1.Routing{Protocol: v1alpha1.RoutingOLSRv2}, ""},
		"routes without HELLO": {"1%", v1alpha1.Routing{Protocol: v1alpha1.RoutingStatic}, ""},
	} {
		radio := &v1alpha1.RFPipeModel{Rate: "5470bit"}
		if c.duty != "" {
			radio.DutyCycle = ptr.To(v1alpha1.Percent(c.duty))
		}
		spec := &v1alpha1.ExperimentSpec{Networks: []v1alpha1.Network{{Name: "lora", Routing: &c.routing}}}
		wantSaid(t, name, dutyCycleWarnings(spec, map[string]v1alpha1.WaveformSpec{"lora": {RFPipe: radio}}), c.want)
	}
}

func TestTheMetricDATIsForOLSRv2(t *testing.T) {
	for protocol, want := range map[v1alpha1.RoutingProtocol]string{
		v1alpha1.RoutingOLSRv1: `spec.networks[2].routing.metric: Invalid value: "dat": dat is for protocol olsrv2, and network leaders has protocol olsrv1`,
		v1alpha1.RoutingBabel:  "and network leaders has protocol babel",
		v1alpha1.RoutingOLSRv2: "",
		v1alpha1.RoutingNone:   "",
	} {
		expanded, spec := hybrid(t, func(s *v1alpha1.ExperimentSpec) {
			s.Networks[2].Routing.Protocol, s.Networks[2].Routing.Metric = protocol, v1alpha1.MetricDAT
		})
		said := CheckRadioModels(spec, expanded, nil, nil).ToAggregate()
		if (said == nil) != (want == "") || said != nil && !strings.Contains(said.Error(), want) {
			t.Errorf("%s: it says %v; want %q", protocol, said, want)
		}
	}
}

func TestANodeHasOneStaticRouteToADestination(t *testing.T) {
	over := func(routes ...v1alpha1.StaticRoute) *v1alpha1.Routing {
		return &v1alpha1.Routing{Protocol: v1alpha1.RoutingStatic, Routes: routes}
	}
	car, lead := v1alpha1.StaticRoute{To: "car", Via: "second", Nodes: []string{"lead"}}, v1alpha1.StaticRoute{To: "198.18.2.0/24", Via: "second"}
	for name, c := range map[string]struct {
		routes []v1alpha1.StaticRoute
		want   string
	}{
		"one for the subnet and one for a node in it": {[]v1alpha1.StaticRoute{car, lead}, ""},
		"the same one twice":                          {[]v1alpha1.StaticRoute{car, car}, ""},
		"two ways": {[]v1alpha1.StaticRoute{car, {To: "car", Via: "other"}},
			`spec.networks[2].routing.routes[1].to: Invalid value: "198.18.2.4/32": node lead has two routes to it, via 198.18.3.2 on network leaders and via 198.18.3.7 on network leaders, and its kernel takes one`},
		"a direct way and another": {[]v1alpha1.StaticRoute{{To: "other", Via: "second"}, {To: "other", Via: "other", Nodes: []string{"lead"}}},
			`spec.networks[2].routing.routes[1].to: Invalid value: "198.18.3.7/32": node lead has two routes to it, via 198.18.3.2 on network leaders and a direct one on network leaders, and its kernel takes one`},
		"a direct way alone": {[]v1alpha1.StaticRoute{{To: "other", Via: "other"}}, ""},
	} {
		expanded, spec := hybrid(t, func(s *v1alpha1.ExperimentSpec) {
			s.Nodes = append(s.Nodes, v1alpha1.Node{Name: "last", Networks: []string{"apart"}}, v1alpha1.Node{Name: "other", Networks: []string{"leaders"}})
			s.Networks[2].Routing = over(c.routes...)
		})
		wantSaid(t, name, CheckRadioModels(spec, expanded, nil, nil), c.want)
	}
}

func TestBabelNeedsTheMTUOfIPv6(t *testing.T) {
	for _, c := range []struct {
		protocol v1alpha1.RoutingProtocol
		mtu      int32
		want     string
	}{
		{v1alpha1.RoutingBabel, 1279, "spec.networks[2].mtu: Invalid value: 1279: routing by babel needs an mtu of 1280 or more"},
		{v1alpha1.RoutingBabel, 1280, ""},
		{v1alpha1.RoutingBabel, 0, ""}, // the default
		{v1alpha1.RoutingOLSRv2, 222, ""},
	} {
		expanded, spec := hybrid(t, func(s *v1alpha1.ExperimentSpec) {
			s.Networks[2].Routing.Protocol, s.Networks[2].MTU = c.protocol, c.mtu
		})
		wantSaid(t, fmt.Sprintf("%s at %d", c.protocol, c.mtu), CheckRadioModels(spec, expanded, nil, nil), c.want)
	}
}
