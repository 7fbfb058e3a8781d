package worker

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/emane/emanetest"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	emaneUID = "0e3a0000-1111-2222-3333-444444444444"
	// otherEMANEUID is the pod on another host.
	otherEMANEUID = "0e3a0000-1111-2222-3333-555555555555"
)

// emanePod is a pod of EMANE's on this host, as its runtime and the kubelet make it. It has a namespace with
// eth0, and a process in the pod's control group, by which radiod finds it.
type emanePod struct {
	*pod
	proc string
}

// newEMANEPod is not seen in its proc yet.
func newEMANEPod(t *testing.T) *emanePod { return newEMANEPodOf(t, emaneUID) }

func newEMANEPodOf(t *testing.T, uid string) *emanePod {
	p, hub := &emanePod{newPod(t, uid), t.TempDir()}, newPod(t, "hub")
	p.do(t, func() error {
		eth0 := netlink.NewVeth(netlink.LinkAttrs{Name: emane.PodDevice})
		eth0.PeerName, eth0.PeerNamespace = "hub0", netlink.NsFd(int(hub.namespace.Fd()))
		if err := netlink.LinkAdd(eth0); err != nil {
			return err
		}
		address, err := netlink.ParseAddr("10.99.0.1/24")
		if err != nil {
			return err
		}
		if err := netlink.AddrAdd(eth0, address); err != nil {
			return err
		}
		return netlink.LinkSetUp(eth0)
	})
	hub0 := hub.link(t, "hub0")
	hub.do(t, func() error { return netlink.LinkSetUp(hub0) })
	return p
}

// appear as a process in proc.
func (p *emanePod) appear(t *testing.T) {
	t.Helper()
	p.appearAs(t, "4242")
}

func (p *emanePod) appearAs(t *testing.T, process string) {
	t.Helper()
	process = filepath.Join(p.proc, process)
	if err := os.MkdirAll(filepath.Join(process, "ns"), 0o700); err != nil {
		t.Fatal(err)
	}
	group := "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + strings.ReplaceAll(p.uid, "-", "_") + ".slice/cri-containerd-1.scope\n"
	if err := os.Symlink(p.path(), filepath.Join(process, "ns", "net")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(process, "cgroup"), []byte(group), 0o600); err != nil {
		t.Fatal(err)
	}
}

// emaneNetwork of members that stand 100 m apart.
func emaneNetwork(podUIDs ...string) *v1alpha1.RadioNetwork {
	n := networkOf("run1", "vhf", podUIDs...)
	n.Spec.Engine = v1alpha1.EngineEMANE
	n.Spec.Waveform = v1alpha1.WaveformSpec{RFPipe: &v1alpha1.RFPipeModel{Rate: "1Mbit",
		PHY: v1alpha1.PHY{Frequency: "300MHz", Bandwidth: "1MHz", TransmitPower: "20dBm", NoiseFigure: "4dB", Pathloss: v1alpha1.PathlossFreeSpace}}}
	for i := range n.Spec.Members {
		n.Spec.Members[i].Position = &v1alpha1.Position{Latitude: v1alpha1.Degrees(fmt.Sprintf("47.%03d", i)), Longitude: "8", Altitude: "400m"}
	}
	return n
}

// configuredRadios of the pod, as the operator tells it.
func configuredRadios(n *v1alpha1.RadioNetwork) *v1alpha1.RadioNetwork {
	n = n.DeepCopy()
	n.Generation++
	n.Spec.EMANE = []v1alpha1.EMANEPod{{Host: "host-b", PodUID: otherEMANEUID}, {Host: "host-a", PodUID: emaneUID}}
	return n
}

func (p *emanePod) manager(m *Manager) *Manager {
	m.Networks.Host, m.Options.Finder = "host-a", netns.Finder{Proc: p.proc}
	return m
}

// play starts a control port for each member.
func (p *emanePod) play(t *testing.T, n *v1alpha1.RadioNetwork) (all []*emanetest.Process) {
	t.Helper()
	p.do(t, func() error {
		for _, member := range n.Spec.Members {
			process, err := emanetest.Listen(int(member.NEM), emane.InPod(n, member.NEM).Control.String())
			if err != nil {
				return err
			}
			t.Cleanup(func() { _ = process.Close() })
			all = append(all, process)
		}
		return nil
	})
	return all
}

