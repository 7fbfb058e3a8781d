package worker

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radiod/holder"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/tap"
	"vignette.dev/vignette/internal/radiod/wire"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func set(t *testing.T, m *Manager, networks ...*v1alpha1.RadioNetwork) {
	t.Helper()
	for _, n := range networks {
		if err := m.SetNetwork(n); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnAttachedPodHasItsRadio(t *testing.T) {
	m := newManager(t)
	set(t, m, networkOf("run", "vhf", "pod-1"))
	p := newPod(t, "pod-1")
	answer := m.Serve(p.request("ADD", "vhf"), p.namespace)
	if want := (wire.Answer{MAC: "02:02:00:00:00:01", Address: "198.18.9.1/24", MTU: 1400}); answer != want {
		t.Fatalf("answer %+v; want %+v", answer, want)
	}
	attributes := p.link(t, "vhf").Attrs()
	if attributes.HardwareAddr.String() != "02:02:00:00:00:01" || attributes.MTU != 1400 || attributes.Flags&net.FlagUp == 0 || attributes.RawFlags&unix.IFF_LOWER_UP == 0 {
		t.Errorf("interface %+v; want its MAC, MTU 1400, up with carrier", attributes)
	}
	p.do(t, func() error {
		for path, want := range map[string]string{"ipv4/ip_forward": "1", "ipv4/conf/all/send_redirects": "0", "ipv4/conf/vhf/accept_redirects": "0",
			"ipv4/conf/vhf/arp_ignore": "1", "ipv4/conf/vhf/arp_announce": "2", "ipv4/ip_unprivileged_port_start": "0", "ipv6/conf/vhf/disable_ipv6": "1"} {
			got, err := os.ReadFile("/proc/sys/net/" + path)
			if err != nil || strings.TrimSpace(string(got)) != want {
				t.Errorf("%s is %q, %v; want %s", path, got, err, want)
			}
		}
		for _, group := range []string{"239.1.2.3", "255.255.255.255", "198.18.9.77"} {
			routes, err := netlink.RouteGet(net.ParseIP(group))
			if err != nil || len(routes) == 0 || routes[0].LinkIndex != attributes.Index {
				t.Errorf("route to %s: %v, %v; want the radio", group, routes, err)
			}
		}
		return nil
	})
}

func TestAPodThatIsNoMemberIsRefused(t *testing.T) {
	m := newManager(t)
	set(t, m, networkOf("run", "vhf", "pod-1"))
	member := newPod(t, "pod-1")
	for name, c := range map[string]struct {
		podUID, interfaceName string
	}{
		"another pod that copies everything else":   {"pod-2", "vhf"},
		"the member with another interface":         {"pod-1", "radio0"},
		"nobody":                                    {"", "vhf"},
		"a UID that only begins like the member's":  {"pod-1x", "vhf"},
		"UID and interface swapped into each other": {"pod-1_vhf", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, c.podUID)
			request := member.request("ADD", c.interfaceName) // names, container and configuration of the member
			request.PodUID = c.podUID
			answer := m.Serve(request, p.namespace)
			if !strings.Contains(answer.Error, "pod UID "+c.podUID+" is not a member") || !strings.Contains(answer.Error, "only pods that the operator") {
				t.Errorf("answer %+v; want a refusal that names the pod UID and what would be right", answer)
			}
			if c.interfaceName != "" && p.has(t, c.interfaceName) {
				t.Error("the interface is there all the same")
			}
		})
	}
}

func TestASecondRadioWithTheSameMACIsRefusedAndTheWorkerLives(t *testing.T) {
	m := newManager(t)
	network := networkOf("run", "vhf", "pod-1", "pod-2", "pod-3")
	network.Spec.Members[1].MAC = network.Spec.Members[0].MAC
	set(t, m, network)
	newPod(t, "pod-1").attach(t, m, "vhf")
	second := newPod(t, "pod-2")
	if answer := m.Serve(second.request("ADD", "vhf"), second.namespace); !strings.Contains(answer.Error, "already attached for node-1") {
		t.Errorf("answer %+v; want a refusal that names the node that has the MAC", answer)
	}
	if second.has(t, "vhf") {
		t.Error("the refused radio is still there")
	}
	newPod(t, "pod-3").attach(t, m, "vhf") // on the same loop
}

