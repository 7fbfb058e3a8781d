package worker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/holder"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/vmnic"
	"vignette.dev/vignette/internal/radiod/wire"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// hashed is a name as KubeVirt gives one to a virtual machine's interface in the launcher's namespace.
const hashed = "pod37a8eec1ce1"

// ofMachine makes the network's last member a virtual machine.
func ofMachine(n *v1alpha1.RadioNetwork) *v1alpha1.RadioNetwork {
	n.Spec.Members[len(n.Spec.Members)-1].Runtime = v1alpha1.RuntimeVM
	return n
}

// launcher is a pod in which KubeVirt runs QEMU.
type launcher struct{ *pod }

func newLauncher(t *testing.T, uid string) launcher {
	l := launcher{newPod(t, uid)}
	newOutside(t).connect(t, l.pod, "7")
	return l
}

func (l launcher) request(command, interfaceName, network string) wire.Request {
	request := l.pod.request(command, interfaceName)
	request.Network = network
	return request
}

func (l launcher) attach(t *testing.T, m *Manager) {
	t.Helper()
	answer := m.Serve(l.request("ADD", hashed, "vhf"), l.namespace)
	if answer.Error != "" {
		t.Fatal(answer.Error)
	}
}

// qemu is what QEMU has of a virtual machine's radio: a TAP with virtio's header before each frame.
type qemu struct{ *os.File }

const (
	// virtioHeader is the length of virtio_net_hdr_v1 (Virtual I/O Device 1.2, 5.1.6).
	virtioHeader = 12
	// Of QEMU's TAPs (linux/if_tun.h).
	tunSetVnetHeaderSize, checksumOffload, segmentTCP4 = 0x400454d8, 1, 2
	needsChecksum, segmentsTCP4                        = 1, 1
)

// startQEMU opens the TAP as libvirt does in a launcher: by its name, as a user without privileges.
func (l launcher) startQEMU(t *testing.T) *qemu {
	t.Helper()
	fd, err := l.open(hashed, vmnic.QEMU)
	if err != nil {
		t.Fatal(err)
	}
	q := &qemu{os.NewFile(uintptr(fd), hashed)} //nolint:gosec // a descriptor is not negative
	t.Cleanup(func() { _ = q.Close() })
	return q
}

// open a TAP of the namespace as a user, on a thread that ends then.
func (l launcher) open(name string, user int) (fd int, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() { // Go never lets it end: another will do
			fd, err = l.open(name, user)
			return
		}
		if err = unix.Setns(int(l.namespace.Fd()), unix.CLONE_NEWNET); err != nil {
			return
		}
		fd, err = openAs(name, user)
	}()
	<-done
	return fd, err
}

// openAs drops the thread's privileges, once it has the device, which KubeVirt gives to launchers.
func openAs(name string, user int) (fd int, err error) {
	fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, unix.Close(fd))
		}
	}()
	id := uintptr(user)
	for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} { // of this thread only
		if _, _, errno := unix.RawSyscall(call, id, id, id); errno != 0 {
			return fd, errno
		}
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return fd, err
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return fd, os.NewSyscallError("TUNSETIFF", err)
	}
	return fd, errors.Join(unix.IoctlSetPointerInt(fd, tunSetVnetHeaderSize, virtioHeader),
		unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, checksumOffload|segmentTCP4))
}

// send sends a frame of the guest. For a complete frame, the kind of segmentation, the segment size and the
// checksums' offsets are 0.
func (q *qemu) send(t *testing.T, frame []byte, kind byte, segment, start, offset uint16) {
	t.Helper()
	header := make([]byte, virtioHeader)
	if offset > 0 {
		header[0] = needsChecksum
	}
	header[1] = kind
	binary.LittleEndian.PutUint16(header[2:], start+offset)
	for at, value := range map[int]uint16{4: segment, 6: start, 8: offset} {
		binary.LittleEndian.PutUint16(header[at:], value)
	}
	if _, err := q.Write(append(header, frame...)); err != nil {
		t.Fatal(err)
	}
}