func attachedIs(m *Manager, n *v1alpha1.RadioNetwork, want int) func() bool {
	return func() bool {
		attached, _, _ := statusOf(m, string(n.UID))
		return attached == want
	}
}

func TestAMemberThatEMANECarriesHasAVethIntoItsPodAndIsAttachedOnceItsProcessAnswers(t *testing.T) {
	m, p := newManager(t), newEMANEPod(t)
	p.manager(m)
	a, b := newPod(t, "pod-a"), newPod(t, "pod-b")
	n := emaneNetwork(a.uid, b.uid)
	if err := m.SetNetwork(n); err != nil {
		t.Fatal(err)
	}
	a.attach(t, m, "vhf")
	b.attach(t, m, "vhf")
	l := a.link(t, "vhf")
	if l.Type() != "veth" || l.Attrs().MTU != 1400 || l.Attrs().HardwareAddr.String() != "02:02:00:00:00:01" {
		t.Errorf("%s with MTU %d and MAC %s: want a veth, 1400, 02:02:00:00:00:01", l.Type(), l.Attrs().MTU, l.Attrs().HardwareAddr)
	}
	eventually(t, "it says that the pod is waited for", func() bool {
		attached, message, _ := statusOf(m, string(n.UID))
		return attached == 0 && strings.Contains(message, "waiting for the pod of EMANE")
	})
	p.appear(t)
	if err := m.SetNetwork(configuredRadios(n)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both radios are beside EMANE", func() bool { return p.has(t, "nem1") && p.has(t, "nem2") })
	p.do(t, func() error {
		off, err := os.ReadFile("/proc/sys/net/ipv6/conf/nem1/disable_ipv6")
		if err == nil && string(off) != "1\n" {
			t.Errorf("disable_ipv6 of EMANE's end is %q; want 1, as the kernel there must not send on the radio", off)
		}
		return nil
	})
	eventually(t, "it names the processes that do not answer", func() bool {
		_, message, _ := statusOf(m, string(n.UID))
		return strings.Contains(message, "nem1, nem2 do not answer yet")
	})
	processes := p.play(t, n)
	eventually(t, "both are attached", attachedIs(m, n, 2))
	if rate := processes[0].Parameter("datarate"); rate != uint64(1e6) {
		t.Errorf("datarate is %v, want 1000000", rate)
	}
	if answer := m.Serve(a.request("CHECK", "vhf"), a.namespace); answer.Error != "" {
		t.Errorf("CHECK: %s", answer.Error)
	}
	if answer := m.Serve(a.request("DEL", "vhf"), nil); answer.Error != "" {
		t.Errorf("DEL: %s", answer.Error)
	}
	if a.has(t, "vhf") || p.has(t, "nem1") || !p.has(t, "nem2") {
		t.Error("after DEL of one: want its two ends gone, and the other's there")
	}
	if err := m.RemoveNetwork(string(n.UID)); err != nil {
		t.Fatal(err)
	}
	if b.has(t, "vhf") || p.has(t, "nem2") {
		t.Error("the other's ends are there although the network was removed")
	}
}

// EMANE's raw transport ends with its interface: the process answers on, and carries no frame of another one.
func TestARadioThatReplacesOneThatEMANEHasOpenedIsRefused(t *testing.T) {
	m, p := newManager(t), newEMANEPod(t)
	p.manager(m)
	p.appear(t)
	a, b := newPod(t, "pod-a"), newPod(t, "pod-b")
	n := configuredRadios(emaneNetwork(a.uid, b.uid))
	if err := m.SetNetwork(n); err != nil {
		t.Fatal(err)
	}
	again := func(when string) {
		t.Helper()
		if answer := m.Serve(a.request("DEL", "vhf"), nil); answer.Error != "" {
			t.Fatalf("%s: %s", when, answer.Error)
		}
		a.attach(t, m, "vhf")
		eventually(t, when+": its radio is beside EMANE", func() bool { return p.has(t, "nem1") })
	}
	a.attach(t, m, "vhf")
	b.attach(t, m, "vhf")
	eventually(t, "its radio is beside EMANE", func() bool { return p.has(t, "nem1") })
	var mute net.Listener // takes the time of radiod, which so does not see that the radio is away
	p.do(t, func() (err error) {
		mute, err = net.Listen("tcp4", emane.InPod(n, 2).Control.String())
		return err
	})
	if _, err := mute.Accept(); err != nil {
		t.Fatal(err)
	}
	again("before its process answers")
	if err := mute.Close(); err != nil {
		t.Fatal(err)
	}
	p.play(t, n)
	eventually(t, "both are attached", attachedIs(m, n, 2))
	if refused := refusedOf(m, string(n.UID)); refused != "" {
		t.Errorf("refused is %q; want nothing, as EMANE had not opened the radio", refused)
	}
	again("afterwards")
	if refused := refusedOf(m, string(n.UID)); !strings.Contains(refused, "node node-1: its radio was attached again") {
		t.Errorf("refused is %q; want the node, and why", refused)
	}
	time.Sleep(time.Second) // its process answers
	if attached, _, _ := statusOf(m, string(n.UID)); attached != 1 {
		t.Errorf("%d attached; want only the other", attached)
	}
	other := n.DeepCopy()
	other.Generation++
	other.Spec.EMANE[1].PodUID = otherEMANEUID
	if err := m.SetNetwork(other); err != nil {
		t.Fatal(err)
	}
	if refused := refusedOf(m, string(n.UID)); refused != "" {
		t.Errorf("refused is %q; want nothing once EMANE has another pod", refused)
	}
}

// emaneRadiod is a radiod whose first worker has a network of EMANE with two radios.
type emaneRadiod struct {
	bed       radiodBed
	emane     *emanePod
	first     *Manager
	a, b      *pod
	network   *v1alpha1.RadioNetwork
	processes []*emanetest.Process
}

func newEMANERadiod(t *testing.T) *emaneRadiod {
	t.Helper()
	r := &emaneRadiod{bed: newRadiod(t), emane: newEMANEPod(t), a: newPod(t, "pod-a"), b: newPod(t, "pod-b")}
	r.emane.appear(t)
	r.first, _ = r.bed.worker(t)
	r.emane.manager(r.first)
	r.network = configuredRadios(emaneNetwork(r.a.uid, r.b.uid))
	r.processes = r.emane.play(t, r.network)
	if err := r.first.SetNetwork(r.network); err != nil {
		t.Fatal(err)
	}
	r.a.attach(t, r.first, "vhf")
	r.b.attach(t, r.first, "vhf")
	eventually(t, "both are attached", attachedIs(r.first, r.network, 2))
	return r
}

// next is the worker that takes up what the closed first one has left.
func (r *emaneRadiod) next(t *testing.T) *Manager {
	t.Helper()
	m, held := managerWith(t, r.bed.parent, r.bed.directory)
	r.emane.manager(m)
	if err := m.Restore(held); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTheNextWorkerKnowsTheRadiosThatHaveLeftEMANE(t *testing.T) {
	r := newEMANERadiod(t)
	first, a, n := r.first, r.a, r.network
	if answer := first.Serve(a.request("DEL", "vhf"), nil); answer.Error != "" {
		t.Fatal(answer.Error)
	}
	first.Close()

	next := r.next(t)
	a.attach(t, next, "vhf")
	if refused := refusedOf(next, string(n.UID)); !strings.Contains(refused, "node node-1: its radio was attached again") {
		t.Errorf("refused is %q; want the node, and why", refused)
	}
}

func TestFramesReachEMANEWithTheirChecksumsAndNotLongerThanTheMTU(t *testing.T) {
	m, p := newManager(t), newEMANEPod(t)
	p.manager(m)
	p.appear(t)
	a := newPod(t, "pod-a")
	n := configuredRadios(emaneNetwork(a.uid))
	if err := m.SetNetwork(n); err != nil {
		t.Fatal(err)
	}
	a.attach(t, m, "vhf")
	eventually(t, "the radio is beside EMANE", func() bool { return p.has(t, "nem1") && p.link(t, "nem1").Attrs().Flags&net.FlagUp != 0 })
	socket := -1
	p.do(t, func() (err error) {
		socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(0x0300)) // ETH_P_ALL in network order
		if err != nil {
			return err
		}
		index, err := net.InterfaceByName("nem1")
		if err != nil {
			return err
		}
		return unix.Bind(socket, &unix.SockaddrLinklayer{Protocol: 0x0300, Ifindex: index.Index})
	})
	defer unix.Close(socket)
	_ = unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5})
	a.do(t, func() error {
		c, err := net.Dial("udp4", "198.18.9.255:4000")
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Write(make([]byte, 3000))
		return err
	})
	for seen := 0; seen < 3; {
		frame := make([]byte, 65536)
		size, err := unix.Read(socket, frame)
		if err != nil {
			t.Fatal(err)
		}
		if frame[12] != 8 || frame[23] != unix.IPPROTO_UDP {
			continue // something of the kernel's
		}
		seen++
		if size > 1400+14 {
			t.Errorf("a frame of %d bytes: longer than the MTU", size)
		}
	}
}

