package routers

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/refusal"
	"vignette.dev/vignette/internal/radiod/state"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

var domainOfOne = figures.Domain{PodUID: "pod-1", Protocol: v1alpha1.RoutingOLSRv2}

// newRouters makes routers of a host with one attachment to each network.
func newRouters(t *testing.T, guest *membership.Guest, networks ...*v1alpha1.RadioNetwork) *Routers {
	t.Helper()
	store := membership.NewStore()
	for _, n := range networks {
		store.Set(n)
		m := n.Spec.Members[0]
		if err := store.Attach(&membership.Attachment{PodUID: string(m.PodUID), Interface: m.Interface, NetworkUID: string(n.UID), Network: n.Spec.Network, Member: m, Guest: guest}); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{Members: store, Silent: func(string, int32) bool { return false }, Folder: folder, Log: slog.New(slog.DiscardHandler),
		Find: func(*membership.Attachment) (*os.File, error) { return nil, errors.New("no namespace") }, Changed: func(*v1alpha1.RadioNetwork) {}})
}

// routed makes a network of one node that routes.
func routed(name, address string, primary bool) *v1alpha1.RadioNetwork {
	hello, validity, tc, tcValidity := v1alpha1.Duration("200ms"), v1alpha1.Duration("3s"), v1alpha1.Duration("400ms"), v1alpha1.Duration("20s")
	n := &v1alpha1.RadioNetwork{Spec: v1alpha1.RadioNetworkSpec{Network: name, MTU: 1400,
		Routing: &v1alpha1.Routing{Protocol: v1alpha1.RoutingOLSRv2, Hello: &hello, HelloValidity: &validity, TC: &tc, TCValidity: &tcValidity},
		Members: []v1alpha1.Member{{Node: "node-1", NEM: 1, Interface: name, Address: address, PodUID: "pod-1", Primary: primary}}}}
	n.UID = types.UID("run-" + name)
	return n
}

func TestHELLOsAndTCsHaveTheTimesOfEachNetwork(t *testing.T) {
	slow := routed("narrow", "198.18.1.1/24", false)
	hello, validity, tc := v1alpha1.Duration("7s"), v1alpha1.Duration("30s"), v1alpha1.Duration("9s")
	slow.Spec.Routing.Hello, slow.Spec.Routing.HelloValidity, slow.Spec.Routing.TC = &hello, &validity, &tc
	wanted := newRouters(t, nil, slow, routed("wide", "198.18.0.1/24", true)).wantedDomains()[domainOfOne]
	if wanted == nil || len(wanted.config.Interfaces) != 2 {
		t.Fatalf("wanted %+v; want a domain of two interfaces", wanted)
	}
	wide, narrow := wanted.config.Interfaces[0], wanted.config.Interfaces[1]
	if wide.Hello != 200*time.Millisecond || wide.HelloValidity != 3*time.Second || narrow.Hello != 7*time.Second || narrow.HelloValidity != 30*time.Second {
		t.Errorf("HELLOs every %v and %v, valid for %v and %v; want those of the networks", wide.Hello, narrow.Hello, wide.HelloValidity, narrow.HelloValidity)
	}
	if wide.TC != 400*time.Millisecond || wide.TCValidity != 20*time.Second || narrow.TC != 9*time.Second || narrow.TCValidity != 20*time.Second {
		t.Errorf("TCs every %v and %v, valid for %v and %v; want those of the networks", wide.TC, narrow.TC, wide.TCValidity, narrow.TCValidity)
	}
}

func TestARouterGoesByTheOrderOfTheNodesNetworks(t *testing.T) {
	first, second, third := routed("wan", "198.18.0.1/24", true), routed("vhf", "198.18.1.1/24", false), routed("hf", "198.18.2.1/24", false)
	first.Spec.Routing, second.Spec.Routing.Metric = nil, v1alpha1.MetricDAT
	second.Spec.Members[0].Place, third.Spec.Members[0].Place = 1, 2
	wanted := newRouters(t, nil, third, second, first).wantedDomains()[domainOfOne]
	if wanted == nil || len(wanted.config.Interfaces) != 2 {
		t.Fatalf("wanted %+v; want a domain of two interfaces", wanted)
	}
	if c := wanted.config; c.Interfaces[0].Name != "vhf" || c.Metric != olsr.DAT {
		t.Errorf("the first interface is %s, the metric %d; want vhf, which the node names before hf, and its metric", c.Interfaces[0].Name, c.Metric)
	}
}

func TestAGuestRoutesByItself(t *testing.T) {
	if wanted := newRouters(t, &membership.Guest{}, routed("vhf", "198.18.9.1/24", true)).wantedDomains(); len(wanted) > 0 {
		t.Errorf("routers %v; want none: the guest's kernel is another", wanted)
	}
}

func TestANodeThatFailsToRouteForLongIsRefused(t *testing.T) {
	n := routed("vhf", "198.18.9.1/24", true)
	r := newRouters(t, nil, n)
	d := &domain{wantedDomain: *r.wantedDomains()[domainOfOne]}
	d.setError(errors.New("UDP port 269: address already in use"))
	r.domains[domainOfOne] = d
	if err := r.Trouble(string(n.UID)); err == nil || !strings.Contains(err.Error(), "node-1: UDP port 269") || refusal.First(err) != "" {
		t.Errorf("trouble %v, refused %q; want the node and the port named, and no refusal at once: the port may be free soon", err, refusal.First(err))
	}
	d.failing = d.failing.Add(-giveUpRouting)
	if refused := refusal.First(r.Trouble(string(n.UID))); !strings.Contains(refused, "UDP port 269") {
		t.Errorf("refused is %q after %s without routes; want the port named", refused, giveUpRouting)
	}
}