// next frame for the guest for which something holds; nil if there is none within a time.
func (q *qemu) next(t *testing.T, within time.Duration, wanted func(frame []byte) bool) []byte {
	t.Helper()
	if err := q.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 1<<16)
	for {
		n, err := q.Read(buffer)
		if err != nil {
			return nil
		}
		if frame := buffer[virtioHeader:n]; wanted(frame) {
			return frame
		}
	}
}

const (
	ethernetHeader, ipHeader, udpHeader, tcpHeader = 14, 20, 8, 20
	guestPort                                      = 7000
)

// packet makes a broadcast of the guest 198.18.9.2 as its driver writes it, with the pseudo-header's sum
// instead of the checksum.
func packet(protocol byte, header int, payload []byte) []byte {
	p := make([]byte, ethernetHeader+ipHeader+header, ethernetHeader+ipHeader+header+len(payload))
	copy(p, []byte{255, 255, 255, 255, 255, 255, 2, 2, 0, 0, 0, 2, 8, 0})
	ip, transport := p[ethernetHeader:], p[ethernetHeader+ipHeader:]
	length := header + len(payload)
	copy(ip, []byte{0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0, 198, 18, 9, 2, 198, 18, 9, 255})
	binary.BigEndian.PutUint16(ip[2:], uint16(ipHeader+length)) //nolint:gosec // as long as the tests want
	binary.BigEndian.PutUint16(ip[10:], ^sum(0, ip[:ipHeader])) // RFC 791
	binary.BigEndian.PutUint16(transport, guestPort)            // source
	binary.BigEndian.PutUint16(transport[2:], guestPort)        // destination
	pseudo := sum(uint32(protocol)+uint32(length), ip[12:20])   //nolint:gosec // as long as the tests want
	if protocol == unix.IPPROTO_UDP {
		binary.BigEndian.PutUint16(transport[4:], uint16(length)) //nolint:gosec // as long as the tests want
		binary.BigEndian.PutUint16(transport[6:], pseudo)
	} else {
		transport[12], transport[13] = tcpHeader/4<<4, 0x10 // ACK
		binary.BigEndian.PutUint16(transport[16:], pseudo)
	}
	return append(p, payload...)
}

// sum is the Internet checksum's (RFC 1071), not inverted.
func sum(start uint32, data []byte) uint16 {
	for i := 0; i < len(data); i += 2 {
		word := uint32(data[i]) << 8
		if i+1 < len(data) {
			word |= uint32(data[i+1])
		}
		start += word
	}
	for start > 0xffff {
		start = start>>16 + start&0xffff
	}
	return uint16(start) //nolint:gosec // folded
}

// sniffer sees the frames of a pod's interface.
func (p *pod) sniffer(t *testing.T, interfaceName string) *os.File {
	t.Helper()
	var fd int
	p.do(t, func() (err error) {
		const everything = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, everything); err != nil {
			return err
		}
		radio, err := net.InterfaceByName(interfaceName)
		if err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: everything, Ifindex: radio.Index})
	})
	file := os.NewFile(uintptr(fd), "sniffer") //nolint:gosec // a descriptor is not negative
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// machineBed is a network of a pod and a virtual machine that runs.
type machineBed struct {
	radiodBed
	manager *Manager
	one     *pod
	machine launcher
	qemu    *qemu
}

func newMachineBed(t *testing.T) *machineBed {
	t.Helper()
	b := &machineBed{radiodBed: newRadiod(t)}
	b.manager, _ = b.worker(t)
	set(t, b.manager, ofMachine(networkOf("run", "vhf", "pod-1", "vm-1")))
	b.one, b.machine = newPod(t, "pod-1"), newLauncher(t, "vm-1")
	b.one.attach(t, b.manager, "vhf")
	b.machine.attach(t, b.manager)
	b.qemu = b.machine.startQEMU(t)
	return b
}