func TestRadiodTakesUpRadiosThatEMANECarriesAfterARestart(t *testing.T) {
	r := newEMANERadiod(t)
	first, a, n := r.first, r.a, r.network
	index := a.link(t, "vhf").Attrs().Index
	r.processes[0].Count("numTxSlotValid", 7)
	a.sendDatagrams(t, "198.18.9.255:7000", 5)
	first.ReadRings()
	sent := counted(first, "node-1").FramesSent
	if sent < 5 {
		t.Fatalf("%d frames are counted, want 5 at least", sent)
	}
	first.Close()

	m := r.next(t)
	eventually(t, "both are attached again", attachedIs(m, n, 2))
	if now := a.link(t, "vhf").Attrs(); now.Index != index || now.Flags&net.FlagRunning == 0 && now.OperState != netlink.OperUp {
		t.Errorf("the interface is %+v: want number %d, as it was, and up", now, index)
	}
	eventually(t, "its counters are told", func() bool {
		for _, counted := range m.Counters(false) {
			for i := range counted.Nodes {
				if counted.Nodes[i].Node == "node-1" && counted.Nodes[i].Slots.Used == 7 {
					return true
				}
			}
		}
		return false
	})
	if now := counted(m, "node-1").FramesSent; now != sent {
		t.Errorf("%d frames are counted before the node's turn to be read; want %d as before", now, sent)
	}
}

