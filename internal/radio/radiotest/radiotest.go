// Package radiotest makes nodes with real TAPs in network namespaces of their own, for tests and
// benchmarks of the radio engine. It needs root.
package radiotest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/tap"
)

// Missing returns what this machine lacks for making nodes, or nil.
func Missing() error {
	if os.Geteuid() != 0 {
		return errors.New("network namespaces and TAPs need root")
	}
	file, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("TAPs: %w", err)
	}
	return file.Close()
}

// Namespace makes a network namespace, which ends when the file and everything in it are closed.
func Namespace() (*os.File, error) {
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, fmt.Errorf("own network namespace: %w", err)
	}
	defer own.Close()
	return netns.Get(own, func() (*os.File, error) { // which returns the thread to its own
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return nil, fmt.Errorf("make a network namespace: %w", err)
		}
		return os.Open("/proc/thread-self/ns/net")
	})
}

// EtherType of test frames, for local experiments (IEEE 802).
const EtherType = 0x88b5

// HeaderLength of test frames: Ethernet header, sequence number, time of sending.
const HeaderLength = radio.HeaderLength + 16

// Broadcast is the broadcast address.
var Broadcast = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// Node is a namespace with a TAP as its radio and a socket for test frames.
type Node struct {
	Namespace *os.File
	podnet.Interface
	NEM   int
	Index int
	// TAP is the radio's descriptor, for a Port.
	TAP    int
	socket int
}

// NewNode makes a node with the MAC and address of a NEM id, its radio set up.
func NewNode(nem, mtu int) (*Node, error) {
	n := &Node{NEM: nem, TAP: -1, socket: -1}
	var err error
	n.Interface, err = podnet.ParseInterface("radio0", fmt.Sprintf("02:02:00:00:%02x:%02x", nem>>8, nem&255),
		fmt.Sprintf("198.18.%d.%d/16", nem>>8, nem&255), mtu, true)
	if err != nil {
		return nil, err
	}
	if n.Namespace, err = Namespace(); err != nil {
		return nil, err
	}
	if err := n.setUp(); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *Node) setUp() error {
	fd, temporary, err := tap.Create()
	if err != nil {
		return err
	}
	n.TAP = fd
	if err := podnet.Move(temporary, n.Interface, n.Namespace, 0); err != nil {
		return err
	}
	return netns.Do(n.Namespace, func() error {
		if n.Index, _, err = podnet.SetUp(temporary, n.Interface); err != nil {
			return err
		}
		n.socket, err = Socket(n.Index)
		return err
	})
}

// Close ends the node and its TAP.
func (n *Node) Close() error {
	var err error
	if n.socket >= 0 {
		err = unix.Close(n.socket)
	}
	if n.TAP >= 0 {
		err = errors.Join(err, tap.Destroy(n.TAP))
	}
	return errors.Join(err, n.Namespace.Close())
}

// Socket opens a packet socket for test frames on an interface of the calling thread's namespace.
func Socket(index int) (int, error) {
	protocol := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, EtherType))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(protocol))
	if err != nil {
		return -1, fmt.Errorf("packet socket: %w", err)
	}
	for _, set := range []func() error{
		func() error { return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: index}) },
		func() error { return unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1) },
		func() error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20) },
		func() error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 64<<20) },
		// The kernel's time of arrival, which does not depend on when this process runs.
		func() error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) },
	} {
		if err := set(); err != nil {
			return -1, errors.Join(fmt.Errorf("packet socket: %w", err), unix.Close(fd))
		}
	}
	return fd, nil
}

// Frame makes a test frame of the given length.
func (n *Node) Frame(to net.HardwareAddr, sequence uint64, length int) []byte {
	frame := make([]byte, max(length, HeaderLength))
	copy(frame, to)
	copy(frame[6:], n.MAC)
	binary.BigEndian.PutUint16(frame[12:], EtherType)
	binary.BigEndian.PutUint64(frame[radio.HeaderLength:], sequence)
	return frame
}

// Send hands a test frame to the radio and writes the time into it.
func (n *Node) Send(frame []byte) error {
	binary.BigEndian.PutUint64(frame[radio.HeaderLength+8:], uint64(clock.Realtime()))
	_, err := unix.Write(n.socket, frame)
	return err
}

// Received is a test frame that arrived.
type Received struct {
	Sequence uint64
	Length   int
	From     net.HardwareAddr
	// Sent and Arrived in nanoseconds of CLOCK_REALTIME.
	Sent, Arrived int64
}

// Delay from being handed to the sender's kernel to arriving at the receiver's.
func (r Received) Delay() time.Duration { return time.Duration(r.Arrived - r.Sent) }

// Receive waits for a test frame until the timeout; ok reports whether one came.
func (n *Node) Receive(timeout time.Duration) (r Received, ok bool, err error) {
	poll := []unix.PollFd{{Fd: int32(n.socket), Events: unix.POLLIN}}
	deadline := time.Now().Add(timeout)
	for {
		left := max(time.Until(deadline), 0)
		count, err := unix.Poll(poll, int((left+time.Millisecond-1)/time.Millisecond))
		if err == unix.EINTR {
			continue
		}
		if err != nil || count == 0 {
			return r, false, err
		}
		break
	}
	data, control := make([]byte, 65536), make([]byte, 128)
	length, controlLength, _, _, err := unix.Recvmsg(n.socket, data, control, 0)
	if err != nil || length < HeaderLength {
		return r, false, err
	}
	r = Received{Sequence: binary.BigEndian.Uint64(data[radio.HeaderLength:]), Length: length, From: net.HardwareAddr(data[6:12]),
		Sent: int64(binary.BigEndian.Uint64(data[radio.HeaderLength+8:]))}
	r.Arrived, err = arrival(control[:controlLength])
	return r, err == nil, err
}

func arrival(control []byte) (int64, error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0, err
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= 16 {
			return int64(binary.NativeEndian.Uint64(m.Data))*int64(time.Second) + int64(binary.NativeEndian.Uint64(m.Data[8:])), nil
		}
	}
	return 0, errors.New("packet without a time stamp")
}

// ReceiveAll collects test frames until none has come for the given time.
func (n *Node) ReceiveAll(quiet time.Duration) (all []Received, err error) {
	for {
		r, ok, err := n.Receive(quiet)
		if err != nil || !ok {
			return all, err
		}
		all = append(all, r)
	}
}

// Join attaches nodes to a network.
func Join(network *driver.Network, nodes ...*Node) (ports []*driver.Port, err error) {
	for _, n := range nodes {
		mac, err := radio.ParseMAC(n.MAC.String())
		if err != nil {
			return ports, err
		}
		name := fmt.Sprintf("node-%d", n.NEM)
		p, err := network.Attach(driver.PortOptions{PortOptions: radio.PortOptions{Name: name, Group: name, NEM: n.NEM, MAC: mac}, Descriptor: n.TAP})
		if err != nil {
			return ports, err
		}
		ports = append(ports, p)
	}
	return ports, nil
}

// Quiet closes the socket for test frames, so that arriving frames cost less.
func (n *Node) Quiet() {
	if n.socket >= 0 {
		_ = unix.Close(n.socket)
		n.socket = -1
	}
}