// flows checks that a frame gets from the pod to the guest within a time, and one back.
func (b *machineBed) flows(t *testing.T, within time.Duration) bool {
	t.Helper()
	at := b.one.listenUDP(t, fmt.Sprintf("0.0.0.0:%d", guestPort))
	defer at.Close()
	b.one.sendBroadcasts(t, 1)
	there := b.qemu.next(t, within, func(frame []byte) bool { return strings.HasSuffix(string(frame), "hello") }) != nil
	b.qemu.send(t, packet(unix.IPPROTO_UDP, udpHeader, []byte("answer")), 0, 0, ethernetHeader+ipHeader, 6)
	return there && received(at, within, "answer")
}

func received(at *net.UDPConn, within time.Duration, want string) bool {
	buffer := make([]byte, 2000)
	_ = at.SetReadDeadline(time.Now().Add(within)) // fails only on a closed socket
	for {
		n, _, err := at.ReadFrom(buffer)
		if err != nil {
			return false
		}
		if string(buffer[:n]) == want {
			return true
		}
	}
}

func TestAVirtualMachineHasItsRadioAtQEMUsTAP(t *testing.T) {
	b := newMachineBed(t)
	if !b.flows(t, arrivalTimeout) {
		t.Error("frames do not flow both ways; the guest's have partial checksums")
	}
	attributes := b.machine.link(t, hashed).Attrs()
	if attributes.HardwareAddr.String() != "02:02:00:00:00:02" || attributes.MTU != 1400 {
		t.Errorf("QEMU's TAP %+v; want the member's MAC and MTU, which KubeVirt gives to the guest", attributes)
	}
	for _, name := range []string{hashed, vmnic.RadioName("vhf")} {
		b.machine.do(t, func() error {
			link, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			addresses, err := netlink.AddrList(link, netlink.FAMILY_ALL)
			if len(addresses) > 0 {
				t.Errorf("addresses %v of %s in the launcher; want none", addresses, name)
			}
			return err
		})
	}
	c := counted(b.manager, "node-2")
	if c.FramesSent == 0 || c.FramesReceived == 0 || c.Settings["vhf.mtu"] != "1400" {
		t.Errorf("counters %+v, settings %v; want frames both ways, and the radio's settings", c.Counters, c.Settings)
	}
}

func TestTheLaunchersKernelSeesNoFrameOfTheRadio(t *testing.T) {
	b := newMachineBed(t)
	// As if the launcher's own address were asked for over the radio: its kernel answers such questions on every interface.
	request := append([]byte{255, 255, 255, 255, 255, 255, 2, 2, 0, 0, 0, 9, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 2, 0, 0, 0, 9, 198, 18, 9, 9, 0, 0, 0, 0, 0, 0}, 10, 99, 7, 2)
	b.qemu.send(t, request, 0, 0, 0, 0)
	if answer := b.qemu.next(t, testTimeout, func(frame []byte) bool { return frame[12] == 8 && frame[13] == 6 && frame[21] == 2 }); answer != nil {
		t.Errorf("the launcher answered a guest's ARP request for its address: %x", answer)
	}
	for _, group := range []byte{0x00, 0x0e, 0x0f} { // those that a bridge takes for itself or drops
		frame := append([]byte{1, 0x80, 0xc2, 0, 0, group, 2, 2, 0, 0, 0, 1, 0x88, 0xb5}, "link-local"...)
		b.one.do(t, func() error { return sendFrame("vhf", frame) })
		if b.qemu.next(t, arrivalTimeout, func(f []byte) bool { return f[5] == group && f[0] == 1 }) == nil {
			t.Errorf("a frame to 01:80:c2:00:00:%02x did not reach the guest", group)
		}
	}
}

func sendFrame(name string, frame []byte) error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	link, err := net.InterfaceByName(name)
	if err == nil {
		err = unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: link.Index})
	}
	return errors.Join(err, unix.Close(fd))
}

