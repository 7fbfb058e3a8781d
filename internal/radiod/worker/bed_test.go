package worker

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/holder"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/radiodtest"
	"vignette.dev/vignette/internal/radiod/samples"
	"vignette.dev/vignette/internal/radiod/state"
	"vignette.dev/vignette/internal/radiod/wire"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// newManager makes a manager with a real holder, as a parent would be, and an empty state folder.
func newManager(t *testing.T) *Manager {
	t.Helper()
	if err := radiotest.Missing(); err != nil {
		t.Skip(err)
	}
	m, _ := managerWith(t, &holder.Holder{}, t.TempDir())
	return m
}

// managerWith makes a manager as a new worker of that parent has it, and the descriptors it took over.
func managerWith(t *testing.T, parent *holder.Holder, directory string) (*Manager, map[string]int) {
	t.Helper()
	return managerOf(t, parent, directory, driver.Options{})
}

// TestMain makes this program the data plane where that is what it was started for.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == holder.PlaneCommand {
		if err := dataplane.Run(slog.New(slog.NewTextHandler(os.Stderr, nil))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// startPlane starts a data plane in a process of its own, and returns what connects another worker to it.
func startPlane(t *testing.T) (process *exec.Cmd, connect func(dataplane.ProcessOptions) *dataplane.Client) {
	t.Helper()
	control, theirs, err := holder.Pair()
	if err != nil {
		t.Fatal(err)
	}
	process = exec.Command("/proc/self/exe", holder.PlaneCommand)
	process.ExtraFiles, process.Stderr = []*os.File{theirs}, os.Stderr
	if err := errors.Join(process.Start(), theirs.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = control.Close(); _ = process.Wait() })
	return process, func(o dataplane.ProcessOptions) *dataplane.Client {
		file, err := holder.ConnectTo(control)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := holder.Conn(file)
		if err != nil {
			t.Fatal(err)
		}
		c, err := dataplane.Connect(conn, o)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

// managerOf a worker whose data plane has these options. With any it is a process of its own.
func managerOf(t *testing.T, parent *holder.Holder, directory string, options driver.Options) (*Manager, map[string]int) {
	t.Helper()
	if options != (driver.Options{}) {
		_, connect := startPlane(t)
		return managerOn(t, parent, directory, connect(dataplane.ProcessOptions{Driver: options, StateDirectory: directory}))
	}
	loops, err := driver.New(options)
	if err != nil {
		t.Fatal(err)
	}
	plane := dataplane.New(loops)
	folder, err := state.Open(directory)
	if err != nil {
		t.Fatal(err)
	}
	plane.KeepSign(folder, slog.New(slog.DiscardHandler))
	return managerOn(t, parent, directory, plane)
}

func managerOn(t *testing.T, parent *holder.Holder, directory string, plane dataplane.Plane) (*Manager, map[string]int) {
	t.Helper()
	ours, file, err := holder.Pair()
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = parent.Serve(ours) }()
	conn, err := holder.Conn(file)
	if err != nil {
		t.Fatal(err)
	}
	keeper, held, err := holder.Connect(conn)
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewManager(Options{StateDirectory: directory, Plane: plane, Keeper: keeper, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Close()
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return m, held
}

// newSampler makes a sampler of a worker, with an empty folder.
func newSampler(t *testing.T, m *Manager) *samples.Sampler {
	t.Helper()
	s := &samples.Sampler{Source: m, Host: "host", Directory: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	if err := s.Open(); err != nil {
		t.Fatal(err)
	}
	return s
}

// networkOf makes a RadioNetwork with one member per pod UID, NEM ids from 1.
func networkOf(uid, name string, podUIDs ...string) *v1alpha1.RadioNetwork {
	return radiodtest.NetworkOf(uid, name, podUIDs...)
}

// pod is a namespace as a runtime makes it for a pod.
type pod struct {
	uid       string
	namespace *os.File
}

func newPod(t *testing.T, uid string) *pod {
	t.Helper()
	namespace, err := radiotest.Namespace()
	if err != nil {
		t.Fatal(err)
	}
	p := &pod{uid, namespace}
	t.Cleanup(p.end)
	p.do(t, func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(lo)
	})
	return p
}

// end closes the namespace.
func (p *pod) end() { _ = p.namespace.Close() }

func (p *pod) do(t *testing.T, f func() error) {
	t.Helper()
	if err := netns.Do(p.namespace, f); err != nil {
		t.Fatalf("in the namespace of pod %s: %v", p.uid, err)
	}
}

// path at which others find the namespace, as the runtime's mount would be.
func (p *pod) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), p.namespace.Fd()) }