func TestAddAgainAdopts(t *testing.T) {
	m := newManager(t)
	set(t, m, networkOf("run", "vhf", "pod-1"))
	p := newPod(t, "pod-1")
	p.attach(t, m, "vhf")
	before := p.link(t, "vhf").Attrs().Index
	p.attach(t, m, "vhf") // the runtime did not see the first answer
	if after := p.link(t, "vhf").Attrs().Index; after != before {
		t.Errorf("interface index %d, then %d; want the same interface", before, after)
	}
}

func TestANewSandboxTakesThePlaceOfALostOne(t *testing.T) {
	m := newManager(t)
	set(t, m, networkOf("run", "vhf", "pod-1"))
	lost, fresh := newPod(t, "pod-1"), newPod(t, "pod-1")
	lost.attach(t, m, "vhf")
	request := fresh.request("ADD", "vhf")
	request.ContainerID = "another"
	if answer := m.Serve(request, fresh.namespace); answer.Error != "" {
		t.Fatal(answer.Error)
	}
	if lost.has(t, "vhf") {
		t.Error("the lost sandbox still has the radio")
	}
	if answer := m.Serve(lost.request("DEL", "vhf"), nil); answer.Error != "" || !fresh.has(t, "vhf") {
		t.Errorf("the late DEL of the lost sandbox: %+v; the new one's interface there: %v", answer, fresh.has(t, "vhf"))
	}
}

func TestTAPsOfADeadWorkersHalfDoneAddAreReplaced(t *testing.T) {
	parent, directory := &holder.Holder{}, t.TempDir()
	if err := radiotest.Missing(); err != nil {
		t.Skip(err)
	}
	m, _ := managerWith(t, parent, directory)
	set(t, m, networkOf("run", "vhf", "pod-1"))
	p := newPod(t, "pod-1")
	p.attach(t, m, "vhf")
	if err := m.folder.Remove("attachments", "pod-1_vhf"); err != nil { // as if it had not been written
		t.Fatal(err)
	}
	next, held := managerWith(t, parent, directory)
	if err := next.Restore(held); err != nil {
		t.Fatal(err)
	}
	p.attach(t, next, "vhf")
	if !p.has(t, "vhf") {
		t.Error("the pod has no radio")
	}
}

func TestEndingsRemoveInterfaceFileAndDescriptor(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, m *Manager, p *pod){
		"DEL": func(t *testing.T, m *Manager, p *pod) {
			if answer := m.Serve(p.request("DEL", "vhf"), nil); answer.Error != "" {
				t.Error(answer.Error)
			}
		},
		"the RadioNetwork goes": func(t *testing.T, m *Manager, _ *pod) {
			if err := m.RemoveNetwork("runvhf"); err != nil {
				t.Error(err)
			}
		},
		"the pod is no member any more": func(t *testing.T, m *Manager, _ *pod) {
			set(t, m, networkOf("run", "vhf", "another"))
			if err := m.RemoveFormerMembers(); err != nil {
				t.Error(err)
			}
		},
		"the API server has no such RadioNetwork": func(t *testing.T, m *Manager, _ *pod) {
			if err := m.Prune(map[string]bool{}); err != nil {
				t.Error(err)
			}
		},
		"the namespace goes": func(t *testing.T, m *Manager, p *pod) {
			p.end()
			eventually(t, "the attachment is gone", func() bool { n, _, _ := statusOf(m, "runvhf"); return n == 0 })
			p.namespace = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := radiotest.Missing(); err != nil {
				t.Skip(err)
			}
			parent, directory := &holder.Holder{}, t.TempDir()
			m, _ := managerWith(t, parent, directory)
			set(t, m, networkOf("run", "vhf", "pod-1"))
			p := newPod(t, "pod-1")
			p.attach(t, m, "vhf")
			if parent.Held() != 1 {
				t.Fatalf("the parent holds %d descriptors; want 1", parent.Held())
			}
			end(t, m, p)
			if p.namespace != nil && p.has(t, "vhf") {
				t.Error("the interface is still there")
			}
			eventually(t, "no state is left", func() bool {
				files, _ := filepath.Glob(filepath.Join(directory, "attachments", "*"))
				return len(files) == 0
			})
			eventually(t, "the parent holds nothing", func() bool { return parent.Held() == 0 })
			if all := m.Counters(false); len(all) != 0 {
				t.Errorf("counters are left: %+v", all)
			}
		})
	}
}

