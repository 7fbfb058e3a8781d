package routing

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radiod/netns"
)

// rtnetlink is a socket for the routes of a namespace (rtnetlink(7)). Many changes go to the kernel in one
// call. It answers the refused ones and the last. The netlink package needs a call, an answer and a dozen
// allocations for each route. For hundreds of routers, which change thousands of routes a second, that took a
// tenth of radiod's time.
type rtnetlink struct {
	fd       int
	sequence uint32 // of the last request
	requests []byte
	answers  []byte
}

const (
	// maxChanges in one call, which then takes 0.2 ms. The radio's loop may not get the processor before.
	maxChanges = 32
	// answerTimeoutSeconds covers a lost answer. The kernel answers before a call returns.
	answerTimeoutSeconds = 5
	// addRoute and deleteRoute are the kinds of changes. An added route replaces one with the same
	// destination and priority.
	addRoute, deleteRoute = unix.RTM_NEWROUTE, unix.RTM_DELROUTE
)

// change of a route, and why the kernel refused it.
type change struct {
	to route
	hop
	err error
}

func openRtnetlink(namespace *os.File) (*rtnetlink, error) {
	s := &rtnetlink{fd: -1, answers: make([]byte, os.Getpagesize())}
	err := netns.Do(namespace, func() (err error) {
		s.fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
		return os.NewSyscallError("socket", err)
	})
	if err != nil {
		return nil, err
	}
	if err := s.set(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *rtnetlink) set() error {
	// A socket connected to the kernel receives from nobody else. Answers need no copy of a refused request.
	if err := unix.Connect(s.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return os.NewSyscallError("connect", err)
	}
	if err := unix.SetsockoptInt(s.fd, unix.SOL_NETLINK, unix.NETLINK_CAP_ACK, 1); err != nil {
		return os.NewSyscallError("NETLINK_CAP_ACK", err)
	}
	return os.NewSyscallError("SO_RCVTIMEO", unix.SetsockoptTimeval(s.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: answerTimeoutSeconds}))
}

func (s *rtnetlink) close() error { return unix.Close(s.fd) }

// apply applies changes of one kind to routes of a priority. Refused changes have their err set; the others
// are applied. After an error of apply itself the result is unknown.
func (s *rtnetlink) apply(kind uint16, priority int, changes []change) error {
	for len(changes) > 0 {
		now := changes[:min(len(changes), maxChanges)]
		changes = changes[len(now):]
		if err := s.exchange(kind, priority, now); err != nil {
			return err
		}
	}
	return nil
}

func (s *rtnetlink) exchange(kind uint16, priority int, changes []change) error {
	first := s.sequence + 1
	s.requests = s.requests[:0]
	for n := range changes {
		flags := uint16(unix.NLM_F_REQUEST)
		if kind == addRoute {
			flags |= unix.NLM_F_CREATE | unix.NLM_F_REPLACE
		}
		if n == len(changes)-1 {
			flags |= unix.NLM_F_ACK
		}
		s.sequence++
		s.request(kind, flags, priority, &changes[n])
	}
	if _, err := unix.Write(s.fd, s.requests); err != nil {
		return fmt.Errorf("ask the kernel for %d changes of routes: %w", len(changes), err)
	}
	for {
		last, err := s.answer(first, changes)
		if last || err != nil {
			return err
		}
	}
}

// request is a message: its header, that of a route, and the route's attributes.
func (s *rtnetlink) request(kind, flags uint16, priority int, c *change) {
	begin := len(s.requests)
	order := binary.NativeEndian
	b := append(s.requests, 0, 0, 0, 0) // the length, when it is known
	b = order.AppendUint16(b, kind)
	b = order.AppendUint16(b, flags)
	b = order.AppendUint32(b, s.sequence)
	b = order.AppendUint32(b, 0) // the kernel knows the sender
	scope, hopFlags := uint8(unix.RT_SCOPE_LINK), uint32(0)
	if c.via.IsValid() {
		// The neighbour was heard on the link, whatever the kernel's routes say.
		scope, hopFlags = unix.RT_SCOPE_UNIVERSE, unix.RTNH_F_ONLINK
	}
	b = append(b, family(c.to.Addr()), uint8(c.to.Bits()), 0, 0, unix.RT_TABLE_UNSPEC, RouteProtocol, scope, unix.RTN_UNICAST) //nolint:gosec // at most 128
	b = order.AppendUint32(b, hopFlags)
	b = appendNumber(b, unix.RTA_TABLE, uint32(tableOf(c.to.topology))) //nolint:gosec // one of few
	b = appendAddress(b, unix.RTA_DST, c.to.Addr())
	if c.via.IsValid() {
		b = appendAddress(b, unix.RTA_GATEWAY, c.via)
	}
	b = appendNumber(b, unix.RTA_OIF, uint32(c.index))       //nolint:gosec // the kernel's own
	b = appendNumber(b, unix.RTA_PRIORITY, uint32(priority)) //nolint:gosec // one of few
	order.PutUint32(b[begin:], uint32(len(b)-begin))         //nolint:gosec // some dozens
	s.requests = b
}

func family(a netip.Addr) uint8 {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// appendAddress appends an address as an attribute. Addresses and numbers have a multiple of four bytes, as
// attributes must.
func appendAddress(b []byte, kind uint16, a netip.Addr) []byte {
	if a.Is4() {
		four := a.As4()
		return append(appendAttribute(b, kind, len(four)), four[:]...)
	}
	sixteen := a.As16()
	return append(appendAttribute(b, kind, len(sixteen)), sixteen[:]...)
}

func appendNumber(b []byte, kind uint16, value uint32) []byte {
	return binary.NativeEndian.AppendUint32(appendAttribute(b, kind, 4), value)
}

func appendAttribute(b []byte, kind uint16, length int) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofRtAttr+length)) //nolint:gosec // at most 20
	return binary.NativeEndian.AppendUint16(b, kind)
}

// answer reads the kernel's answers to changes, whose requests have numbers from first. The last change is
// answered last.
func (s *rtnetlink) answer(first uint32, changes []change) (last bool, err error) {
	n, err := unix.Read(s.fd, s.answers)
	if err != nil {
		return false, fmt.Errorf("the kernel's answer to %d changes of routes: %w", len(changes), err)
	}
	for b := s.answers[:n]; len(b) > 0; {
		if len(b) < unix.SizeofNlMsghdr+unix.SizeofNlMsgerr {
			return false, fmt.Errorf("the kernel's answer to %d changes of routes has %d bytes, which are no message", len(changes), len(b))
		}
		header, answer := (*unix.NlMsghdr)(unsafe.Pointer(&b[0])), (*unix.NlMsgerr)(unsafe.Pointer(&b[unix.SizeofNlMsghdr]))
		if which := header.Seq - first; header.Type == unix.NLMSG_ERROR && which < uint32(len(changes)) { //nolint:gosec // few
			if answer.Error != 0 {
				changes[which].err = unix.Errno(-answer.Error)
			}
			last = last || int(which) == len(changes)-1
		}
		b = b[min(len(b), int(header.Len+3)&^3):]
	}
	return last, nil
}
