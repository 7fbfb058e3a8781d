package routerprocess

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/routing"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// TestMain makes this program the routers' process where that is what it was started for.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		if err := Serve(slog.New(slog.DiscardHandler), os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func start(t *testing.T) *Host {
	t.Helper()
	h, err := Start(slog.New(slog.DiscardHandler), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// lone is a router without neighbours, in its own namespace.
func lone(t *testing.T) (*os.File, routing.Config) {
	t.Helper()
	if err := radiotest.Missing(); err != nil {
		t.Skip(err)
	}
	namespace, err := radiotest.Namespace()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = namespace.Close() })
	return namespace, routing.Config{Protocol: v1alpha1.RoutingOLSRv2, Seed: 1,
		Interfaces: []routing.Interface{{Name: "lo", Index: 1, Address: netip.MustParsePrefix("198.18.9.1/24"), MTU: 1400, Hello: 200 * time.Millisecond}}}
}

func TestTheProcessHandlesEachRequest(t *testing.T) {
	namespace, config := lone(t)
	h := start(t)
	i, err := h.Adopt(namespace, config, routing.State{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); i.Counters(0).PacketsSent+i.Counters(0).SendErrors < 2; time.Sleep(10 * time.Millisecond) {
		if err := h.Refresh(); err != nil || time.Now().After(deadline) {
			t.Fatalf("counters %+v (%v); want HELLOs to have been sent", i.Counters(0), err)
		}
	}
	if err := i.Transmit(0, false); err != nil {
		t.Error(err)
	}
	state, err := i.State()
	if err != nil || len(state.Router) == 0 || state.Counters["lo"] == (routing.Counters{}) {
		t.Errorf("state %v with counters %v, %v; want one", state.Router, state.Counters, err)
	}
	if err := i.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := i.State(); err == nil || !strings.Contains(err.Error(), "there is none") {
		t.Errorf("the state of an instance that was stopped: %v; want it refused", err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

func TestErrorsAreThoseOfRoutingItself(t *testing.T) {
	namespace, config := lone(t)
	h := start(t)
	defer h.Close()
	config.Protocol = "ospf"
	if _, err := h.Adopt(namespace, config, routing.State{}, 0); err == nil || !strings.Contains(err.Error(), `routing.protocol "ospf"`) {
		t.Errorf("protocol ospf: %v; want it refused by its name", err)
	}
	if len(h.instances) != 0 {
		t.Errorf("%d instances; want none", len(h.instances))
	}
}

func TestTheEndOfTheProcessIsReported(t *testing.T) {
	namespace, config := lone(t)
	ended := make(chan struct{})
	h, err := Start(slog.New(slog.DiscardHandler), Options{Ended: func() { close(ended) }})
	if err != nil {
		t.Fatal(err)
	}
	i, err := h.Adopt(namespace, config, routing.State{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(h.Process(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := i.State(); err != nil {
		t.Errorf("after a signal for the whole group: %v; want it to go on", err)
	}
	if err := syscall.Kill(h.Process(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-ended
	<-h.Ended()
	if err := h.Refresh(); err == nil {
		t.Error("a process that has ended reports")
	}
	if _, err := h.Adopt(namespace, config, routing.State{}, 0); err == nil {
		t.Error("a process that has ended routes")
	}
	if err := h.Close(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("its end: %v; want it to say that it was killed", err)
	}
}

func TestTheProcessLeavesAProcessorToTheLoop(t *testing.T) {
	processors, err := clock.Processors()
	if err != nil || len(processors) < 2 {
		t.Skipf("processors %v (%v): want two", processors, err)
	}
	h := start(t)
	defer h.Close()
	var its, ours unix.CPUSet
	if err := errors.Join(unix.SchedGetaffinity(h.Process(), &its), unix.SchedGetaffinity(0, &ours)); err != nil {
		t.Fatal(err)
	}
	if its.IsSet(processors[0]) || its.Count() != len(processors)-1 || ours.Count() != len(processors) {
		t.Errorf("of processors %v it has %d, and this one %d; want it to have all but the first, and this one all", processors, its.Count(), ours.Count())
	}
}

func someRoutes() []olsr.Route {
	via := netip.MustParseAddr("10.0.0.2")
	return []olsr.Route{
		{Destination: netip.MustParsePrefix("10.0.0.2/32"), NextHop: via, Hops: 1, Metric: 1},
		{Destination: netip.MustParsePrefix("10.1.0.0/16"), NextHop: via, Interface: 300, Topology: 2, Hops: 260, Metric: 1<<32 - 1},
		{Destination: netip.MustParsePrefix("fd00::/64"), NextHop: netip.MustParseAddr("fd00::1"), Hops: 2, Metric: 7},
		{Destination: netip.MustParsePrefix("10.0.0.3/32"), Hops: 1},
	}
}

func TestReportsAreReadAsTheyWereWritten(t *testing.T) {
	written := []report{
		{id: 1, process: 4711, trouble: []byte("no way"), counters: []routing.Counters{{PacketsSent: 1, BytesSent: 2, PacketsReceived: 3, BytesReceived: 1 << 40, SendErrors: 5, ReceiveDrops: 6}, {}}, changed: true},
		{id: 1 << 60, trouble: []byte{}},
	}
	first := appendReport(nil, &written[0], someRoutes())
	payload := appendReport(slices.Clone(first), &written[1], nil)
	r := reader{rest: payload}
	for _, want := range written {
		var got report
		if err := r.report(&got); err != nil {
			t.Fatal(err)
		}
		routes, err := (&reader{rest: got.routes}).routes(nil)
		if err != nil {
			t.Error(err)
		}
		if want.changed && !slices.Equal(routes, someRoutes()) || !want.changed && routes != nil {
			t.Errorf("routes %v; want %v, if any", routes, someRoutes())
		}
		got.routes = nil
		if difference := cmp.Diff(want, got, cmp.AllowUnexported(report{})); difference != "" {
			t.Error(difference)
		}
	}
	if len(r.rest) > 0 {
		t.Errorf("%d bytes are left", len(r.rest))
	}
	for cut := 1; cut < len(payload); cut++ {
		r, err := reader{rest: payload[:cut]}, error(nil)
		for len(r.rest) > 0 && err == nil {
			err = r.report(&report{})
		}
		if err == nil && cut != len(first) {
			t.Fatalf("the first %d of %d bytes are taken for reports", cut, len(payload))
		}
	}
}

func FuzzReports(f *testing.F) {
	f.Add(appendReport(nil, &report{id: 3, process: 7, trouble: []byte("x"), counters: make([]routing.Counters, 2), changed: true}, someRoutes()))
	f.Add([]byte{1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, payload []byte) {
		h := &Host{log: slog.New(slog.DiscardHandler), instances: map[uint64]*Instance{}}
		for id := range uint64(4) {
			h.instances[id] = &Instance{host: h, id: id}
		}
		if err := h.readReports(payload); err != nil {
			return
		}
		for _, i := range h.instances {
			for _, r := range i.AppendRoutes(nil) {
				if r.Destination.IsValid() && r.Destination.Bits() > r.Destination.Addr().BitLen() {
					t.Errorf("route to %v", r.Destination)
				}
			}
		}
	})
}
