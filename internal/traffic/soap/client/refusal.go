package client

import (
	"bytes"
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/quietio"
	"vignette.dev/vignette/internal/traffic/request"
)

// softCodes of ICMP's type 3 come while routes change. The datagram or a copy of it may still arrive.
var softCodes = []byte{0, 1, 4, 5, 11, 12}

// readRefusals fails the requests whose datagrams were refused, by what ICMP quotes of them. Several may begin with a short quote;
// one that is not sent yet is none of them.
func (l *link) readRefusals(unsent string) {
	quote, extra := make([]byte, 2048), make([]byte, 512)
	_ = quietio.Control(l.socket, func(fd int) error {
		for {
			n, used, _, _, err := unix.Recvmsg(fd, quote, extra, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
			if err != nil { // none is left
				return err
			}
			if failure := refusal(extra[:used]); failure != nil {
				l.fail(failure, quote[:n], unsent)
			}
		}
	})
}

// refusal is what an entry of a socket's error queue says of a datagram; nil if it may still arrive.
func refusal(control []byte) *request.Failure {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil
	}
	for _, m := range messages {
		if m.Header.Level != unix.IPPROTO_IP || m.Header.Type != unix.IP_RECVERR || len(m.Data) < 8 {
			continue
		}
		// struct sock_extended_err: number, origin, type, code.
		if origin, kind, code := m.Data[4], m.Data[5], m.Data[6]; origin == unix.SO_EE_ORIGIN_ICMP && kind == 3 && !slices.Contains(softCodes, code) {
			return request.NetworkFailure(unix.Errno(binary.NativeEndian.Uint32(m.Data)))
		}
	}
	return nil
}

// fail fails the requests that wait and whose datagrams begin with the quote, but for one that is not sent yet.
func (l *link) fail(failure *request.Failure, quote []byte, unsent string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, w := range l.waiting {
		if id != unsent && bytes.HasPrefix(w.datagram, quote) {
			w.arrived <- arrival{failure: failure}
			delete(l.waiting, id)
		}
	}
}