func TestOnlyAttachmentsWithoutANamespaceAreGarbage(t *testing.T) {
	m := newManager(t)
	set(t, m, networkOf("run", "vhf", "pod-1", "pod-2"))
	alive, dead := newPod(t, "pod-1"), newPod(t, "pod-2")
	alive.attach(t, m, "vhf")
	dead.attach(t, m, "vhf")
	a := m.members.Attachment(membership.Key{PodUID: "pod-2", Interface: "vhf"})
	a.Namespace.Inode = 1 // no namespace has it: as if its end was not reported
	request := alive.request("GC", "")
	request.Configuration = "exp-vhf" // with an empty list of valid attachments
	if answer := m.Serve(request, nil); answer.Error != "" {
		t.Fatal(answer.Error)
	}
	if !alive.has(t, "vhf") {
		t.Error("the attachment of a live namespace was removed")
	}
	if dead.has(t, "vhf") || m.members.Attachment(a.Key()) != nil {
		t.Error("the attachment without a namespace is still there")
	}
}

func TestFramesFlowBetweenAttachedPods(t *testing.T) {
	m := newManager(t)
	set(t, m, networkOf("run", "vhf", "pod-1", "pod-2"))
	one, two := newPod(t, "pod-1"), newPod(t, "pod-2")
	one.attach(t, m, "vhf")
	two.attach(t, m, "vhf")
	two.listenTCP(t, "198.18.9.2:5000")
	if !one.connectsTo(t, "198.18.9.2:5000") {
		t.Error("TCP does not reach the peer over the radio")
	}
	everybody := two.listenUDP(t, "0.0.0.0:1883")
	if !one.deliversTo(t, "198.18.9.2:1883", everybody) {
		t.Error("UDP does not reach the peer over the radio")
	}
	counters := m.Counters(false)[0].Nodes[0]
	if counters.FramesSent == 0 || counters.FramesReceived == 0 || counters.Lateness.Count == 0 {
		t.Errorf("counters %+v; want frames both ways", counters)
	}
}

func TestTwinExperimentsDoNotMeet(t *testing.T) {
	m := newManager(t)
	set(t, m, networkOf("red", "vhf", "red-1", "red-2"), networkOf("blue", "vhf", "blue-1", "blue-2"))
	pods := map[string]*pod{}
	for _, uid := range []string{"red-1", "red-2", "blue-1", "blue-2"} {
		pods[uid] = newPod(t, uid)
		pods[uid].attach(t, m, "vhf")
	}
	blue := pods["blue-2"].listenUDP(t, "198.18.9.2:1883")
	red := pods["red-2"].listenUDP(t, "198.18.9.2:1883")
	if !pods["red-1"].deliversTo(t, "198.18.9.2:1883", red) {
		t.Error("red does not reach red")
	}
	if err := blue.SetReadDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := blue.ReadFrom(make([]byte, 10)); err == nil {
		t.Error("red reached blue")
	}
}

func TestSilenceLeavesTheInterfaceAndCarriesNothing(t *testing.T) {
	m := newManager(t)
	n := networkOf("run", "vhf", "pod-1", "pod-2")
	set(t, m, n)
	one, two := newPod(t, "pod-1"), newPod(t, "pod-2")
	one.attach(t, m, "vhf")
	two.attach(t, m, "vhf")
	at := two.listenUDP(t, "198.18.9.2:1883")
	silent := n.DeepCopy()
	silent.Spec.Silent, silent.Generation = true, 2
	set(t, m, silent)
	if one.reachesUDP(t, "198.18.9.2:1883", at) {
		t.Error("a datagram arrived over silenced radios")
	}
	if !one.has(t, "vhf") {
		t.Error("silence removed the interface")
	}
	loud := n.DeepCopy()
	loud.Generation = 3
	set(t, m, loud)
	// Address resolution failed during the silence and is tried again each second.
	eventually(t, "a datagram arrives after the silence", func() bool { return one.reachesUDP(t, "198.18.9.2:1883", at) })
}