func TestARestartNamesWhatEMANEsCapturesLackAndThatItsFramesWentOn(t *testing.T) {
	bed, p := newRadiod(t), newEMANEPod(t)
	p.appear(t)
	first, _ := bed.worker(t)
	p.manager(first)
	a, b := newPod(t, "pod-a"), newPod(t, "pod-b")
	n := configuredRadios(emaneNetwork(a.uid, b.uid))
	n.Spec.Experiment.UID, n.Spec.Captures = "run", []v1alpha1.RadioCapture{{Name: "run", Nodes: []string{"node-1"}}}
	p.play(t, n)
	set(t, first, n)
	a.attach(t, first, "vhf")
	b.attach(t, first, "vhf")
	eventually(t, "both are attached", attachedIs(first, n, 2))
	seen := bed.seen(t, first)
	first.Close()

	m, held := managerWith(t, bed.parent, bed.directory)
	results := restored(t, p.manager(m), held)
	captured := results.gap(t, "capture")
	if captured.ToNanoseconds < seen || !strings.Contains(captured.Reason, "captures of vhf, which EMANE carries, lack the frames of that time") {
		t.Errorf("gap %+v; want that of captures of vhf up to now", captured)
	}
	if gap := results.gap(t, "radiodRestarted"); !strings.Contains(gap.Reason, "EMANE carried frames meanwhile") || strings.Contains(gap.Reason, "frames under way were lost") {
		t.Errorf("gap %+v; want it to say that EMANE carried frames meanwhile", gap)
	}
}

