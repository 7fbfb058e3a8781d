// Package client is HTTP/1.1 over TCP as a request/response protocol: client and server in one, by net/http.
package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"time"

	"vignette.dev/vignette/internal/safetext"
	limits "vignette.dev/vignette/internal/traffic/http"
	"vignette.dev/vignette/internal/traffic/request"
)

const (
	maxHeaderBytes = 64 << 10
	// writeBuffer lets a request below it leave in one write.
	writeBuffer = 64 << 10
	// maxConnections of the client, and as many of the server.
	maxConnections = 256
	// maxToOne is the most connections of the client to one addressee. Further requests wait for one.
	maxToOne = 64
	// The client closes an idle connection before the server does, so that no request meets the server's closing.
	clientIdle = time.Hour
	serverIdle = clientIdle + 5*time.Minute
	// shortestExchange is how long an exchange may take at least, before the server ends it.
	shortestExchange = 2 * time.Minute
)

// peer implements request.Peer.
type peer struct {
	timeout   time.Duration
	transport *http.Transport
	server    *server
	running   *request.Running
}

// Open is a request.Open.
func Open(s request.Setup) (request.Peer, error) {
	if s.TimeoutSeconds <= 0 {
		return nil, fmt.Errorf("timeout %v s: want more than 0", s.TimeoutSeconds)
	}
	timeout := time.Duration(s.TimeoutSeconds * float64(time.Second))
	p := &peer{timeout: timeout, transport: newTransport(s.HTTP, timeout), running: request.NewRunning()}
	if s.HTTP.Proxy != "" {
		if !isAddress(s.HTTP.Proxy) {
			return nil, fmt.Errorf("proxy %q: want host:port", s.HTTP.Proxy)
		}
		p.transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: s.HTTP.Proxy})
	}
	if s.Listen != "" {
		var err error
		if p.server, err = serve(s, max(timeout, shortestExchange)); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func newTransport(o request.HTTPOptions, timeout time.Duration) *http.Transport {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	// TCP's keep-alive would load the measured network when nothing else does. The transport goes on connecting after a request has ended: the
	// timeout ends that too.
	dialer := &net.Dialer{KeepAlive: -1, Timeout: timeout}
	return &http.Transport{
		// No proxy from the environment: a zero Proxy has none.
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			inner, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return newConn(inner), nil
		},
		DisableKeepAlives: o.FreshConnections, DisableCompression: true, Protocols: protocols,
		MaxIdleConns: maxConnections, MaxIdleConnsPerHost: maxToOne, MaxConnsPerHost: maxToOne, IdleConnTimeout: clientIdle,
		MaxResponseHeaderBytes: maxHeaderBytes, WriteBufferSize: writeBuffer,
	}
}

func isAddress(hostPort string) bool {
	host, port, err := net.SplitHostPort(hostPort)
	return err == nil && host != "" && port != ""
}

// Do implements request.Peer.
func (p *peer) Do(ctx context.Context, to string, r request.Request, e request.Events) (request.Response, time.Time, error) {
	ctx, end, err := p.running.Request(ctx, p.timeout)
	if err != nil {
		return request.Response{}, time.Time{}, err
	}
	defer end()
	s := &sending{events: e}
	httpRequest, err := newRequest(httptrace.WithClientTrace(ctx, s.trace()), to, r)
	if err != nil {
		return request.Response{}, time.Time{}, err
	}
	// RoundTrip follows no redirect, and has no cookies: one request is one exchange.
	answer, err := p.transport.RoundTrip(httpRequest)
	if err != nil {
		s.end(false)
		return request.Response{}, time.Time{}, s.failure(ctx, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, limits.MaxBytes+1))
	at := s.end(err == nil)
	if err != nil {
		return request.Response{}, time.Time{}, s.failure(ctx, err)
	}
	if len(body) > limits.MaxBytes {
		return request.Response{}, time.Time{}, request.Failed(request.Invalid, fmt.Sprintf("a response of more than %d bytes", limits.MaxBytes))
	}
	response := request.Response{
		Status: answer.StatusCode, Body: body,
		ContentType: answer.Header.Get("Content-Type"), ContentEncoding: answer.Header.Get("Content-Encoding"),
	}
	if !response.Succeeded() {
		return response, at, request.Failed(request.Rejected, rejection(response))
	}
	return response, at, nil
}