func TestAnotherWorkerGoesOnWithTheSameCarrier(t *testing.T) {
	if err := radiotest.Missing(); err != nil {
		t.Skip(err)
	}
	parent, directory := &holder.Holder{}, t.TempDir()
	m, _ := managerWith(t, parent, directory)
	set(t, m, networkOf("run", "vhf", "pod-1", "pod-2"))
	one, two := newPod(t, "pod-1"), newPod(t, "pod-2")
	one.attach(t, m, "vhf")
	two.attach(t, m, "vhf")
	changes := one.link(t, "vhf").Attrs()
	m.Close() // as if it had died
	next, held := managerWith(t, parent, directory)
	if len(held) != 2 {
		t.Fatalf("the parent handed over %d descriptors; want 2", len(held))
	}
	if err := next.Restore(held); err != nil {
		t.Fatal(err)
	}
	at := two.listenUDP(t, "198.18.9.2:1883")
	eventually(t, "traffic flows through the new worker", func() bool { return one.reachesUDP(t, "198.18.9.2:1883", at) })
	if after := one.link(t, "vhf").Attrs(); after.Index != changes.Index || after.RawFlags&unix.IFF_LOWER_UP == 0 {
		t.Errorf("interface %+v; want index %d with carrier", after, changes.Index)
	}
}

func TestAnotherParentAdoptsTheTAPs(t *testing.T) {
	if err := radiotest.Missing(); err != nil {
		t.Skip(err)
	}
	directory := t.TempDir()
	dead := &holder.Holder{}
	m, _ := managerWith(t, dead, directory)
	set(t, m, networkOf("run", "vhf", "pod-1", "pod-2", "pod-3"))
	one, two, gone := newPod(t, "pod-1"), newPod(t, "pod-2"), newPod(t, "pod-3")
	for _, p := range []*pod{one, two, gone} {
		p.attach(t, m, "vhf")
	}
	index := one.link(t, "vhf").Attrs().Index
	m.Close()
	dead.Close()
	gone.end()
	if flags := one.link(t, "vhf").Attrs().RawFlags; flags&unix.IFF_LOWER_UP != 0 {
		t.Fatal("the carrier is still there: the test does not test adoption")
	}
	next, held := managerWith(t, &holder.Holder{}, directory)
	if err := next.Restore(held); err != nil {
		t.Fatal(err)
	}
	if attached, _, _ := statusOf(next, "runvhf"); attached != 2 {
		t.Errorf("%d attachments; want 2, as one pod is gone", attached)
	}
	after := one.link(t, "vhf").Attrs()
	if after.Index != index || after.RawFlags&unix.IFF_LOWER_UP == 0 {
		t.Errorf("interface %+v; want index %d with carrier", after, index)
	}
	at := two.listenUDP(t, "198.18.9.2:1883")
	// The kernel takes up to a second to notice the carrier.
	eventually(t, "traffic flows through the adopted TAPs", func() bool { return one.reachesUDP(t, "198.18.9.2:1883", at) })
	// An adopted descriptor keeps the namespace alive: it must go once the pod is gone.
	one.end()
	if err := next.RemovePinned(); err != nil {
		t.Fatal(err)
	}
	if attached, _, _ := statusOf(next, "runvhf"); attached != 1 {
		t.Errorf("%d attachments after a pod has gone; want 1", attached)
	}
}

func TestCheckSeesWhatIsMissing(t *testing.T) {
	m := newManager(t)
	set(t, m, networkOf("run", "vhf", "pod-1"))
	p := newPod(t, "pod-1")
	if answer := m.Serve(p.request("CHECK", "vhf"), p.namespace); answer.Error == "" {
		t.Error("CHECK passes without an attachment")
	}
	p.attach(t, m, "vhf")
	if answer := m.Serve(p.request("CHECK", "vhf"), p.namespace); answer.Error != "" {
		t.Error(answer.Error)
	}
	p.do(t, func() error { return podnet.Remove("vhf") })
	if answer := m.Serve(p.request("CHECK", "vhf"), p.namespace); answer.Error == "" {
		t.Error("CHECK passes without the interface")
	}
}