func TestFramesThatAGuestLeavesToItsHostToSegmentArriveCompleteAndNoLongerThanTheMTU(t *testing.T) {
	b := newMachineBed(t)
	sniffer := b.one.sniffer(t, "vhf")
	payload := make([]byte, 5000)
	for i := range payload {
		payload[i] = byte(i)
	}
	b.qemu.send(t, packet(unix.IPPROTO_TCP, tcpHeader, payload), segmentsTCP4, 1360, ethernetHeader+ipHeader, 16)
	var got []byte
	buffer := make([]byte, 1<<16)
	for len(got) < len(payload) {
		if err := sniffer.SetReadDeadline(time.Now().Add(arrivalTimeout)); err != nil {
			t.Fatal(err)
		}
		n, err := sniffer.Read(buffer)
		if err != nil {
			t.Fatalf("after %d bytes of %d: %v", len(got), len(payload), err)
		}
		frame := buffer[:n]
		if frame[12] != 8 || frame[13] != 0 || frame[23] != unix.IPPROTO_TCP {
			continue
		}
		if n > ethernetHeader+1400 {
			t.Errorf("a frame of %d bytes; want up to 1414", n)
		}
		ip, segment := frame[ethernetHeader:ethernetHeader+ipHeader], frame[ethernetHeader+ipHeader:]
		if sum(0, ip) != 0xffff || sum(uint32(unix.IPPROTO_TCP+len(segment)), append(ip[12:20:20], segment...)) != 0xffff { //nolint:gosec // as long as a frame
			t.Errorf("a frame of %d bytes has a wrong checksum", n)
		}
		got = append(got, segment[tcpHeader:]...)
	}
	if string(got) != string(payload) {
		t.Error("the segments are not what the guest sent")
	}
	// A guest that ignores the MTU.
	b.qemu.send(t, packet(unix.IPPROTO_TCP, tcpHeader, payload), segmentsTCP4, 3000, ethernetHeader+ipHeader, 16)
	eventually(t, "segments above the MTU are dropped and counted", func() bool { return counted(b.manager, "node-2").Drops[radio.Oversize] > 0 })
}

func TestOnlyQEMUsUserOpensItsTAPWithoutPrivileges(t *testing.T) {
	m := newManager(t)
	set(t, m, ofMachine(networkOf("run", "vhf", "vm-1")))
	l := newLauncher(t, "vm-1")
	l.attach(t, m)
	for name, user := range map[string]int{hashed: 65532, vmnic.RadioName("vhf"): vmnic.QEMU} {
		if _, err := l.open(name, user); !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EBUSY) {
			t.Errorf("user %d opens %s: %v; want a refusal", user, name, err)
		}
	}
}

func TestAVirtualMachineThatIsNoMemberIsRefused(t *testing.T) {
	m := newManager(t)
	set(t, m, ofMachine(networkOf("run", "vhf", "pod-1", "vm-1")), networkOf("other", "uhf", "pod-9"))
	for name, c := range map[string]struct{ uid, interfaceName, network string }{
		"another launcher that copies everything else": {"vm-2", hashed, "vhf"},
		"the machine with another's network":           {"vm-1", hashed, "uhf"},
		"a configuration that names no network":        {"vm-1", hashed, ""},
		"a pod under a virtual machine's name":         {"pod-1", hashed, "vhf"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLauncher(t, c.uid)
			answer := m.Serve(l.request("ADD", c.interfaceName, c.network), l.namespace)
			if !strings.Contains(answer.Error, "pod UID "+c.uid+" is not a member") {
				t.Errorf("answer %+v; want a refusal that names the UID", answer)
			}
			if l.has(t, hashed) {
				t.Error("the interface is there all the same")
			}
		})
	}
}

func TestALauncherWithoutItsPodNetworkIsRefused(t *testing.T) {
	m := newManager(t)
	set(t, m, ofMachine(networkOf("run", "vhf", "vm-1")))
	l := launcher{newPod(t, "vm-1")}
	if answer := m.Serve(l.request("ADD", hashed, "vhf"), l.namespace); !strings.Contains(answer.Error, "eth0") {
		t.Errorf("answer %+v; want a refusal that names eth0, which the rules are for", answer)
	}
	if l.has(t, hashed) || l.has(t, vmnic.RadioName("vhf")) {
		t.Error("an interface is left")
	}
}

