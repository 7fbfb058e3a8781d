package worker

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/olsr/rfc5444"
	"vignette.dev/vignette/internal/radiod/radiodtest"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// The rates of a hybrid network: of two groups, and of the network of their leaders.
const groupHello, groupTC, leadersHello, leadersTC = 300 * time.Millisecond, 600 * time.Millisecond, 1200 * time.Millisecond, 3 * time.Second

// hybridNetwork is a TDMA network of nodes that stand side by side, by their NEM ids.
func hybridNetwork(name string, subnet int, rate v1alpha1.DataRate, hello, tc time.Duration, nems ...int) *v1alpha1.RadioNetwork {
	var uids []string
	for _, nem := range nems {
		uids = append(uids, fmt.Sprintf("pod-%d", nem))
	}
	n := networkOf("run", name, uids...)
	n.Spec.Waveform = radiodtest.TDMA()
	n.Spec.Waveform.TDMA.Rate, n.Spec.Waveform.TDMA.PHY.Pathloss = rate, v1alpha1.PathlossFreeSpace
	for i, nem := range nems {
		m := &n.Spec.Members[i]
		m.Node, m.NEM, m.Address, m.Primary = fmt.Sprintf("node-%d", nem), int32(nem), fmt.Sprintf("198.18.%d.%d/24", subnet, nem), name != "leaders"
		m.MAC = fmt.Sprintf("02:02:00:00:00:%02x", nem)
		m.Position = &v1alpha1.Position{Latitude: "50", Longitude: "8", Altitude: "100"}
	}
	times := func(d time.Duration) *v1alpha1.Duration { return ptr.To(v1alpha1.Duration(d.String())) }
	n.Spec.Routing = &v1alpha1.Routing{Protocol: v1alpha1.RoutingOLSRv2, Hello: times(hello), HelloValidity: times(10 * hello),
		TC: times(tc), TCValidity: times(10 * leadersTC)}
	return n
}

// routingHeard has the HELLOs that a node received, by sender, and the TCs, by originator.
type routingHeard struct {
	mu          sync.Mutex
	hellos, tcs map[netip.Addr]int
}

// hearRouting counts what a pod receives at an interface with that address.
func (p *pod) hearRouting(t *testing.T, interfaceName string, own netip.Addr) *routingHeard {
	t.Helper()
	h := &routingHeard{hellos: map[netip.Addr]int{}, tcs: map[netip.Addr]int{}}
	file := p.sniffer(t, interfaceName)
	go func() {
		frame := make([]byte, 2048)
		for {
			n, err := file.Read(frame)
			if err != nil {
				return // the test ends
			}
			h.count(frame[:n], own)
		}
	}()
	return h
}

func (h *routingHeard) count(frame []byte, own netip.Addr) {
	const ip, udp, payload = 14, 14 + 20, 14 + 20 + 8
	if len(frame) < payload || frame[ip+9] != unix.IPPROTO_UDP || binary.BigEndian.Uint16(frame[udp+2:]) != olsr.Port {
		return
	}
	var p rfc5444.Packet
	from := netip.AddrFrom4([4]byte(frame[ip+12 : ip+16]))
	if from == own || rfc5444.Split(frame[payload:], &p) != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range p.Messages {
		switch m := &p.Messages[i]; m.Type {
		case 0:
			h.hellos[from]++
		case 1:
			h.tcs[m.Originator]++
		}
	}
}

// counted returns what was received so far.
func (h *routingHeard) counted() (hellos, tcs map[netip.Addr]int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.hellos), maps.Clone(h.tcs)
}

func TestEachRadioNetworkOfAHybridHasItsOwnRates(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	route(t, m)
	networks := []*v1alpha1.RadioNetwork{
		hybridNetwork("one", 1, "1Mbit", groupHello, groupTC, 1, 2, 3, 4, 5),
		hybridNetwork("two", 2, "1Mbit", groupHello, groupTC, 6, 7, 8, 9, 10),
		hybridNetwork("leaders", 3, "250kbit", leadersHello, leadersTC, 1, 6),
	}
	pods := map[string]*pod{}
	for _, n := range networks {
		set(t, m, n)
		for i := range n.Spec.Members {
			uid := string(n.Spec.Members[i].PodUID)
			if pods[uid] == nil {
				pods[uid] = newPod(t, uid)
			}
			pods[uid].attach(t, m, n.Spec.Network)
		}
	}
	within(t, "the groups have routes to each other", func() bool {
		return pods["pod-5"].kernelRoutes(t)["198.18.2.10/32"] == "198.18.1.1" && pods["pod-10"].kernelRoutes(t)["198.18.1.5/32"] == "198.18.2.6"
	})
	address := netip.MustParseAddr
	inGroup := pods["pod-2"].hearRouting(t, "one", address("198.18.1.2"))
	betweenLeaders := pods["pod-6"].hearRouting(t, "leaders", address("198.18.3.6"))
	const how = 12 * time.Second
	time.Sleep(how)
	check := func(what string, got int, interval time.Duration) {
		t.Helper()
		// A busy machine is late, jitter makes intervals shorter. The limits exclude the other network's rate, which differs by 4 or 5 times.
		if least, most := int(how/interval)/2-1, 2*int(how/interval)+2; got < least || got > most {
			t.Errorf("%d %s in %v; want about one every %v, %d to %d", got, what, how, interval, least, most)
		}
	}
	hellos, tcs := inGroup.counted()
	if len(hellos) != 4 {
		t.Errorf("node 2 received HELLOs of %v; want those of its group", hellos)
	}
	for from, n := range hellos {
		check("HELLOs of "+from.String()+" in its group", n, groupHello)
	}
	check("TCs of the leader in its group", tcs[address("198.18.1.1")], groupTC)
	check("TCs of the other leader in the group", tcs[address("198.18.2.6")], leadersTC)
	hellos, tcs = betweenLeaders.counted()
	check("HELLOs between the leaders", hellos[address("198.18.3.1")], leadersHello)
	check("TCs between the leaders", tcs[address("198.18.1.1")], leadersTC)
}