// outside is a namespace that stands for the host and the cluster's network, with pods behind veths.
type outside struct{ *pod }

func newOutside(t *testing.T) outside {
	o := outside{newPod(t, "outside")}
	o.do(t, func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0) })
	return o
}

func (o outside) address(t *testing.T, address string) {
	o.do(t, func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		parsed, err := netlink.ParseAddr(address)
		if err != nil {
			return err
		}
		return netlink.AddrAdd(lo, parsed)
	})
}

// connect gives the pod an eth0 with 10.99.N.2 and the outside as gateway 10.99.N.1.
func (o outside) connect(t *testing.T, p *pod, n string) {
	o.do(t, func() error {
		name := "veth" + n
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(p.namespace.Fd()))}
		if err := netlink.LinkAdd(veth); err != nil {
			return err
		}
		return up(name, "10.99."+n+".1/24")
	})
	p.do(t, func() error {
		if err := up("eth0", "10.99."+n+".2/24"); err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP("10.99." + n + ".1")})
	})
}

func up(name, address string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	parsed, err := netlink.ParseAddr(address)
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(link, parsed); err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

func TestEth0CarriesOnlyWhatIsAllowed(t *testing.T) {
	m := newManager(t)
	network := networkOf("run", "vhf", "pod-1", "pod-2", "pod-3")
	network.Spec.Members[2].OpenManagement = true
	set(t, m, network)
	o := newOutside(t)
	pods := map[string]*pod{"1": newPod(t, "pod-1"), "2": newPod(t, "pod-2"), "3": newPod(t, "pod-3"), "8": newPod(t, "prometheus"), "9": newPod(t, "stranger")}
	for n, p := range pods {
		o.connect(t, p, n)
	}
	for _, address := range []string{"10.96.0.10/32", "10.96.0.20/32", "10.96.0.30/32"} {
		o.address(t, address)
	}
	dns := o.listenUDP(t, "10.96.0.10:53")
	o.listenTCP(t, "10.96.0.10:53")
	o.listenTCP(t, "10.96.0.20:80")
	o.listenTCP(t, "10.96.0.20:8080")
	o.listenTCP(t, "10.96.0.30:80")
	peer := pods["2"].listenUDP(t, "0.0.0.0:1883")
	for _, port := range []string{"1883", "9464", "9399"} {
		pods["1"].listenTCP(t, "0.0.0.0:"+port)
		pods["2"].listenTCP(t, "0.0.0.0:"+port)
	}
	one, stranger := pods["1"], pods["9"]
	// Otherwise the test would prove nothing.
	eventually(t, "eth0 works before the attachment", func() bool {
		return one.reachesTCP(t, "10.99.2.2:1883") && stranger.reachesTCP(t, "10.99.1.2:1883") && one.reachesTCP(t, "10.96.0.30:80")
	})
	for _, n := range []string{"1", "2", "3"} {
		pods[n].attach(t, m, "vhf")
	}
	allowed := podnet.Allowed{DNS: []netip.AddrPort{netip.MustParseAddrPort("10.96.0.10:53")},
		Servers: []netip.AddrPort{netip.MustParseAddrPort("10.96.0.20:80")}, Hosts: []netip.Addr{netip.MustParseAddr("10.99.1.1")}, Scrapers: []netip.Addr{netip.MustParseAddr("10.99.8.2")}}
	if err := m.SetAllowed(allowed); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		got  bool
		want bool
	}{
		{"the server", one.connectsTo(t, "10.96.0.20:80"), true},
		{"another port of the server", one.reachesTCP(t, "10.96.0.20:8080"), false},
		{"another service", one.reachesTCP(t, "10.96.0.30:80"), false},
		{"DNS over UDP", one.deliversTo(t, "10.96.0.10:53", dns), true},
		{"DNS over TCP", one.connectsTo(t, "10.96.0.10:53"), true},
		{"a peer's eth0 over TCP", one.reachesTCP(t, "10.99.2.2:1883"), false},
		{"a peer's eth0 over UDP", one.reachesUDP(t, "10.99.2.2:1883", peer), false},
		{"a peer's metrics", one.reachesTCP(t, "10.99.2.2:9464"), false},
		{"metrics from outside", stranger.reachesTCP(t, "10.99.1.2:9464"), false},
		{"metrics from their reader", pods["8"].connectsTo(t, "10.99.1.2:9464"), true},
		{"an app from the metrics' reader", pods["8"].reachesTCP(t, "10.99.1.2:1883"), false},
		{"a port below the metrics from outside", stranger.reachesTCP(t, "10.99.1.2:9399"), false},
		{"an app from outside", stranger.reachesTCP(t, "10.99.1.2:1883"), false},
		{"an app from the host, as a probe", o.connectsTo(t, "10.99.1.2:1883"), true},
		{"a peer over the radio", one.connectsTo(t, "198.18.9.2:1883"), true},
		{"a peer over the radio by UDP", one.deliversTo(t, "198.18.9.2:1883", peer), true},
		{"another service with open management", pods["3"].connectsTo(t, "10.96.0.30:80"), true},
		{"loopback", one.connectsTo(t, "127.0.0.1:1883"), true},
	} {
		if c.got != c.want {
			t.Errorf("%s: reached %v; want %v", c.what, c.got, c.want)
		}
	}
	allowed.Servers = []netip.AddrPort{netip.MustParseAddrPort("10.96.0.30:80")}
	if err := m.SetAllowed(allowed); err != nil {
		t.Fatal(err)
	}
	if !one.connectsTo(t, "10.96.0.30:80") || one.reachesTCP(t, "10.96.0.20:80") {
		t.Error("the rules did not follow the server's new address")
	}
}