func TestAVirtualMachineOnTwoNetworksHasBoth(t *testing.T) {
	m := newManager(t)
	set(t, m, ofMachine(networkOf("run", "vhf", "vm-1")), ofMachine(networkOf("run", "uhf", "vm-1")))
	l := newLauncher(t, "vm-1")
	l.attach(t, m)
	const second = "pod16477688c0e"
	if answer := m.Serve(l.request("ADD", second, "uhf"), l.namespace); answer.Error != "" {
		t.Fatal(answer.Error)
	}
	for _, c := range []struct{ command, interfaceName, network string }{{"CHECK", hashed, "vhf"}, {"CHECK", second, "uhf"}, {"ADD", hashed, "vhf"}, {"DEL", second, "uhf"}, {"CHECK", hashed, "vhf"}} {
		if answer := m.Serve(l.request(c.command, c.interfaceName, c.network), l.namespace); answer.Error != "" {
			t.Errorf("%s %s: %s", c.command, c.interfaceName, answer.Error)
		}
	}
	if l.has(t, second) || l.has(t, vmnic.RadioName("uhf")) || !l.has(t, hashed) {
		t.Error("DEL of one network did not remove that one, or removed the other")
	}
}

func TestCheckSeesWhatIsMissingOfAVirtualMachinesRadio(t *testing.T) {
	for what, spoil := range map[string]func() error{
		"QEMU's TAP":      func() error { return podnet.Remove(hashed) },
		"radiod's TAP":    func() error { return podnet.Remove(vmnic.RadioName("vhf")) },
		"the wire":        func() error { return unwire(hashed) },
		"the other way's": func() error { return unwire(vmnic.RadioName("vhf")) },
	} {
		t.Run(what, func(t *testing.T) {
			m := newManager(t)
			set(t, m, ofMachine(networkOf("run", "vhf", "vm-1")))
			l := newLauncher(t, "vm-1")
			l.attach(t, m)
			check := func() wire.Answer { return m.Serve(l.request("CHECK", hashed, "vhf"), l.namespace) }
			if answer := check(); answer.Error != "" {
				t.Error(answer.Error)
			}
			l.do(t, spoil)
			if answer := check(); answer.Error == "" {
				t.Error("CHECK passes")
			}
			l.attach(t, m) // which mends it
			if answer := check(); answer.Error != "" {
				t.Error(answer.Error)
			}
		})
	}
}

func unwire(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.QdiscDel(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}})
}

func TestEndingsOfAVirtualMachine(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, b *machineBed){
		"DEL": func(t *testing.T, b *machineBed) {
			if answer := b.manager.Serve(b.machine.request("DEL", hashed, "vhf"), nil); answer.Error != "" {
				t.Error(answer.Error)
			}
		},
		"the RadioNetwork goes": func(t *testing.T, b *machineBed) {
			if err := b.manager.RemoveNetwork("runvhf"); err != nil {
				t.Error(err)
			}
		},
		"the namespace goes": func(t *testing.T, b *machineBed) {
			_ = b.qemu.Close()
			b.machine.end()
			eventually(t, "the attachment is gone", func() bool {
				return b.manager.members.Attachment(membership.Key{PodUID: "vm-1", Interface: "vhf"}) == nil
			})
			b.machine.namespace = nil
		},
	} {
		for _, runs := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, QEMU runs: %v", name, runs), func(t *testing.T) {
				b := newMachineBed(t)
				if !runs {
					_ = b.qemu.Close()
				}
				end(t, b)
				eventually(t, "no state is left", func() bool {
					files, _ := filepath.Glob(filepath.Join(b.directory, "attachments", "vm*"))
					return len(files) == 0 && !strings.Contains(fmt.Sprint(b.manager.Counters(false)), "node-2")
				})
				if b.machine.namespace == nil {
					return
				}
				if b.machine.has(t, vmnic.RadioName("vhf")) || b.machine.has(t, hashed) != runs {
					t.Errorf("radiod's TAP is there: %v, QEMU's: %v; want neither, or QEMU's as long as it has it", b.machine.has(t, vmnic.RadioName("vhf")), b.machine.has(t, hashed))
				}
			})
		}
	}
}