func newRequest(ctx context.Context, to string, r request.Request) (*http.Request, error) {
	target, err := url.ParseRequestURI(r.Path)
	switch {
	case !isAddress(to):
		return nil, request.Failed(request.Invalid, fmt.Sprintf("addressee %q: want host:port", to))
	case err != nil || !strings.HasPrefix(r.Path, "/"):
		return nil, request.Failed(request.Invalid, fmt.Sprintf("path %q: want one that begins with /, escaped as in URLs", safetext.Truncate(r.Path)))
	case len(r.Body) > limits.MaxBytes:
		return nil, request.Failed(request.Invalid, fmt.Sprintf("a body of %d bytes: want at most %d", len(r.Body), limits.MaxBytes))
	}
	target.Scheme, target.Host = "http", to
	made := (&http.Request{Method: http.MethodGet, URL: target, Host: to, Header: http.Header{"User-Agent": {"vignette"}}}).WithContext(ctx)
	if len(r.Body) == 0 {
		return made, nil
	}
	made.Method, made.ContentLength = http.MethodPost, int64(len(r.Body))
	// With GetBody the transport takes another connection if one that it kept turns out to be closed before a byte is written.
	made.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.Body)), nil }
	made.Body, _ = made.GetBody() // never fails
	if r.ContentType != "" {
		made.Header.Set("Content-Type", r.ContentType)
	}
	if r.ContentEncoding != "" {
		made.Header.Set("Content-Encoding", r.ContentEncoding)
	}
	return made, nil
}

// rejection returns the status and what the server says of it, such as a proxy's reason.
func rejection(r request.Response) string {
	text := strings.TrimSpace(fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status)))
	if !strings.HasPrefix(r.ContentType, "text/plain") || r.ContentEncoding != "" {
		return text
	}
	reason, _, _ := strings.Cut(strings.TrimSpace(string(r.Body)), "\n")
	if reason == "" {
		return text
	}
	return text + ": " + safetext.Truncate(safetext.Terminal(reason))
}

// Close implements request.Peer.
func (p *peer) Close(ctx context.Context) {
	p.running.Stop()
	p.transport.CloseIdleConnections()
	if p.server != nil {
		p.server.close(ctx)
	}
	p.running.Wait(ctx)
}

// sending follows one request through the transport. Usually the transport sends it once, over one connection.
type sending struct {
	events request.Events
	mu     sync.Mutex
	// conn is that of the current attempt. All of the request was given to it, or to its buffer, if composed; reported says whether an event told so.
	conn               *conn
	composed, reported bool
	// sent: an earlier attempt was reported.
	sent, over bool
}

func (s *sending) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{GotConn: s.gotConn, WroteRequest: s.wroteRequest}
}

// gotConn is called again when the transport takes another connection for the request.
func (s *sending) gotConn(info httptrace.GotConnInfo) {
	s.settle(false)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn, s.composed, s.reported = info.Conn.(*conn), false, false
	s.conn.begin()
}

// wroteRequest is called before the transport flushes its buffer into the connection.
func (s *sending) wroteRequest(info httptrace.WroteRequestInfo) {
	if info.Err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.composed = true
	c := s.conn
	c.whenFlushed(func() { s.report(c) })
}

// report reports an attempt. The transport repeats a GET whose connection, kept from an earlier request, ends before any answer.
func (s *sending) report(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, whole := c.wrote()
	if s.over || c != s.conn || s.reported || !s.composed || !whole {
		return
	}
	report := s.events.Sent
	if s.sent {
		report = s.events.Retransmitted
	}
	s.reported, s.sent = true, true
	if report != nil {
		report(at)
	}
}

// settle reports the current attempt if it was written and that is not reported yet: with an empty buffer there is nothing to flush.
func (s *sending) settle(answered bool) {
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	if c == nil {
		return
	}
	if !answered {
		c.abandon()
	}
	s.report(c)
}

// end returns when the last byte was read. No event is reported afterwards.
func (s *sending) end(answered bool) (at time.Time) {
	s.settle(answered)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.conn != nil {
		at = s.conn.lastRead()
	}
	return at
}

// failure tells the reason of an error of the transport. Its own errors have no types, so the connection is asked too.
func (s *sending) failure(ctx context.Context, err error) *request.Failure {
	if failure := request.ContextFailure(ctx); failure != nil {
		return failure
	}
	cause := err
	if s.conn != nil && s.conn.cause() != nil {
		cause = errors.Join(s.conn.cause(), err)
	}
	if failure := request.NetworkFailure(cause); failure != nil {
		return failure
	}
	return request.Failed(request.Invalid, fmt.Sprintf("no response of HTTP/1.1 with a header up to %d bytes", maxHeaderBytes))
}