// mayProbe reports whether the rules in the pod accept the address.
func mayProbe(t *testing.T, p *pod, address string) bool {
	t.Helper()
	c, err := nftables.New(nftables.WithNetNSFd(int(p.namespace.Fd())))
	if err != nil {
		t.Fatal(err)
	}
	table := &nftables.Table{Name: podnet.TableName, Family: nftables.TableFamilyINet}
	rules, err := c.GetRules(table, &nftables.Chain{Name: "in", Table: table})
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules {
		for _, e := range rule.Exprs {
			if compared, ok := e.(*expr.Cmp); ok && slices.Equal(compared.Data, netip.MustParseAddr(address).AsSlice()) {
				return true
			}
		}
	}
	return false
}

func TestAPodThatIsBeingAttachedGetsTheRulesThatChangeMeanwhile(t *testing.T) {
	m := newManager(t)
	const pods = 20
	var uids []string
	for i := range pods {
		uids = append(uids, fmt.Sprintf("pod-%d", i))
	}
	set(t, m, networkOf("run", "vhf", uids...))
	for i, uid := range uids {
		p, address := newPod(t, uid), fmt.Sprintf("192.0.2.%d", i+1)
		attached := make(chan wire.Answer, 1)
		go func() { attached <- m.Serve(p.request("ADD", "vhf"), p.namespace) }()
		time.Sleep(time.Duration(i) * time.Millisecond)
		if err := m.SetAllowed(podnet.Allowed{Hosts: []netip.Addr{netip.MustParseAddr(address)}}); err != nil {
			t.Error(err)
		}
		if answer := <-attached; answer.Error != "" {
			t.Fatal(answer.Error)
		}
		if !mayProbe(t, p, address) {
			t.Errorf("rules that changed %d ms after the beginning of the attachment did not reach the pod", i)
		}
	}
}

func TestRulesThatCouldNotBeRenewedAreTriedAgain(t *testing.T) {
	m := newManager(t)
	set(t, m, networkOf("run", "vhf", "pod-1"))
	p := newPod(t, "pod-1")
	p.attach(t, m, "vhf")
	a := m.members.Attachment(membership.Key{PodUID: "pod-1", Interface: "vhf"})
	path := a.NamespacePath
	a.NamespacePath, m.Options.Finder.Proc = "/nowhere", "/nowhere"
	allowed := podnet.Allowed{Hosts: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}
	if err := m.SetAllowed(allowed); err == nil || mayProbe(t, p, "192.0.2.1") {
		t.Fatalf("error %v, rules renewed %v; the test wants a failure", err, mayProbe(t, p, "192.0.2.1"))
	}
	a.NamespacePath, m.Options.Finder.Proc = path, ""
	if err := m.SetAllowed(allowed); err != nil || !mayProbe(t, p, "192.0.2.1") {
		t.Errorf("error %v; the rules are still those of before", err)
	}
}

