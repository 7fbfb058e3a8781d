package routing

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radiod/netns"
)

const (
	// headersInIP are the bytes of the headers of IPv4 and UDP, headersOnAir include Ethernet's.
	headersInIP  = 20 + 8
	headersOnAir = headersInIP + 14
	// networkControl is the class selector CS6 (RFC 2474 section 4.2.2, RFC 4594 section 3.2) in the IP header's TOS octet.
	networkControl = 48 << 2
	// receiveBuffer in bytes, which the kernel doubles for its own use. It holds several seconds of packets
	// for hundreds of nodes with dozens of neighbours. The default overflowed on a busy machine, which looks
	// like loss on the air.
	receiveBuffer = 1 << 20
)

// port is a node's socket for a routing protocol on one interface.
type port struct {
	fd           int
	to           unix.SockaddrInet4
	instance     *Instance
	number       int       // of the interface
	lastPacketAt time.Time // when packets were last read; the thread's
	from         unix.RawSockaddrInet4
	// Counters since the node was attached.
	packetsSent, bytesSent, packetsReceived, bytesReceived, sendErrors atomic.Uint64
	// dropsBefore are the drops before this socket was made.
	dropsBefore uint64
}

// openPort makes the socket in the namespace, where it stays.
func openPort(namespace *os.File, n *Interface, number uint16, to netip.Addr) (*port, error) {
	p := &port{fd: -1, to: unix.SockaddrInet4{Port: int(number), Addr: to.As4()}}
	err := netns.Do(namespace, func() (err error) {
		p.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_UDP)
		return os.NewSyscallError("socket", err)
	})
	if err == nil {
		if err = p.setOptions(n, to); err != nil {
			err = errors.Join(err, unix.Close(p.fd))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("routing on %s, UDP port %d: %w", n.Name, number, err)
	}
	return p, nil
}

func (p *port) setOptions(n *Interface, to netip.Addr) error {
	// Bound to its device before the port, so that the sockets of a node's interfaces do not conflict.
	if err := unix.SetsockoptString(p.fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE, n.Name); err != nil {
		return os.NewSyscallError("SO_BINDTODEVICE", err)
	}
	options := []struct {
		name                   string
		level, option, content int
	}{
		{"IP_TOS", unix.IPPROTO_IP, unix.IP_TOS, networkControl},
		{"IP_TTL", unix.IPPROTO_IP, unix.IP_TTL, 1},
		{"IP_MULTICAST_TTL", unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, 1},
		{"IP_MULTICAST_LOOP", unix.IPPROTO_IP, unix.IP_MULTICAST_LOOP, 0},
		{"SO_BROADCAST", unix.SOL_SOCKET, unix.SO_BROADCAST, 1},
		{"SO_RCVBUFFORCE", unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer},
	}
	for _, o := range options {
		if err := unix.SetsockoptInt(p.fd, o.level, o.option, o.content); err != nil {
			return os.NewSyscallError(o.name, err)
		}
	}
	if to.IsMulticast() {
		group := &unix.IPMreqn{Multiaddr: to.As4(), Address: n.Address.Addr().As4(), Ifindex: int32(n.Index)}
		if err := unix.SetsockoptIPMreqn(p.fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, group); err != nil {
			return os.NewSyscallError("IP_MULTICAST_IF", err)
		}
		if err := unix.SetsockoptIPMreqn(p.fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, group); err != nil {
			return os.NewSyscallError("IP_ADD_MEMBERSHIP", err)
		}
	}
	return os.NewSyscallError("bind", unix.Bind(p.fd, &unix.SockaddrInet4{Port: p.to.Port}))
}

// read reads one packet without allocating. It enters the kernel without notifying Go's scheduler, because
// the descriptor never blocks.
func (p *port) read(buffer []byte) (from netip.Addr, n int, err error) {
	size := uint32(unix.SizeofSockaddrInet4)
	got, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(p.fd), uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)), 0,
		uintptr(unsafe.Pointer(&p.from)), uintptr(unsafe.Pointer(&size)))
	if errno != 0 {
		return from, 0, errno
	}
	p.packetsReceived.Add(1)
	p.bytesReceived.Add(uint64(got) + headersOnAir)
	return netip.AddrFrom4(p.from.Addr), int(got), nil
}

// send is the router's send function.
func (i *Instance) send(number int, packet []byte) {
	p := i.ports[number]
	if err := unix.Sendto(p.fd, packet, 0, &p.to); err != nil {
		p.sendErrors.Add(1) // as if it was lost on the air
		return
	}
	p.packetsSent.Add(1)
	p.bytesSent.Add(uint64(len(packet)) + headersOnAir)
}

func (p *port) setCounters(c Counters) {
	p.packetsSent.Store(c.PacketsSent)
	p.bytesSent.Store(c.BytesSent)
	p.packetsReceived.Store(c.PacketsReceived)
	p.bytesReceived.Store(c.BytesReceived)
	p.sendErrors.Store(c.SendErrors)
	p.dropsBefore = c.ReceiveDrops
}

func (p *port) counters() Counters {
	return Counters{PacketsSent: p.packetsSent.Load(), BytesSent: p.bytesSent.Load(), PacketsReceived: p.packetsReceived.Load(),
		BytesReceived: p.bytesReceived.Load(), SendErrors: p.sendErrors.Load(), ReceiveDrops: p.dropsBefore + p.drops()}
}

// drops returns the packets that found no room in the socket; 0 for a closed one.
func (p *port) drops() uint64 {
	var information [unix.SK_MEMINFO_VARS]uint32
	size := uint32(unsafe.Sizeof(information))
	_, _, errno := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(p.fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&information)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0
	}
	return uint64(information[unix.SK_MEMINFO_DROPS])
}
