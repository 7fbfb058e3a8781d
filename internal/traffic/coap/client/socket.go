package client

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"vignette.dev/vignette/internal/quietio"
	"vignette.dev/vignette/internal/traffic/request"

	"golang.org/x/sys/unix"
)

const (
	// receiveBuffer of sockets: bursts of a busy host wait there.
	receiveBuffer = 1 << 20
	// maxRemotes is how many remote endpoints a client has sockets for at a time.
	maxRemotes = 1024
	// multicastHops: a group is the members in radio range.
	multicastHops = 1
)

// udpTransport has a socket for the server, one for each remote endpoint of the client, and one for multicast requests.
type udpTransport struct {
	core   *core
	device string
	dial   func(netip.AddrPort) (socket, error)
	server *endpoint

	mu      sync.Mutex
	remotes map[netip.AddrPort]*remote
	group   *endpoint
	// groupPort is the port of group.
	groupPort uint16
	closed    bool
}

type remote struct {
	endpoint *endpoint
	used     time.Time
}

func openUDP(c *core, s request.Setup) (transport, error) {
	t := &udpTransport{core: c, device: s.Interface, dial: dialUDP, remotes: map[netip.AddrPort]*remote{}}
	if s.Listen == "" {
		if len(s.MulticastGroups) > 0 {
			return nil, fmt.Errorf("multicast groups %q: want a server that listens", s.MulticastGroups)
		}
		return t, nil
	}
	server, err := listenUDP(s, t.mine, c.warn)
	if err != nil {
		return nil, err
	}
	t.server = newEndpoint(c, server)
	return t, nil
}

// mine reports whether a multicast datagram is one of this peer's own.
func (t *udpTransport) mine(from netip.AddrPort) bool {
	t.mu.Lock()
	port := t.groupPort
	t.mu.Unlock()
	if port == 0 || port != from.Port() {
		return false
	}
	addresses, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(addresses, func(a net.Addr) bool {
		prefix, ok := a.(*net.IPNet)
		return ok && prefix.IP.Equal(from.Addr().AsSlice())
	})
}

func (t *udpTransport) session(ctx context.Context, to string) (session, bool, error) {
	address, err := resolve(ctx, to)
	if err != nil {
		return nil, false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, false, request.Failed(request.Cancelled, "")
	}
	if address.Addr().IsMulticast() {
		if err := t.openGroup(); err != nil {
			return nil, true, err
		}
		return udpSession{t.group, origin{remote: address, multicast: true}}, true, nil
	}
	r := t.remotes[address]
	if r == nil {
		s, err := t.dial(address)
		if err != nil {
			return nil, false, err
		}
		t.makeRoom()
		r = &remote{endpoint: newEndpoint(t.core, s)}
		t.remotes[address] = r
	}
	r.used = time.Now()
	return udpSession{r.endpoint, origin{remote: address}}, false, nil
}

// makeRoom closes the socket that was not used for longest, if there are too many.
func (t *udpTransport) makeRoom() {
	if len(t.remotes) < maxRemotes {
		return
	}
	var oldest netip.AddrPort
	for address, r := range t.remotes {
		if old := t.remotes[oldest]; r.endpoint.exchanges.idle() && (old == nil || r.used.Before(old.used)) {
			oldest = address
		}
	}
	if old := t.remotes[oldest]; old != nil {
		_ = old.endpoint.socket.close()
		delete(t.remotes, oldest)
	}
}

func (t *udpTransport) openGroup() error {
	if t.group != nil {
		return nil
	}
	s, port, err := multicastSocket(t.device)
	if err != nil {
		return invalid("multicast on interface %q: %v", t.device, err)
	}
	t.group, t.groupPort = newEndpoint(t.core, s), port
	return nil
}

func (t *udpTransport) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, r := range t.remotes {
		_ = r.endpoint.socket.close()
	}
	for _, e := range []*endpoint{t.server, t.group} {
		if e != nil {
			_ = e.socket.close()
		}
	}
}

// resolve returns the address of host:port.
func resolve(ctx context.Context, to string) (netip.AddrPort, error) {
	if address, err := netip.ParseAddrPort(to); err == nil {
		return address, nil
	}
	host, service, err := net.SplitHostPort(to)
	if err != nil {
		return netip.AddrPort{}, invalid("address %q: want host:port", to)
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "udp", service)
	if err != nil {
		return netip.AddrPort{}, invalid("address %q: want a port from 1 to 65535", to)
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(addresses[0].Unmap(), uint16(port)), nil
}

// connectedSocket is connected to one remote endpoint, so that the kernel tells it about ICMP messages.
type connectedSocket struct {
	conn   *net.UDPConn
	remote origin
}

func dialUDP(to netip.AddrPort) (socket, error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return nil, err
	}
	if err := quietio.Control(conn, request.TellRefusals); err != nil {
		conn.Close()
		return nil, err
	}
	_ = conn.SetReadBuffer(receiveBuffer) // a smaller one works too
	return connectedSocket{conn, origin{remote: to}}, nil
}

func (s connectedSocket) read(b []byte) (int, origin, error) {
	n, err := s.conn.Read(b)
	return n, s.remote, err
}

func (s connectedSocket) write(b []byte, _ origin) error {
	_, err := s.conn.Write(b)
	return err
}