// firstIndex is the index of a pod's first radio.
const firstIndex = 1000

func TestEth0MayHaveTheNumberOfARadio(t *testing.T) {
	m := newManager(t)
	set(t, m, networkOf("run", "vhf", "pod-1"))
	p := newPod(t, "pod-1")
	fd, temporary, err := tap.Create() // any interface will do
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tap.Destroy(fd) })
	if err := podnet.Move(temporary, podnet.Interface{MAC: net.HardwareAddr{2, 0, 0, 0, 0, 9}, MTU: 1400}, p.namespace, firstIndex); err != nil {
		t.Fatal(err)
	}
	p.do(t, func() error {
		link, err := netlink.LinkByName(temporary)
		if err != nil {
			return err
		}
		return netlink.LinkSetName(link, "eth0")
	})
	p.attach(t, m, "vhf")
	if index := p.link(t, "vhf").Attrs().Index; index == firstIndex || p.link(t, "eth0").Attrs().Index != firstIndex {
		t.Errorf("the radio has number %d; want another than eth0's", index)
	}
}

// pings reports whether an address answers an ICMP echo request (RFC 792) from the pod.
func (p *pod) pings(t *testing.T, address string) (answered bool) {
	t.Helper()
	p.do(t, func() error {
		conn, err := net.Dial("ip4:icmp", address)
		if err != nil {
			return err
		}
		defer conn.Close()
		request := []byte{8, 0, 0xf7, 0xfd, 0, 1, 0, 1} // type, code, checksum, identifier, number
		if _, err := conn.Write(request); err != nil && !errors.Is(err, unix.EPERM) {
			return err
		}
		if err := conn.SetReadDeadline(time.Now().Add(testTimeout)); err != nil {
			return err
		}
		_, err = conn.Read(make([]byte, 64))
		answered = err == nil
		return nil
	})
	return answered
}

func (p *pod) reachesTCP6(t *testing.T, address string) bool {
	t.Helper()
	return p.dials(t, "tcp6", address, testTimeout)
}

func TestEth0CarriesNeitherPingsNorIPv6(t *testing.T) {
	m := newManager(t)
	set(t, m, networkOf("run", "vhf", "pod-1"))
	o, p := newOutside(t), newPod(t, "pod-1")
	o.connect(t, p, "1")
	for owner, name := range map[*pod]string{o.pod: "veth1", p: "eth0"} {
		owner.do(t, func() error {
			link, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			address, err := netlink.ParseAddr(map[string]string{"veth1": "fd00:99::1/64", "eth0": "fd00:99::2/64"}[name])
			if err != nil {
				return err
			}
			address.Flags = unix.IFA_F_NODAD
			return netlink.AddrAdd(link, address)
		})
		owner.do(t, func() error {
			listener, err := net.Listen("tcp6", "[::]:5000")
			if err == nil {
				t.Cleanup(func() { _ = listener.Close() })
			}
			return err
		})
	}
	eventually(t, "both work before the attachment", func() bool {
		return p.pings(t, "10.99.1.1") && p.reachesTCP6(t, "[fd00:99::1]:5000") && o.reachesTCP6(t, "[fd00:99::2]:5000")
	})
	p.attach(t, m, "vhf")
	for what, reached := range map[string]bool{"a ping": p.pings(t, "10.99.1.1"), "IPv6 from the node": p.reachesTCP6(t, "[fd00:99::1]:5000"),
		"IPv6 to the node": o.reachesTCP6(t, "[fd00:99::2]:5000")} {
		if reached {
			t.Errorf("%s goes through eth0", what)
		}
	}
}

