package worker

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// processorTime of this process and of the routers' so far.
func (m *Manager) processorTime(t *testing.T) (used time.Duration) {
	t.Helper()
	processes := []string{"self"}
	if routers := routersProcess(m); routers != 0 {
		processes = append(processes, strconv.Itoa(routers))
	}
	for _, process := range processes {
		text, err := os.ReadFile("/proc/" + process + "/stat")
		if err != nil {
			t.Fatal(err)
		}
		// After the name in parentheses come the state and ten more fields, then the times (proc(5)).
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		for _, ticks := range fields[11:13] {
			n, err := strconv.Atoi(ticks)
			if err != nil {
				t.Fatal(err)
			}
			used += time.Duration(n) * time.Second / ticksPerSecond
		}
	}
	return used
}

// ticksPerSecond of the kernel's figures for user space, whatever its own are.
const ticksPerSecond = 100

// TestRoutingOf243NodesIsPrinted: convergence, and the processor time of real nodes on a grid, eight neighbours each, that do
// nothing but route: the routers, their sockets, and the radio that carries the packets. It takes minutes: VIGNETTE_MEASURE=1.
func TestRoutingOf243NodesIsPrinted(t *testing.T) {
	if os.Getenv("VIGNETTE_MEASURE") == "" {
		t.Skip("VIGNETTE_MEASURE is not set")
	}
	const side, count, measured = 16, 243, 20 * time.Second
	var uids []string
	for i := range count {
		uids = append(uids, fmt.Sprintf("pod-%d", i+1))
	}
	m := newManager(t)
	n := rfNetwork(uids...)
	hello, validity, tc, tcValidity := v1alpha1.Duration("2s"), v1alpha1.Duration("20s"), v1alpha1.Duration("8s"), v1alpha1.Duration("80s")
	n.Spec.Routing = &v1alpha1.Routing{Protocol: v1alpha1.RoutingOLSRv2, Hello: &hello, HelloValidity: &validity, TC: &tc, TCValidity: &tcValidity}
	for i := range n.Spec.Members {
		member := &n.Spec.Members[i]
		member.Position = &v1alpha1.Position{Altitude: "100", Latitude: v1alpha1.Degrees(fmt.Sprintf("%.4f", 50+0.126*float64(i/side))),
			Longitude: v1alpha1.Degrees(fmt.Sprintf("%.4f", 8+0.196*float64(i%side)))}
		member.MAC, member.Address = fmt.Sprintf("02:02:00:00:00:%02x", i+1), fmt.Sprintf("198.18.9.%d/24", i+1)
	}
	attachAll(t, m, n, uids...)
	time.Sleep(2 * time.Second)
	used := m.processorTime(t)
	time.Sleep(measured)
	idle := m.processorTime(t) - used
	route(t, m)
	took := within(t, "all have routes to all", func() bool {
		m.refreshRouting()
		all := m.countRouting()
		for _, c := range all {
			if c.Routes < count-1 {
				return false
			}
		}
		return len(all) == count
	})
	used = m.processorTime(t)
	time.Sleep(measured)
	routing := m.processorTime(t) - used
	var bytes uint64
	m.refreshRouting()
	for _, c := range m.countRouting() {
		bytes += c.BytesSent
	}
	perSecond := func(d time.Duration) float64 { return float64(d.Milliseconds()) / measured.Seconds() }
	t.Logf("%d nodes: all routes after %v; processor ms/s: %.0f without routing, %.0f with; %.0f B/s and node, frames as on the air", count, took,
		perSecond(idle), perSecond(routing), float64(bytes)/count/(took+measured).Seconds())
}
