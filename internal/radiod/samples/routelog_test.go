package samples

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// foundRoutes are those of a router.
type foundRoutes []olsr.Route

func (f foundRoutes) AppendRoutes(to []olsr.Route) []olsr.Route { return append(to, f...) }

func routeTo(node, via byte, number int, metric uint32) olsr.Route {
	address := func(b byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, b}) }
	return olsr.Route{Destination: netip.PrefixFrom(address(node), 32), NextHop: address(via), Interface: number, Hops: 1, Metric: metric}
}

var olsrv2 = figures.Domain{Protocol: v1alpha1.RoutingOLSRv2}

func TestTheRouteLogHasWhatIsNew(t *testing.T) {
	direct := func(to, network string, metric uint32) runapi.RadioRoute {
		return runapi.RadioRoute{To: to + "/32", Network: network, Hops: 1, Metric: metric}
	}
	over := direct("10.0.0.5", "vhf", 9)
	over.Via = "10.0.0.3"
	two, three := routeTo(2, 2, 0, 5), routeTo(3, 3, 0, 5)
	steps := []struct {
		name     string
		networks []string
		found    foundRoutes
		want     *runapi.RadioRoutes
	}{
		{"at first, even if there are none", []string{"vhf"}, nil, &runapi.RadioRoutes{Complete: true}},
		{"new ones", []string{"vhf"}, foundRoutes{two, three}, &runapi.RadioRoutes{Routes: []runapi.RadioRoute{direct("10.0.0.2", "vhf", 5), direct("10.0.0.3", "vhf", 5)}}},
		{"nothing", []string{"vhf"}, foundRoutes{two, three}, nil},
		{"another metric", []string{"vhf"}, foundRoutes{routeTo(2, 2, 0, 7), three}, &runapi.RadioRoutes{Routes: []runapi.RadioRoute{direct("10.0.0.2", "vhf", 7)}}},
		{"the first gone, one more at the end", []string{"vhf"}, foundRoutes{three, routeTo(5, 3, 0, 9)},
			&runapi.RadioRoutes{Routes: []runapi.RadioRoute{over}, Gone: []string{"10.0.0.2/32"}}},
		{"the last gone, one more at the beginning", []string{"vhf"}, foundRoutes{two, three},
			&runapi.RadioRoutes{Routes: []runapi.RadioRoute{direct("10.0.0.2", "vhf", 5)}, Gone: []string{"10.0.0.5/32"}}},
		{"the same over another network", []string{"uhf"}, foundRoutes{two, three},
			&runapi.RadioRoutes{Routes: []runapi.RadioRoute{direct("10.0.0.2", "uhf", 5), direct("10.0.0.3", "uhf", 5)}}},
		{"all gone", []string{"uhf"}, nil, &runapi.RadioRoutes{Gone: []string{"10.0.0.2/32", "10.0.0.3/32"}}},
	}
	var l routeLog
	for i, s := range steps {
		lines := l.lines(int64(i), []figures.Routes{{Node: "a", Domain: olsrv2, Networks: s.networks, Finder: s.found}})
		var want []runapi.RadioRoutes
		if s.want != nil {
			s.want.TimeNanoseconds, s.want.Node, s.want.Routing = int64(i), "a", "olsrv2"
			want = append(want, *s.want)
		}
		if difference := cmp.Diff(want, lines); difference != "" {
			t.Errorf("%s: %s", s.name, difference)
		}
	}
}

func TestTheRouteLogHasALineForEachTopology(t *testing.T) {
	bulk := routeTo(2, 2, 1, 9)
	bulk.Topology = 1
	found := foundRoutes{routeTo(2, 2, 0, 5), bulk}
	node := figures.Routes{Node: "a", Domain: olsrv2, Networks: []string{"vhf", "uhf"}, Finder: found}
	further := node
	further.Topology, further.Number = "bulk", 1
	var l routeLog
	lines := l.lines(7, []figures.Routes{node, further})
	want := []runapi.RadioRoutes{
		{TimeNanoseconds: 7, Node: "a", Routing: "olsrv2", Complete: true, Routes: []runapi.RadioRoute{{To: "10.0.0.2/32", Network: "vhf", Hops: 1, Metric: 5}}},
		{TimeNanoseconds: 7, Node: "a", Routing: "olsrv2", Topology: "bulk", Complete: true, Routes: []runapi.RadioRoute{{To: "10.0.0.2/32", Network: "uhf", Hops: 1, Metric: 9}}},
	}
	if difference := cmp.Diff(want, lines); difference != "" {
		t.Error(difference)
	}
	further.Finder = found[:1]
	lines = l.lines(8, []figures.Routes{node, further})
	if want := []runapi.RadioRoutes{{TimeNanoseconds: 8, Node: "a", Routing: "olsrv2", Topology: "bulk", Gone: []string{"10.0.0.2/32"}}}; cmp.Diff(want, lines) != "" {
		t.Error(cmp.Diff(want, lines))
	}
}
