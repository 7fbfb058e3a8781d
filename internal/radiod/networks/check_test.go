package networks

import (
	"strings"
	"testing"

	"vignette.dev/vignette/internal/radiod/radiodtest"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestOLSRRoutesAtTheLeastMTUThatANetworkMayHave(t *testing.T) {
	for _, protocol := range []v1alpha1.RoutingProtocol{v1alpha1.RoutingOLSRv1, v1alpha1.RoutingOLSRv2} {
		n := radiodtest.NetworkOf("run", "vhf", "pod-1")
		n.Spec.MTU, n.Spec.Routing = 68, &v1alpha1.Routing{Protocol: protocol}
		if err := Check(&n.Spec); err != nil {
			t.Errorf("%v; want the network to be accepted, as it is at apply", err)
		}
	}
}

func TestWhatNoMemberCanBeGivenIsRefusedBeforeAnybodyAttaches(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.RadioNetworkSpec)
		want   string
	}{
		"routing": {func(s *v1alpha1.RadioNetworkSpec) {
			hello, validity := v1alpha1.Duration("2s"), v1alpha1.Duration("1s")
			s.Routing = &v1alpha1.Routing{Protocol: v1alpha1.RoutingOLSRv2, Hello: &hello, HelloValidity: &validity}
		}, "routing olsrv2: helloValidity: 1s is not between 2s"},
		"a MAC":      {func(s *v1alpha1.RadioNetworkSpec) { s.Members[1].MAC = "02:02" }, `node node-2: mac "02:02" of vhf: want six octets`},
		"an address": {func(s *v1alpha1.RadioNetworkSpec) { s.Members[0].Address = "198.18.9.1" }, `node node-1: address "198.18.9.1" of vhf: want an address with prefix length`},
		"a filter": {func(s *v1alpha1.RadioNetworkSpec) {
			s.Captures = []v1alpha1.RadioCapture{{Name: "run", Filter: "port"}}
		}, `capture run: filter "port"`},
	} {
		t.Run(name, func(t *testing.T) {
			n := radiodtest.NetworkOf("run", "vhf", "pod-1", "pod-2")
			if err := Check(&n.Spec); err != nil {
				t.Fatalf("a good network: %v", err)
			}
			c.change(&n.Spec)
			if err := Check(&n.Spec); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}