func TestAVirtualMachinesRadioGoesOnThroughRestarts(t *testing.T) {
	for name, parentDies := range map[string]bool{"of the worker": false, "of the parent, too": true} {
		t.Run(name, func(t *testing.T) {
			b := newMachineBed(t)
			radioBefore, guestBefore := b.machine.link(t, vmnic.RadioName("vhf")).Attrs(), b.machine.link(t, hashed).Attrs()
			b.manager.Close() // as if it had died
			if parentDies {
				b.parent.Close()
				b.parent = &holder.Holder{}
			}
			b.manager, _ = b.worker(t)
			eventually(t, "frames flow both ways again", func() bool { return b.flows(t, testTimeout) })
			for _, before := range []*netlink.LinkAttrs{radioBefore, guestBefore} {
				after := b.machine.link(t, before.Name).Attrs()
				if after.Index != before.Index || after.RawFlags&unix.IFF_LOWER_UP == 0 {
					t.Errorf("interface %+v; want index %d with carrier", after, before.Index)
				}
			}
			if answer := b.manager.Serve(b.machine.request("CHECK", hashed, "vhf"), b.machine.namespace); answer.Error != "" {
				t.Error(answer.Error)
			}
			// A descriptor that was opened in the launcher's namespace must not keep it.
			_ = b.qemu.Close()
			b.machine.end()
			eventually(t, "the attachment goes with its launcher", func() bool {
				if err := b.manager.RemovePinned(); err != nil {
					t.Error(err)
				}
				return b.manager.members.Attachment(membership.Key{PodUID: "vm-1", Interface: "vhf"}) == nil
			})
		})
	}
}

func TestAVirtualMachineWhoseTAPWentWhileRadiodWasDownIsNamed(t *testing.T) {
	b := newMachineBed(t)
	b.seen(t, b.manager)
	b.manager.Close()
	b.parent.Close()
	_ = b.qemu.Close()
	b.machine.do(t, func() error { return podnet.Remove(hashed) })
	_, results := b.worker(t)
	if gap := results.gap(t, "attachmentLost"); gap.Node != "node-2" || !strings.Contains(gap.Reason, "QEMU") {
		t.Errorf("gap %+v; want one of node-2 that says why", gap)
	}
}

func TestOrphansOfVirtualMachinesAreRemoved(t *testing.T) {
	b := newMachineBed(t)
	b.machine.inhabit(t)
	b.manager.Close()
	b.parent.Close()
	b.parent = &holder.Holder{}
	if err := os.RemoveAll(filepath.Join(b.directory, "attachments")); err != nil { // as if the record had been lost
		t.Fatal(err)
	}
	b.manager, _ = b.worker(t)
	sweep := func() (radiods, qemus bool) {
		if err := b.manager.RemoveOrphans(); err != nil {
			t.Error(err)
		}
		return b.machine.has(t, vmnic.RadioName("vhf")), b.machine.has(t, hashed)
	}
	if radiods, qemus := sweep(); !radiods || !qemus {
		t.Error("a member's interfaces were removed")
	}
	if err := b.manager.RemoveNetwork("runvhf"); err != nil {
		t.Fatal(err)
	}
	if radiods, qemus := sweep(); radiods || !qemus {
		t.Errorf("radiod's orphan is there: %v, QEMU's, which QEMU has: %v; want only QEMU's", radiods, qemus)
	}
	_ = b.qemu.Close()
	if radiods, qemus := sweep(); radiods || qemus {
		t.Error("an orphan is left")
	}
}

// newGuestNetwork gives a launcher what KubeVirt's masquerade does: its bridge, and behind it the guest at 10.0.2.2.
func newGuestNetwork(t *testing.T, o outside, l launcher, n string) *pod {
	t.Helper()
	guest := newPod(t, "guest-of-"+l.uid)
	l.do(t, func() error {
		link := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "k6t-eth0"}, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(guest.namespace.Fd()))}
		return errors.Join(netlink.LinkAdd(link), up("k6t-eth0", "10.0.2.1/24"), os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0))
	})
	guest.do(t, func() error {
		return errors.Join(up("eth0", "10.0.2.2/24"), netlink.RouteAdd(&netlink.Route{Gw: net.IPv4(10, 0, 2, 1)}))
	})
	o.do(t, func() error { // instead of the translation of addresses
		return netlink.RouteAdd(&netlink.Route{Dst: &net.IPNet{IP: net.IPv4(10, 0, 2, 0), Mask: net.CIDRMask(24, 32)}, Gw: net.ParseIP("10.99." + n + ".2")})
	})
	return guest
}

