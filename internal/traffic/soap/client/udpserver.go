package client

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/quietio"
	"vignette.dev/vignette/internal/soap"
	httpreq "vignette.dev/vignette/internal/traffic/http/client"
	"vignette.dev/vignette/internal/traffic/request"
)

const (
	// receiveBuffer is requested so that bursts wait in the kernel. net.core.rmem_max bounds it.
	receiveBuffer = 4 << 20
	// remembered is how many messages' ids a server knows, to handle each once.
	remembered = 10_000
)

// control sets what a socket needs before it is bound: that drops are counted, and the interface of multicast. On a server's
// socket the kernel also tells the addresses of datagrams, on a client's which were refused. Only the sockets of groups receive what comes to a group.
func control(name string, serving bool) func(_, _ string, raw syscall.RawConn) error {
	return func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(descriptor uintptr) { failed = setOptions(int(descriptor), name, serving) })
		return errors.Join(err, failed)
	}
}

func setOptions(fd int, name string, serving bool) error {
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1) // without it drops are not counted
	if serving {
		err := errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0), unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1))
		if err != nil {
			return err
		}
	} else if err := request.TellRefusals(fd); err != nil {
		return err
	}
	if name == "" {
		return nil
	}
	used, err := net.InterfaceByName(name)
	if err != nil {
		return errInterface
	}
	return unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(used.Index)}) //nolint:gosec // a small number
}

var errInterface = errors.New("no such interface")

// listen opens the server's sockets: one for its address, and one for each group.
func (p *overUDP) listen() error {
	config := net.ListenConfig{Control: control(p.setup.Interface, true)}
	own, err := config.ListenPacket(p.running.Context(), "udp4", p.setup.Listen)
	if errors.Is(err, errInterface) {
		return fmt.Errorf("interface %q: want one of this node", p.setup.Interface)
	}
	if err != nil {
		return httpreq.ListenError(p.setup.Listen, err)
	}
	p.serve(own.(*net.UDPConn), false)
	if err := shareable(own.(*net.UDPConn)); err != nil {
		return httpreq.ListenError(p.setup.Listen, err)
	}
	port := own.LocalAddr().(*net.UDPAddr).Port
	for _, group := range p.setup.MulticastGroups {
		socket, err := p.join(group, port)
		if err != nil {
			return err
		}
		p.serve(socket, true)
	}
	return nil
}

// join opens a socket for a group. Several programs of a node may.
func (p *overUDP) join(group string, port int) (*net.UDPConn, error) {
	if !isGroup(group) {
		return nil, fmt.Errorf("multicast group %q: want an address of 224.0.0.0 to 239.255.255.255", group)
	}
	member := unix.IPMreqn{Multiaddr: netip.MustParseAddr(group).As4()}
	if p.setup.Interface != "" {
		used, err := net.InterfaceByName(p.setup.Interface)
		if err != nil {
			return nil, fmt.Errorf("interface %q: want one of this node", p.setup.Interface)
		}
		member.Ifindex = int32(used.Index) //nolint:gosec // a small number
	}
	socket, err := groupSocket(&member, port)
	if err != nil {
		return nil, fmt.Errorf("multicast group %s cannot be joined: want an interface, or a route to the group", group)
	}
	return socket, nil
}

// groupSocket returns a socket that is bound to a group's address, so that it receives nothing else. Package net would bind it to all addresses.
func groupSocket(member *unix.IPMreqn, port int) (*net.UDPConn, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "multicast")
	defer file.Close() // FilePacketConn duplicates it
	err = errors.Join(setOptions(fd, "", true), unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
		unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, member),
		unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: member.Multiaddr}))
	if err != nil {
		return nil, err
	}
	socket, err := net.FilePacketConn(file)
	if err != nil {
		return nil, err
	}
	return socket.(*net.UDPConn), nil
}

