package request

import (
	"cmp"
	"encoding/binary"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/quietio"
)

// softCodes of "destination unreachable" come while routes change. The datagram or a copy of it may still arrive.
var softCodes, softCodes6 = []byte{0, 1, 4, 5, 11, 12}, []byte{0, 2, 3}

// TellRefusals has the kernel keep what ICMP says of a UDP socket's datagrams, for ReadRefusals.
func TellRefusals(fd int) error {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1) // a socket of IPv4 has no such option
	return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_RECVERR, 1)
}

// ReadRefusals calls each for the datagrams of a socket that were refused since the last call. quote is what ICMP has of a datagram's
// beginning: it may be short or empty.
func ReadRefusals(socket syscall.Conn, each func(failure *Failure, quote []byte)) {
	quote, extra := make([]byte, 2048), make([]byte, 512)
	_ = quietio.Control(socket, func(fd int) error {
		for {
			n, used, _, _, err := unix.Recvmsg(fd, quote, extra, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
			if err != nil { // none is left
				return err
			}
			if failure := refusal(extra[:used]); failure != nil {
				each(failure, quote[:n])
			}
		}
	})
}

// refusal is what an entry of a socket's error queue says of a datagram; nil if it may still arrive.
func refusal(control []byte) *Failure {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil
	}
	for _, m := range messages {
		four := m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_RECVERR
		six := m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_RECVERR
		if !four && !six || len(m.Data) < 8 {
			continue
		}
		// struct sock_extended_err: number, origin, type, code.
		origin, kind, code := m.Data[4], m.Data[5], m.Data[6]
		hard := origin == unix.SO_EE_ORIGIN_ICMP && kind == 3 && !slices.Contains(softCodes, code)
		hard6 := origin == unix.SO_EE_ORIGIN_ICMP6 && kind == 1 && !slices.Contains(softCodes6, code)
		if hard || hard6 {
			return cmp.Or(NetworkFailure(unix.Errno(binary.NativeEndian.Uint32(m.Data))), Failed(Unreachable, "the network refuses the datagram"))
		}
	}
	return nil
}