func TestAGuestsManagementCarriesOnlyWhatIsAllowed(t *testing.T) {
	m := newManager(t)
	set(t, m, ofMachine(networkOf("run", "vhf", "pod-1", "vm-1")))
	o := newOutside(t)
	one, l, scraper, stranger := newPod(t, "pod-1"), launcher{newPod(t, "vm-1")}, newPod(t, "prometheus"), newPod(t, "stranger")
	for n, p := range map[string]*pod{"1": one, "2": l.pod, "8": scraper, "9": stranger} {
		o.connect(t, p, n)
	}
	guest := newGuestNetwork(t, o, l, "2")
	for _, address := range []string{"10.96.0.10/32", "10.96.0.20/32", "10.96.0.30/32"} {
		o.address(t, address)
	}
	dns, dhcp := o.listenUDP(t, "10.96.0.10:53"), l.listenUDP(t, "0.0.0.0:67")
	client, other := guest.listenUDP(t, "0.0.0.0:68"), l.listenUDP(t, "0.0.0.0:69")
	for _, address := range []string{"10.96.0.20:80", "10.96.0.30:80", "10.99.1.1:9464"} {
		o.listenTCP(t, address)
	}
	one.listenTCP(t, "0.0.0.0:1883")
	stranger.listenTCP(t, "0.0.0.0:22")
	for _, port := range []string{"22", "1883", "9464"} {
		guest.listenTCP(t, "0.0.0.0:"+port)
	}
	eventually(t, "everything works before the attachment", func() bool {
		return guest.reachesTCP(t, "10.99.1.2:1883") && stranger.reachesTCP(t, "10.0.2.2:1883") && guest.reachesTCP(t, "10.99.1.1:9464") && guest.reachesUDP(t, "10.0.2.1:69", other)
	})
	one.attach(t, m, "vhf")
	l.attach(t, m)
	if err := m.SetAllowed(podnet.Allowed{DNS: []netip.AddrPort{netip.MustParseAddrPort("10.96.0.10:53")},
		Servers: []netip.AddrPort{netip.MustParseAddrPort("10.96.0.20:80")}, Hosts: []netip.Addr{netip.MustParseAddr("10.99.2.1")},
		Scrapers: []netip.Addr{netip.MustParseAddr("10.99.8.2")}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		got  bool
		want bool
	}{
		{"the server", guest.connectsTo(t, "10.96.0.20:80"), true},
		{"another service", guest.reachesTCP(t, "10.96.0.30:80"), false},
		{"another's metrics", guest.reachesTCP(t, "10.99.1.1:9464"), false},
		{"another's SSH", guest.reachesTCP(t, "10.99.9.2:22"), false},
		{"DNS", guest.deliversTo(t, "10.96.0.10:53", dns), true},
		{"the launcher's DHCP", guest.deliversTo(t, "10.0.2.1:67", dhcp), true},
		{"an answer of DHCP", l.deliversTo(t, "10.0.2.2:68", client), true},
		{"another port of the launcher", guest.reachesUDP(t, "10.0.2.1:69", other), false},
		{"a peer's eth0", guest.reachesTCP(t, "10.99.1.2:1883"), false},
		{"SSH from outside", stranger.connectsTo(t, "10.0.2.2:22"), true},
		{"metrics from outside", stranger.reachesTCP(t, "10.0.2.2:9464"), false},
		{"metrics from their reader", scraper.connectsTo(t, "10.0.2.2:9464"), true},
		{"an app from outside", stranger.reachesTCP(t, "10.0.2.2:1883"), false},
		{"an app from the host, as a probe", o.connectsTo(t, "10.0.2.2:1883"), true},
	} {
		if c.got != c.want {
			t.Errorf("%s: reached %v; want %v", c.what, c.got, c.want)
		}
	}
}