func TestANodeDoesNotRouteBetweenRadioAndEth0(t *testing.T) {
	m := newManager(t)
	set(t, m, networkOf("run", "vhf", "pod-1", "pod-2"))
	o := newOutside(t)
	one, two := newPod(t, "pod-1"), newPod(t, "pod-2")
	o.connect(t, two, "2")
	one.attach(t, m, "vhf")
	two.attach(t, m, "vhf")
	at := o.listenUDP(t, "10.99.2.1:7000")
	one.do(t, func() error {
		return netlink.RouteAdd(&netlink.Route{Dst: &net.IPNet{IP: net.IPv4(10, 99, 2, 0), Mask: net.CIDRMask(24, 32)}, Gw: net.ParseIP("198.18.9.2")})
	})
	if one.reachesUDP(t, "10.99.2.1:7000", at) {
		t.Error("a frame went from a radio through a peer's eth0")
	}
}

func TestSpooledCountersAddUp(t *testing.T) {
	m := newManager(t)
	set(t, m, networkOf("run", "vhf", "pod-1", "pod-2"))
	one, two := newPod(t, "pod-1"), newPod(t, "pod-2")
	one.attach(t, m, "vhf")
	two.attach(t, m, "vhf")
	at := two.listenUDP(t, "0.0.0.0:1883")
	for range 5 {
		one.reachesUDP(t, "198.18.9.2:1883", at)
	}
	for _, n := range m.Counters(false)[0].Nodes {
		if !n.AddUp() {
			t.Errorf("%s: %+v does not add up", n.Node, n.Counters)
		}
	}
}

func TestNodesHaveTheCongestionControlThatTheExperimentAsksFor(t *testing.T) {
	const file = "/proc/sys/net/ipv4/tcp_congestion_control"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	host := strings.TrimSpace(string(text))
	for asked, want := range map[string]string{"": host, "reno": "reno", "nosuch": host} { // every kernel has reno
		t.Run(asked, func(t *testing.T) {
			m := newManager(t)
			n := networkOf("run", "vhf", "pod-1")
			n.Spec.TCPCongestionControl = asked
			set(t, m, n)
			p := newPod(t, "pod-1")
			p.attach(t, m, "vhf")
			p.do(t, func() error {
				text, err := os.ReadFile(file)
				if got := strings.TrimSpace(string(text)); got != want {
					t.Errorf("the pod has %s; want %s", got, want)
				}
				return err
			})
			if status, _ := m.HostStatus(string(n.UID)); status.CongestionControl != want {
				t.Errorf("the status tells %q; want %s", status.CongestionControl, want)
			}
		})
	}
	if now, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(now)) != host {
		t.Errorf("the host has %s, %v; want %s as before", now, err, host)
	}
}

func TestACongestionControlThatNodesMayNotChooseIsNotAllowedOnTheHost(t *testing.T) {
	const folder = "/proc/sys/net/ipv4/"
	read := func(name string) []string {
		text, _ := os.ReadFile(folder + name)
		return strings.Fields(string(text))
	}
	before := read("tcp_allowed_congestion_control")
	other := slices.DeleteFunc(read("tcp_available_congestion_control"), func(name string) bool { return slices.Contains(before, name) })
	if len(before) == 0 || len(other) == 0 {
		t.Skip("this host allows every congestion control that it has")
	}
	m := newManager(t)
	n := networkOf("run", "vhf", "pod-1")
	n.Spec.TCPCongestionControl = other[0]
	set(t, m, n)
	newPod(t, "pod-1").attach(t, m, "vhf")
	if now := read("tcp_allowed_congestion_control"); !slices.Equal(now, before) {
		t.Errorf("the host allows %q; want %q as before", now, before)
	}
}

func TestARefusalIsInTheStatusOfTheHost(t *testing.T) {
	m := newManager(t)
	n := networkOf("run", "vhf", "pod-1")
	n.Spec.Members[0].MAC = "nonsense"
	set(t, m, n.DeepCopy())
	if refused := refusedOf(m, string(n.UID)); !strings.Contains(refused, `mac "nonsense"`) {
		t.Errorf("refused is %q", refused)
	}
	n.Spec.Members[0].MAC, n.Generation = "02:02:00:00:00:01", n.Generation+1
	set(t, m, n)
	if refused := refusedOf(m, string(n.UID)); refused != "" {
		t.Errorf("refused is %q, and nothing is wrong any more", refused)
	}
}