func TestARadioOfEMANEThatNoNetworkListsIsSwept(t *testing.T) {
	m, p := newManager(t), newEMANEPod(t)
	p.appear(t)
	p.manager(m)
	a := newPod(t, "pod-a")
	n := configuredRadios(emaneNetwork(a.uid))
	if err := m.SetNetwork(n); err != nil {
		t.Fatal(err)
	}
	a.attach(t, m, "vhf")
	// As if radiod had lost its record.
	m.members.Detach(m.members.Attachment(membership.Key{PodUID: a.uid, Interface: "vhf"}))
	m.members.Remove(string(n.UID))
	if err := netns.Do(a.namespace, m.SweepPod); err != nil {
		t.Fatal(err)
	}
	if a.has(t, "vhf") {
		t.Error("it is still there")
	}
}

func TestChangesReachEMANEAtTheirTime(t *testing.T) {
	m, p := newManager(t), newEMANEPod(t)
	p.appear(t)
	p.manager(m)
	a, b := newPod(t, "pod-a"), newPod(t, "pod-b")
	n := configuredRadios(emaneNetwork(a.uid, b.uid))
	processes := p.play(t, n)
	if err := m.SetNetwork(n.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	a.attach(t, m, "vhf")
	b.attach(t, m, "vhf")
	eventually(t, "both have their first power", func() bool {
		return processes[0].Parameter("txpower") == 20.0 && processes[1].Parameter("radiosilenceenable") == false
	})
	n.Generation++
	power, off := v1alpha1.Power("10dBm"), false
	t0 := metav1.NewMicroTime(time.Now())
	n.Spec.T0 = &t0
	n.Spec.Changes = []v1alpha1.TimedRadioChange{
		{AtNanoseconds: int64(2 * time.Second), RadioChange: v1alpha1.RadioChange{Network: "vhf", Radio: &v1alpha1.RadioPatch{TransmitPower: &power}}},
		{AtNanoseconds: int64(2 * time.Second), RadioChange: v1alpha1.RadioChange{Network: "vhf", From: "node-2", Radio: &v1alpha1.RadioPatch{Transmit: &off}}}}
	if err := m.SetNetwork(n); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both have the new one", func() bool {
		return processes[0].Parameter("txpower") == 10.0 && processes[1].Parameter("txpower") == 10.0
	})
	eventually(t, "the second is silent", func() bool { return processes[1].Parameter("radiosilenceenable") == true })
	if processes[0].Parameter("radiosilenceenable") != false {
		t.Error("the first is silent as well")
	}
	if late := time.Since(t0.Time) - 2*time.Second; late < 0 {
		t.Errorf("it came %v too early", -late)
	}
}

func TestARadioThatEMANESilencesHasItsRouterSilent(t *testing.T) {
	m, p := newManager(t), newEMANEPod(t)
	p.appear(t)
	p.manager(m)
	route(t, m)
	n := configuredRadios(emaneNetwork("pod-a", "pod-b"))
	setRouting(n, v1alpha1.RoutingOLSRv2)
	p.play(t, n)
	attachAll(t, m, n, "pod-a", "pod-b")
	sent := func(node string) uint64 {
		if r := counted(m, node).Routing; r != nil {
			return r.PacketsSent
		}
		return 0
	}
	within(t, "both routers send", func() bool { return sent("node-1") > 2 && sent("node-2") > 2 })
	silence := func(is bool) {
		n = alter(t, m, n, func(n *v1alpha1.RadioNetwork) {
			if n.Spec.T0 == nil {
				n.Spec.T0 = &metav1.MicroTime{Time: time.Now()}
			}
			transmits := !is
			n.Spec.Changes = append(n.Spec.Changes, v1alpha1.TimedRadioChange{AtNanoseconds: int64(time.Since(n.Spec.T0.Time)),
				RadioChange: v1alpha1.RadioChange{From: "node-2", Radio: &v1alpha1.RadioPatch{Transmit: &transmits}}})
		})
	}
	silence(true)
	within(t, "the router of the silent radio sends nothing", func() bool {
		before, other := sent("node-2"), sent("node-1")
		within(t, "the other sends", func() bool { return sent("node-1") > other+3 })
		return sent("node-2") == before
	})
	before := sent("node-2")
	silence(false)
	within(t, "it sends again", func() bool { return sent("node-2") > before })
}

