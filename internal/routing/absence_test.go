package routing

import (
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestASecondRestartDoesNotAgeNeighboursByTheFirstAbsence(t *testing.T) {
	for _, protocol := range []v1alpha1.RoutingProtocol{v1alpha1.RoutingOLSRv2, v1alpha1.RoutingOLSRv1} {
		t.Run(string(protocol), func(t *testing.T) {
			h, err := NewHost(slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			a := newTestMedium(t, 2)
			a.see(1, 2, true)
			configOf := func(n *radiotest.Node) Config {
				c := configOf(n, protocol)
				c.Interfaces[0].Address = netip.MustParsePrefix(address(n.NEM) + "/16")
				c.Interfaces[0].Hello, c.Interfaces[0].HelloValidity = testHello, time.Minute
				c.Interfaces[0].TC, c.Interfaces[0].TCValidity = testTC, time.Minute
				return *c
			}
			other, err := h.Start(a.nodes[1].Namespace, configOf(a.nodes[1]))
			if err != nil {
				t.Fatal(err)
			}
			defer other.Leave() //nolint:errcheck // the namespace ends
			var s State
			for _, absent := range []time.Duration{0, time.Hour, 0} {
				i, err := h.Adopt(a.nodes[0].Namespace, configOf(a.nodes[0]), s, absent)
				if err != nil {
					t.Fatal(err)
				}
				for began := time.Now(); s.Router == nil && !hears(i); time.Sleep(20 * time.Millisecond) {
					if time.Since(began) > time.Minute {
						t.Fatal("the nodes do not find each other")
					}
				}
				if s.Router != nil && !hears(i) {
					t.Errorf("after an absence of %v: links %+v; want the one of before", absent, i.Tables().Links)
				}
				if s, err = i.State(); err != nil {
					t.Fatal(err)
				}
				if err := i.Leave(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// hears reports whether an instance has a neighbour that hears it too.
func hears(i *Instance) bool {
	return slices.ContainsFunc(i.Tables().Links, func(l olsr.Link) bool { return l.Status == olsr.Symmetric })
}

func TestRoutesOfBeforeGoIfNobodyIsHeard(t *testing.T) {
	for _, protocol := range []v1alpha1.RoutingProtocol{v1alpha1.RoutingOLSRv2, v1alpha1.RoutingOLSRv1} {
		t.Run(string(protocol), func(t *testing.T) {
			h, err := NewHost(slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			n := node(t, 1)
			c := configOf(n, protocol)
			c.Interfaces[0].Hello, c.Interfaces[0].TC = testHello, testTC
			gone := netip.MustParsePrefix("198.18.0.2/32")
			write(t, opened(t, n, c), olsr.Route{Destination: gone, NextHop: gone.Addr()})
			i, err := h.Start(n.Namespace, *c)
			if err != nil {
				t.Fatal(err)
			}
			defer i.Leave() //nolint:errcheck // the namespace ends
			for began := time.Now(); len(inKernel(t, n.Namespace, priorities[protocol])) > 0; time.Sleep(20 * time.Millisecond) {
				if time.Since(began) > time.Minute {
					t.Fatalf("the route to %v stays, and nobody is there", gone)
				}
			}
		})
	}
}