func (s connectedSocket) refusals(each func(failure *request.Failure, quote []byte)) {
	request.ReadRefusals(s.conn, each)
}

func (s connectedSocket) close() error { return s.conn.Close() }

// serverSocket tells to which address a datagram came, and answers from there: a node with several radios has several.
type serverSocket struct {
	conn *net.UDPConn
	// mine reports whether the peer itself sent a multicast datagram.
	mine    func(netip.AddrPort) bool
	control []byte
	// several: the socket listens at all addresses of IPv4.
	several bool
	warn    func(format string, values ...any)
	dropped quietio.Drops
}

func listenUDP(s request.Setup, mine func(netip.AddrPort) bool, warn func(format string, values ...any)) (socket, error) {
	host, _, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen %q: want host:port", s.Listen)
	}
	network := "udp4"
	if address, err := netip.ParseAddr(host); err == nil && address.Is6() && !address.Is4In6() {
		network = "udp6"
	}
	if host != "" && len(s.MulticastGroups) > 0 {
		return nil, fmt.Errorf("listen %q: a server with multicast groups has to listen at all addresses", s.Listen)
	}
	packets, err := net.ListenPacket(network, s.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen %q: the port is in use, or the address is none of this node's", s.Listen)
	}
	conn := packets.(*net.UDPConn)
	_ = conn.SetReadBuffer(receiveBuffer)
	server := &serverSocket{conn: conn, mine: mine, control: make([]byte, 128), several: host == "", warn: warn}
	err = quietio.Control(conn, func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1) })
	if err == nil && server.several {
		err = server.join(s)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return server, nil
}

// join joins the multicast groups, and asks for the address that each datagram came to.
func (s *serverSocket) join(setup request.Setup) error {
	index := 0
	if len(setup.MulticastGroups) > 0 {
		device, err := net.InterfaceByName(setup.Interface)
		if err != nil {
			return fmt.Errorf("interface %q of multicast: this node has none of that name", setup.Interface)
		}
		index = device.Index
	}
	return quietio.Control(s.conn, func(fd int) error {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1); err != nil {
			return fmt.Errorf("the kernel does not tell the addresses of datagrams")
		}
		// Groups that other programs of this node joined are not ours.
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0)
		for _, group := range setup.MulticastGroups {
			address, err := netip.ParseAddr(group)
			if err != nil || !address.Is4() || !address.IsMulticast() {
				return fmt.Errorf("multicast group %q: want an IPv4 address from 224.0.0.0 to 239.255.255.255", group)
			}
			if err := unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreqn{Multiaddr: address.As4(), Ifindex: int32(index)}); err != nil {
				return fmt.Errorf("multicast group %s cannot be joined on interface %s", group, setup.Interface)
			}
		}
		return nil
	})
}

func (s *serverSocket) read(b []byte) (int, origin, error) {
	for {
		n, controlBytes, _, from, err := s.conn.ReadMsgUDPAddrPort(b, s.control)
		if err != nil {
			return n, origin{}, err
		}
		if s.dropped.More(s.control[:controlBytes]) > 0 {
			s.warn("CoAP: datagrams come faster than they can be read: %d are lost so far", s.dropped)
		}
		o := origin{remote: netip.AddrPortFrom(from.Addr().Unmap(), from.Port())}
		if s.several {
			local, to := quietio.Destination(s.control[:controlBytes])
			o.local, o.multicast = local, local != to // broadcast counts as multicast
		}
		if o.multicast && s.mine(o.remote) {
			continue
		}
		return n, o, nil
	}
}

func (s *serverSocket) write(b []byte, to origin) error {
	var control []byte
	if to.local.Is4() {
		control = unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: to.local.As4()})
	}
	_, _, err := s.conn.WriteMsgUDPAddrPort(b, control, to.remote)
	return err
}

// refusals implements socket: the kernel tells none.
func (s *serverSocket) refusals(func(*request.Failure, []byte)) {}

func (s *serverSocket) close() error { return s.conn.Close() }

// groupSocket sends multicast requests on one interface.
type groupSocket struct{ conn *net.UDPConn }

func multicastSocket(device string) (socket, uint16, error) {
	i, err := net.InterfaceByName(device)
	if err != nil {
		return nil, 0, fmt.Errorf("this node has no such interface")
	}
	conn, err := net.ListenUDP("udp4", nil)
	if err != nil {
		return nil, 0, err
	}
	err = quietio.Control(conn, func(fd int) error {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, multicastHops); err != nil {
			return err
		}
		return unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(i.Index)})
	})
	if err != nil {
		conn.Close()
		return nil, 0, err
	}
	return groupSocket{conn}, conn.LocalAddr().(*net.UDPAddr).AddrPort().Port(), nil
}

func (s groupSocket) read(b []byte) (int, origin, error) {
	n, from, err := s.conn.ReadFromUDPAddrPort(b)
	return n, origin{remote: netip.AddrPortFrom(from.Addr().Unmap(), from.Port())}, err
}

func (s groupSocket) write(b []byte, to origin) error {
	_, err := s.conn.WriteToUDPAddrPort(b, to.remote)
	return err
}

// refusals implements socket: there are none of multicast.
func (s groupSocket) refusals(func(*request.Failure, []byte)) {}

func (s groupSocket) close() error { return s.conn.Close() }
