package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"vignette.dev/vignette/internal/proxy/frame"
	"vignette.dev/vignette/internal/proxy/message"
)

const (
	// dialTimeout is the longest wait for a service to accept a connection.
	dialTimeout = 20 * time.Second
	// maxInterim is the most interim responses (1xx) before a response.
	maxInterim = 10
)

// service is a connection to a service for one request. No connection is used again: on one that the service is about to close it would
// be unknown whether it acted on the request.
type service struct {
	request message.Request
	content *frame.Content
	framing message.Framing
	conn    net.Conn
	stop    func() bool
}

// dialService connects to the service of a request. Errors are *refusal: nothing was run.
func dialService(ctx context.Context, content []byte) (*service, error) {
	c, r, err := headOf(content)
	if err != nil {
		return nil, &refusal{http.StatusBadGateway, errorRequest, "The far proxy cannot read the request."}
	}
	framing, err := message.RequestFraming(c.Head)
	if err != nil {
		return nil, &refusal{http.StatusBadGateway, errorRequest, "The far proxy cannot read the request: " + err.Error() + "."}
	}
	conn, err := (&net.Dialer{Timeout: dialTimeout, KeepAlive: -1}).DialContext(ctx, "tcp", r.Authority)
	if err != nil {
		return nil, unreachable(r.Authority, err)
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	return &service{request: r, content: c, framing: framing, conn: conn, stop: context.AfterFunc(ctx, func() { conn.Close() })}, nil
}

func unreachable(authority string, err error) *refusal {
	r := &refusal{http.StatusBadGateway, errorUnavailable, ""}
	var lookup *net.DNSError
	switch {
	case errors.As(err, &lookup):
		r.kind, r.text = errorName, "The far proxy finds no address of "+authority+"."
	case errors.Is(err, syscall.ECONNREFUSED):
		r.kind, r.text = errorRefused, "Nobody listens at "+authority+"."
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		r.kind, r.text = errorUnroutable, "The far proxy has no route to "+authority+"."
	default:
		r.status, r.text = http.StatusGatewayTimeout, authority+" did not accept a connection in time."
	}
	r.text += " The request was not run."
	return r
}

func (s *service) close() {
	s.stop()
	s.conn.Close()
}

// call sends the request, and returns the response as content of a frame. Errors are *refusal: whether the request was run is unknown.
func (s *service) call(bodyLimit int) ([]byte, error) {
	written := make(chan struct{})
	// A service may respond before it has read the whole request.
	go func() {
		defer close(written)
		s.write()
		atStep(stepWritten)
	}()
	content, err := s.read(bodyLimit)
	s.conn.Close()
	<-written
	return content, err
}

// write sends the request. An error is noticed by the lack of a response.
func (s *service) write() {
	out := bufio.NewWriterSize(s.conn, 32<<10)
	if _, err := out.Write(s.request.ForService(s.content.Head).Append(nil)); err != nil {
		return
	}
	if err := message.WriteBody(out, s.content, s.framing, func() []string { return s.content.Trailer }); err != nil {
		return
	}
	_ = out.Flush()
}

func (s *service) read(bodyLimit int) ([]byte, error) {
	reader := bufio.NewReader(s.conn)
	head, status, err := finalHead(reader)
	if err != nil {
		return nil, s.lost(err)
	}
	framing, err := message.ResponseFraming(head, s.request.Method, status)
	if err != nil {
		return nil, s.lost(err)
	}
	body := message.NewBody(reader, framing, frame.HeadLimit)
	limited := &limitedBody{body: body, left: bodyLimit}
	var out bytes.Buffer
	_, err = frame.WriteContent(&out, head.EndToEnd(), limited, func() []string { return body.Trailer })
	switch {
	case limited.left < 0:
		return nil, &refusal{http.StatusBadGateway, errorResponseSize,
			fmt.Sprintf("The service acted on the request. Its response has a body of more than %d bytes, which the proxies do not carry.", bodyLimit)}
	case err != nil:
		return nil, s.lost(err)
	}
	return out.Bytes(), nil
}

// finalHead reads the head of a response behind interim ones.
func finalHead(r *bufio.Reader) (message.Head, int, error) {
	for range maxInterim {
		head, err := message.ReadHead(r, frame.HeadLimit)
		if err != nil {
			return head, 0, err
		}
		status, err := message.StatusOf(head.Start)
		if status == http.StatusSwitchingProtocols {
			err = &message.Error{Text: "it changes the protocol without having been asked to"}
		}
		if err != nil || status >= 200 {
			return head, status, err
		}
	}
	return message.Head{}, 0, &message.Error{Text: "it sent interim responses without end"}
}

// lost returns why there is no response.
func (s *service) lost(err error) *refusal {
	var wrong *message.Error
	r := &refusal{http.StatusBadGateway, errorTerminated, s.request.Authority + " ended the connection before its response was whole."}
	switch {
	case errors.As(err, &wrong):
		r.kind, r.text = errorResponse, fmt.Sprintf("The response of %s is malformed: %s.", s.request.Authority, wrong.Text)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, net.ErrClosed):
		r.status, r.kind, r.text = http.StatusGatewayTimeout, errorResponseTimeout, s.request.Authority+" did not respond before the request's deadline."
	}
	r.text += " Whether it acted on the request is unknown."
	return r
}

// limitedBody ends a body that is too large with an error.
type limitedBody struct {
	body io.Reader
	left int
}

func (l *limitedBody) Read(p []byte) (int, error) {
	n, err := l.body.Read(p)
	if l.left -= n; l.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

var errTooLarge = errors.New("the body is too large")