// start the EMANE of this machine for each member, as the pod's script does.
func (p *emanePod) start(t *testing.T, n *v1alpha1.RadioNetwork, prefix string) {
	t.Helper()
	root := t.TempDir()
	for i := range n.Spec.Members {
		member := &n.Spec.Members[i]
		process := emane.InPod(n, member.NEM)
		process.Directory, process.DTDs = filepath.Join(root, fmt.Sprint(member.NEM)), filepath.Join(prefix, "share", "emane", "dtd")
		files, err := emane.Render(&n.Spec, member, process)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(process.Directory, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := os.WriteFile(filepath.Join(process.Directory, f.Name), f.Text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		log, err := os.Create(filepath.Join(process.Directory, "log"))
		if err != nil {
			t.Fatal(err)
		}
		command := exec.Command(filepath.Join(prefix, "bin", "emane"), "-l", "2", emane.Platform)
		command.Dir, command.Stdout, command.Stderr = process.Directory, log, log
		command.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(prefix, "lib"))
		p.do(t, command.Start)
		t.Cleanup(func() {
			_, _ = command.Process.Kill(), command.Wait()
			if text, _ := os.ReadFile(log.Name()); t.Failed() {
				t.Logf("EMANE of NEM %d: %s", member.NEM, text)
			}
		})
	}
}

// TestARealEMANECarriesFramesBetweenMembers has the EMANE of this machine in the place of the pod's.
func TestARealEMANECarriesFramesBetweenMembers(t *testing.T) {
	prefix := testtool.EMANE(t)
	for name, waveform := range map[string]func(*v1alpha1.RadioNetwork){"rfpipe": func(*v1alpha1.RadioNetwork) {}, "tdma": func(n *v1alpha1.RadioNetwork) {
		phy := n.Spec.Waveform.RFPipe.PHY
		n.Spec.Waveform = v1alpha1.WaveformSpec{TDMA: &v1alpha1.TDMAModel{Rate: "1Mbit", PHY: phy, Structure: v1alpha1.TDMAStructure{Frames: 1, SlotDuration: "10ms"}}}
	}} {
		t.Run(name, func(t *testing.T) {
			m, p := newManager(t), newEMANEPod(t)
			p.appear(t)
			p.manager(m)
			a, b := newPod(t, "pod-a"), newPod(t, "pod-b")
			n := emaneNetwork(a.uid, b.uid)
			waveform(n)
			n = configuredRadios(n)
			if err := m.SetNetwork(n); err != nil {
				t.Fatal(err)
			}
			a.attach(t, m, "vhf")
			b.attach(t, m, "vhf")
			eventually(t, "both radios are beside EMANE", func() bool { return p.has(t, "nem1") && p.has(t, "nem2") })
			p.start(t, n, prefix)
			for deadline := time.Now().Add(time.Minute); !attachedIs(m, n, 2)(); time.Sleep(100 * time.Millisecond) {
				if time.Now().After(deadline) {
					_, message, _ := statusOf(m, string(n.UID))
					t.Fatalf("not attached after a minute: %s", message)
				}
			}
			at := b.listenUDP(t, "198.18.9.2:4000")
			for deadline := time.Now().Add(time.Minute); !a.reachesUDP(t, "198.18.9.2:4000", at); {
				if time.Now().After(deadline) {
					_, message, _ := statusOf(m, string(n.UID))
					t.Fatalf("nothing arrives: %s; %+v", message, m.Counters(false))
				}
			}
			eventually(t, "the frame is counted at both ends", func() bool {
				m.ReadRings()
				nodes := m.Counters(false)[0].Nodes
				return nodes[0].FramesSent > 0 && nodes[1].FramesReceived > 0
			})
			silent := n.DeepCopy()
			silent.Generation++
			silent.Spec.Silent = true
			if err := m.SetNetwork(silent); err != nil {
				t.Fatal(err)
			}
			eventually(t, "nothing arrives in radio silence", func() bool { return !a.reachesUDP(t, "198.18.9.2:4000", at) })
		})
	}
}
