package request

import (
	"context"
	"errors"
	"io"
	"net"

	"golang.org/x/sys/unix"
)

// Failed makes the error of a request.
func Failed(reason Reason, detail string) *Failure { return &Failure{Reason: reason, Detail: detail} }

// reasonsOfNumbers has what the kernel says of a connection or datagram.
var reasonsOfNumbers = []struct {
	number unix.Errno
	reason Reason
	detail string
}{
	{unix.ECONNREFUSED, Refused, "nobody serves there"},
	{unix.EHOSTUNREACH, Unreachable, "no way to the host"},
	{unix.ENETUNREACH, Unreachable, "no way to the network"},
	{unix.ENETDOWN, Unreachable, "the network is down"},
	{unix.EADDRNOTAVAIL, Unreachable, "no address or port to send from"},
	{unix.ETIMEDOUT, Timeout, "TCP gave up"},
	{unix.ECONNRESET, Reset, "the connection was reset"},
	{unix.EPIPE, Reset, "the connection was closed"},
	{unix.EMSGSIZE, Invalid, "the message is larger than a datagram may be"},
}

// NetworkFailure tells the reason of an error of package net or of the kernel; nil if it is none.
func NetworkFailure(err error) *Failure {
	for _, known := range reasonsOfNumbers {
		if errors.Is(err, known.number) {
			return Failed(known.reason, known.detail)
		}
	}
	if unresolved, ok := errors.AsType[*net.DNSError](err); ok {
		if unresolved.IsTimeout {
			return Failed(Timeout, "no server answers what the address of "+unresolved.Name+" is")
		}
		return Failed(Unreachable, "the name "+unresolved.Name+" has no address")
	}
	if failure, ok := errors.AsType[net.Error](err); ok && failure.Timeout() {
		return Failed(Timeout, "")
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return Failed(Reset, "the connection was closed")
	}
	return nil
}

// ContextFailure tells why a request's context ended; nil if it did not.
func ContextFailure(ctx context.Context) *Failure {
	switch {
	case ctx.Err() == nil:
		return nil
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return Failed(Timeout, "no response in time")
	}
	return Failed(Cancelled, "")
}
