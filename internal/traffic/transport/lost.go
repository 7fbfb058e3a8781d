package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"vignette.dev/vignette/internal/traffic/request"
)

// Lost reports in plain words why there is no connection.
func (e Events) Lost(err error) { e.Connection(false, Words(err)) }

// Words returns the text of an error, with plain words in place of those of package net and the kernel.
func Words(err error) string {
	whole := err.Error()
	if op, ok := errors.AsType[*net.OpError](err); ok {
		words := detailOf(op.Err)
		if op.Op == "dial" && op.Addr != nil {
			words = op.Addr.String() + ": " + words
		}
		return strings.Replace(whole, op.Error(), words, 1)
	}
	for _, known := range []error{io.ErrUnexpectedEOF, io.EOF, net.ErrClosed, os.ErrDeadlineExceeded, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return strings.Replace(whole, known.Error(), detailOf(known), 1)
		}
	}
	return whole
}

// detailOf returns what is wrong with a connection.
func detailOf(err error) string {
	failure := request.NetworkFailure(err)
	number, ofKernel := errors.AsType[syscall.Errno](err)
	switch {
	case failure != nil && failure.Detail != "":
		return failure.Detail
	case failure != nil:
		return "no answer in time"
	case errors.Is(err, net.ErrClosed):
		return "the connection was closed"
	case ofKernel && errors.As(err, new(*os.SyscallError)):
		return number.Error()
	}
	return err.Error()
}