// shareable lets sockets of groups have the port too. It comes after binding, so that a port in use is still an error.
func shareable(socket *net.UDPConn) error {
	return quietio.Control(socket, func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
}

// serve answers what a socket receives.
func (p *overUDP) serve(socket *net.UDPConn, group bool) {
	p.mu.Lock()
	p.sockets = append(p.sockets, socket)
	p.mu.Unlock()
	p.running.Go(func() {
		p.read(socket, func() {}, func(at time.Time, datagram []byte, c correspondents) {
			select {
			case p.slots <- struct{}{}:
			case <-p.running.Context().Done():
				return
			}
			p.running.Go(func() {
				answered := p.handle(at, datagram, group)
				<-p.slots
				if answered != nil {
					p.reply(socket, c, answered)
				}
			})
		})
	})
}

// correspondents are the ends of a datagram.
type correspondents struct {
	remote netip.AddrPort
	// local is the address of this node that it came to, if the kernel tells.
	local netip.Addr
}

// read reads datagrams until the socket is closed, and warns of those that it could not read in time.
func (p *overUDP) read(socket *net.UDPConn, failed func(), received func(at time.Time, datagram []byte, c correspondents)) {
	_ = socket.SetReadBuffer(receiveBuffer) // a smaller buffer works too, and drops are told
	buffer, extra := make([]byte, MaxDatagram+1), make([]byte, 128)
	var dropped quietio.Drops
	for {
		n, used, _, from, err := socket.ReadMsgUDPAddrPort(buffer, extra)
		at := time.Now()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			failed()
			time.Sleep(pauseAfterError)
			continue
		}
		if more := dropped.More(extra[:used]); more > 0 {
			p.setup.Warn(fmt.Sprintf("%d datagrams came faster than they could be read, and are lost", more))
		}
		local, _ := quietio.Destination(extra[:used])
		received(at, bytes.Clone(buffer[:n]), correspondents{from, local}) // a message keeps parts of it
	}
}

// handle returns the datagram that answers one; nil for none.
func (p *overUDP) handle(at time.Time, datagram []byte, group bool) []byte {
	encoding := encodingOf(datagram)
	m, err := parse(encoding, datagram)
	switch {
	case m == nil:
		p.warnOnce.Do(func() {
			p.setup.Warn(fmt.Sprintf("a datagram that is no SOAP envelope is ignored, and so is every further one: %v", err))
		})
		return nil
	case m.Fault != nil || m.RelatesTo != "":
		// An answer to an answer could go on for ever.
		return nil
	case m.MessageID != "" && !p.seen.add(m.MessageID):
		return nil
	}
	if group {
		m.ReplyTo = soap.None
	}
	replied := answer(p.setup.Handler, at, "", m, err)
	if replied.envelope == nil {
		return nil
	}
	answered, err := encode(encoding, replied.envelope)
	if err == nil && len(answered) > MaxDatagram {
		err = fmt.Errorf("a response of %d bytes: a datagram has at most %d", len(answered), MaxDatagram)
	}
	if err == nil {
		return answered
	}
	fault := faultReply(m, &soap.Fault{Code: soap.Receiver, Reason: err.Error()})
	if answered, err = encode(encoding, fault.envelope); err != nil {
		p.setup.Warn("a response cannot be encoded: " + err.Error())
		return nil
	}
	return answered
}

// reply sends an answer, and again by the rule. It comes from the address that the request went to: the client takes no other, and that
// of the way back differs on a node with several networks.
func (p *overUDP) reply(socket *net.UDPConn, to correspondents, datagram []byte) {
	var control []byte
	if to.local.Is4() {
		control = unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: to.local.As4()})
	}
	for _, delay := range append([]time.Duration{0}, p.delays(p.repeat.unicast)...) {
		select {
		case <-time.After(delay):
		case <-p.running.Context().Done():
			return
		}
		if _, _, err := socket.WriteMsgUDPAddrPort(datagram, control, to.remote); err != nil {
			p.setup.Warn(fmt.Sprintf("a response to %s cannot be sent", to.remote))
			return
		}
	}
}

// seen remembers the ids of messages.
type seen struct {
	mu    sync.Mutex
	ids   map[string]bool
	order []string
	next  int
}

func newSeen() *seen { return &seen{ids: map[string]bool{}, order: make([]string, remembered)} }

// add adds an id; false if it is known. It forgets the oldest.
func (s *seen) add(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids[id] {
		return false
	}
	delete(s.ids, s.order[s.next])
	s.ids[id], s.order[s.next] = true, id
	s.next = (s.next + 1) % len(s.order)
	return true
}
