package request

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestErrorsOfTheNetworkHaveReasons(t *testing.T) {
	of := func(number unix.Errno) error {
		return fmt.Errorf("wrapped: %w", &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", number)})
	}
	for want, err := range map[string]error{
		"refused: nobody serves there":                          of(unix.ECONNREFUSED),
		"unreachable: no way to the host":                       of(unix.EHOSTUNREACH),
		"unreachable: no way to the network":                    of(unix.ENETUNREACH),
		"timeout: TCP gave up":                                  of(unix.ETIMEDOUT),
		"reset: the connection was reset":                       of(unix.ECONNRESET),
		"reset: the connection was closed":                      io.ErrUnexpectedEOF,
		"timeout":                                               os.ErrDeadlineExceeded,
		"unreachable: the name hq has no address":               &net.DNSError{Name: "hq", IsNotFound: true},
		"timeout: no server answers what the address of hq is":  &net.DNSError{Name: "hq", IsTimeout: true},
		"invalid: the message is larger than a datagram may be": of(unix.EMSGSIZE),
	} {
		if got := NetworkFailure(err); got == nil || got.Error() != want {
			t.Errorf("%v: %v; want %q", err, got, want)
		}
	}
	if got := NetworkFailure(errors.New("another")); got != nil {
		t.Errorf("an error that is not the network's is %v; want none", got)
	}
}

func TestTheEndOfAContextHasAReason(t *testing.T) {
	running, cancel := context.WithCancel(t.Context())
	if got := ContextFailure(running); got != nil {
		t.Errorf("before the end: %v", got)
	}
	cancel()
	late, end := context.WithDeadline(t.Context(), time.Now())
	defer end()
	for want, ctx := range map[Reason]context.Context{Cancelled: running, Timeout: late} {
		if got := ContextFailure(ctx); ReasonOf(got) != want {
			t.Errorf("%v; want %s", got, want)
		}
	}
}
