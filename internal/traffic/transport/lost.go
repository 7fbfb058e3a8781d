package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"vignette.dev/vignette/internal/traffic/request"
)

// Lost reports in plain words why there is no connection.
func (e Events) Lost(err error) { e.Connection(false, Words(err)) }

// Words returns the text of an error, with plain words in place of those of packages net and tls and the kernel.
func Words(err error) string {
	whole := err.Error()
	if op, ok := errors.AsType[*net.OpError](err); ok {
		words := detailOf(op.Err)
		switch {
		case op.Op == "dial" && op.Addr != nil:
			words = op.Addr.String() + ": " + words
		case op.Op == "remote error": // an alert of TLS
			words = "the broker refuses it: " + strings.TrimPrefix(words, "tls: ")
		}
		return strings.Replace(whole, op.Error(), words, 1)
	}
	if refused, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return strings.Replace(whole, refused.Error(), certificateWords(refused.Err), 1)
	}
	if plain, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return strings.Replace(whole, plain.Error(), "the broker answers without TLS: want its port for TLS", 1)
	}
	if unresolved, ok := errors.AsType[*net.DNSError](err); ok {
		return strings.Replace(whole, unresolved.Error(), detailOf(unresolved), 1)
	}
	for _, known := range []error{io.ErrUnexpectedEOF, io.EOF, net.ErrClosed, os.ErrDeadlineExceeded, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return strings.Replace(whole, known.Error(), detailOf(known), 1)
		}
	}
	return whole
}

// certificateWords says why a broker's certificate is refused.
func certificateWords(err error) string {
	name, isName := errors.AsType[x509.HostnameError](err)
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return "the broker's certificate is signed by another authority than the experiment's"
	case isName:
		return "the broker's certificate is not for " + name.Host
	case isInvalid && invalid.Reason == x509.Expired:
		return fmt.Sprintf("the broker's certificate holds from %s to %s, and not now", invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
	}
	return "the broker's certificate is refused: " + strings.TrimPrefix(err.Error(), "x509: ")
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
