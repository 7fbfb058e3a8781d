package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"vignette.dev/vignette/internal/traffic/request/requesttest"
)

func TestWhyAConnectionIsLostIsToldInWords(t *testing.T) {
	t.Parallel()
	nobody := requesttest.Address(t)
	_, refused := net.Dial("tcp", nobody)
	read := func(err error) error {
		return &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: 1}, Addr: &net.TCPAddr{Port: 2}, Err: err}
	}
	for want, err := range map[string]error{
		nobody + ": nobody serves there":                       refused,
		"hq:8883: TLS: the connection was closed":              fmt.Errorf("hq:8883: TLS: %w", io.EOF),
		"CONNACK: the connection was closed":                   fmt.Errorf("CONNACK: %w", io.ErrUnexpectedEOF),
		"the connection was reset":                             read(os.NewSyscallError("read", syscall.ECONNRESET)),
		"no answer in time":                                    read(os.ErrDeadlineExceeded),
		"hello: no answer in time":                             fmt.Errorf("hello: %w", context.DeadlineExceeded),
		"the connection was closed":                            read(net.ErrClosed),
		"the name nor has no address":                          &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "nor", IsNotFound: true}},
		"nor:1884: the name nor has no address":                fmt.Errorf("nor:1884: %w", &net.DNSError{Err: "no such host", Name: "nor", IsNotFound: true}),
		"receive on port 1883: address already in use":         fmt.Errorf("receive on port 1883: %w", &net.OpError{Op: "listen", Net: "udp4", Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}),
		"send to 198.18.0.255:1883: interface wan: no such x":  fmt.Errorf("send to 198.18.0.255:1883: %w", &net.OpError{Op: "listen", Net: "udp4", Err: errors.New("interface wan: no such x")}),
		"the broker refuses the connection: not authorised":    errors.New("the broker refuses the connection: not authorised"),
		"no sign of life from the broker for 2m0s, as it says": errors.New("no sign of life from the broker for 2m0s, as it says"),
	} {
		if got := Words(err); got != want {
			t.Errorf("%v: %q; want %q", err, got, want)
		}
	}
}