func (p *pod) request(command, interfaceName string) wire.Request {
	return wire.Request{Command: command, Configuration: "exp-" + interfaceName, Attachment: wire.Attachment{ContainerID: "container-" + p.uid, Interface: interfaceName},
		PodUID: p.uid, PodNamespace: "team", PodName: "exp-" + p.uid, Namespace: p.path()}
}

func (p *pod) attach(t *testing.T, m *Manager, interfaceName string) {
	t.Helper()
	if answer := m.Serve(p.request("ADD", interfaceName), p.namespace); answer.Error != "" {
		t.Fatalf("attach %s to %s: %s", p.uid, interfaceName, answer.Error)
	}
}

// has reports whether the interface is there.
func (p *pod) has(t *testing.T, interfaceName string) bool {
	t.Helper()
	found := false
	p.do(t, func() error {
		_, err := netlink.LinkByName(interfaceName)
		if errors.As(err, &netlink.LinkNotFoundError{}) {
			return nil
		}
		found = err == nil
		return err
	})
	return found
}

// link reads an interface.
func (p *pod) link(t *testing.T, interfaceName string) (l netlink.Link) {
	t.Helper()
	p.do(t, func() (err error) {
		l, err = netlink.LinkByName(interfaceName)
		return err
	})
	return l
}

// listenUDP and others make sockets inside the pod; they stay there.
func (p *pod) listenUDP(t *testing.T, address string) (c *net.UDPConn) {
	t.Helper()
	p.do(t, func() error {
		local, err := net.ResolveUDPAddr("udp4", address)
		if err != nil {
			return err
		}
		c, err = net.ListenUDP("udp4", local)
		return err
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (p *pod) listenTCP(t *testing.T, address string) {
	t.Helper()
	p.do(t, func() error {
		l, err := net.Listen("tcp4", address)
		if err == nil {
			t.Cleanup(func() { _ = l.Close() })
		}
		return err
	})
}

// testTimeout is for what must not arrive, or is sent again; arrivalTimeout for what must arrive, on a busy machine too.
const testTimeout, arrivalTimeout = 400 * time.Millisecond, 10 * time.Second

// reachesTCP reports whether a connection from the pod is accepted.
func (p *pod) reachesTCP(t *testing.T, address string) bool {
	t.Helper()
	return p.dials(t, "tcp4", address, testTimeout)
}

// connectsTo is reachesTCP for a connection that must be accepted.
func (p *pod) connectsTo(t *testing.T, address string) bool {
	t.Helper()
	return p.dials(t, "tcp4", address, arrivalTimeout)
}

func (p *pod) dials(t *testing.T, network, address string, within time.Duration) bool {
	t.Helper()
	reached := false
	p.do(t, func() error {
		conn, err := net.DialTimeout(network, address, within)
		if err == nil {
			reached = true
			return conn.Close()
		}
		return nil
	})
	return reached
}

// reachesUDP reports whether a datagram from the pod arrives at the socket.
func (p *pod) reachesUDP(t *testing.T, address string, at *net.UDPConn) bool {
	t.Helper()
	return p.sends(t, address, at, testTimeout)
}

// deliversTo is reachesUDP for a datagram that must arrive.
func (p *pod) deliversTo(t *testing.T, address string, at *net.UDPConn) bool {
	t.Helper()
	return p.sends(t, address, at, arrivalTimeout)
}

func (p *pod) sends(t *testing.T, address string, at *net.UDPConn, within time.Duration) bool {
	t.Helper()
	p.do(t, func() error {
		conn, err := net.Dial("udp4", address)
		if err != nil {
			return nil // no route is also out of reach
		}
		defer conn.Close()
		if _, err := conn.Write([]byte("hello")); err != nil && !errors.Is(err, unix.EPERM) {
			return err
		}
		return nil
	})
	_ = at.SetReadDeadline(time.Now().Add(within))
	_, _, err := at.ReadFrom(make([]byte, 16))
	return err == nil
}

var eventually = testtool.Eventually

// statusOf and refusedOf are parts of the host's entry in a network's status.
func statusOf(m *Manager, uid string) (attached int, message string, known bool) {
	status, known := m.HostStatus(uid)
	return status.Attached, status.Message, known
}

func refusedOf(m *Manager, uid string) string {
	status, _ := m.HostStatus(uid)
	return status.Refused
}
