package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"vignette.dev/vignette/internal/soap"
	"vignette.dev/vignette/internal/traffic/transport"
)

// Response to a message.
type Response struct {
	Status int
	Body   []byte
}

// Accepted reports whether the service accepted the message.
func (r Response) Accepted() bool { return r.Status >= 200 && r.Status < 300 }

// Message is the message in the response, nil for none. A fault, or a failure status without one, is the error.
func (r Response) Message() (*soap.Message, error) {
	if len(r.Body) > 0 {
		m, err := ParseMessage(r.Body)
		if m == nil && !r.Accepted() { // no envelope
			return nil, fmt.Errorf("status %d %s", r.Status, http.StatusText(r.Status))
		}
		return m, err
	}
	if !r.Accepted() {
		return nil, fmt.Errorf("status %d %s", r.Status, http.StatusText(r.Status))
	}
	return nil, nil
}

// Endpoint is a destination of messages.
type Endpoint struct {
	Secure bool
	// Host is host:port.
	Host string
	Path string
}

// ParseEndpoint reads the address of an endpoint reference.
func ParseEndpoint(address string) (Endpoint, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return Endpoint{}, fmt.Errorf("address %q: want http://host:port/path", address)
	}
	e := Endpoint{Secure: u.Scheme == "https", Host: u.Host, Path: u.RequestURI()}
	if u.Port() == "" {
		e.Host = net.JoinHostPort(u.Hostname(), map[bool]string{true: "443", false: "80"}[e.Secure])
	}
	return e, nil
}

// Request is a message to post.
type Request struct {
	Host, Path string
	SOAP       soap.Version
	Action     string
	Message    []byte
	// Username and Password are for HTTP's basic authentication; without a name there is none.
	Username, Password string
	// WaitSeconds is how long the service may take to answer (RFC 7240, preference wait); 0 for none.
	WaitSeconds int
	// Sent is called after the message was written, with the time just before the write.
	Sent func(at time.Time)
}

func (r Request) bytes() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: vignette\r\nContent-Type: %s\r\n", r.Path, r.Host, r.SOAP.ContentType(r.Action))
	if r.SOAP == soap.SOAP11 {
		// Empty, which WS-Addressing allows: the standards' WSDL has no SOAP actions, and implementations generated from it refuse any.
		b.WriteString("SOAPAction: \"\"\r\n")
	}
	if r.Username != "" {
		plain := http.Request{Header: http.Header{}}
		plain.SetBasicAuth(r.Username, r.Password)
		fmt.Fprintf(&b, "Authorization: %s\r\n", plain.Header.Get("Authorization"))
	}
	if r.WaitSeconds > 0 {
		fmt.Fprintf(&b, "Prefer: wait=%d\r\n", r.WaitSeconds)
	}
	b.WriteString("Content-Length: " + strconv.Itoa(len(r.Message)) + "\r\n\r\n")
	b.Write(r.Message)
	return []byte(b.String())
}

// maxHeader is the most bytes of a response's header.
const maxHeader = 64 << 10

// Conn sends messages over one kept connection. Each message is one write, and follows the response to the one before.
type Conn struct {
	net.Conn
	watched   *transport.WatchedConn
	timeout   time.Duration
	responses chan Response
	closed    chan struct{}

	mu sync.Mutex
	// waiting for the response to a request since a time; extra is what the service has beyond the timeout.
	waiting bool
	since   time.Time
	extra   time.Duration
	cause   error
}

// NewConn uses a connection. It closes when the other side closes it. It also closes when, before a response, nothing is read and nothing in
// flight is acknowledged for the timeout: a large message over a slow link takes its time.
func NewConn(conn net.Conn, timeout time.Duration) *Conn {
	watched := transport.Watch(conn)
	c := &Conn{Conn: watched, watched: watched, timeout: timeout, responses: make(chan Response, 1), closed: make(chan struct{})}
	go c.read()
	go c.watch()
	return c
}

func (c *Conn) watch() {
	checks := time.NewTicker(c.timeout / 4)
	defer checks.Stop()
	for {
		select {
		case <-c.closed:
			return
		case now := <-checks.C:
			silent := now.Sub(c.watched.LastSign(now))
			c.mu.Lock()
			late := c.waiting && min(silent, now.Sub(c.since)) > c.timeout+c.extra
			c.mu.Unlock()
			if late {
				c.fail(fmt.Errorf("no response within %v", c.timeout))
			}
		}
	}
}

// Closed returns a channel that closes with the connection.
func (c *Conn) Closed() <-chan struct{} { return c.closed }

// fail closes the connection, once.
func (c *Conn) fail(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		c.cause = cause
		close(c.closed)
		c.Conn.Close()
	}
}

// Close closes the connection.
func (c *Conn) Close() error {
	c.fail(net.ErrClosed)
	return nil
}

// bounded reads at most so many bytes.
type bounded struct {
	io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("response has more than %d bytes", MaxBytes+maxHeader)
	}
	n, err := b.Reader.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func (c *Conn) read() {
	limit := &bounded{Reader: c.Conn}
	reader := bufio.NewReaderSize(limit, 2048)
	for {
		limit.left = MaxBytes + maxHeader
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			c.fail(err)
			return
		}
		if response.StatusCode < 200 {
			continue
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			c.fail(err)
			return
		}
		c.mu.Lock()
		expected := c.waiting
		c.waiting = false
		c.mu.Unlock()
		if !expected {
			c.fail(errors.New("a response to no request"))
			return
		}
		c.responses <- Response{Status: response.StatusCode, Body: body}
		if response.Close {
			c.fail(io.EOF)
			return
		}
	}
}

// responsePause is how long reading a response takes at most.
const responsePause = time.Second

// Post sends a message and waits for the response. After an error the connection is closed.
func (c *Conn) Post(ctx context.Context, r Request) (Response, error) {
	data := r.bytes()
	at := time.Now()
	c.mu.Lock()
	c.waiting, c.since, c.extra = true, at, time.Duration(r.WaitSeconds)*time.Second
	c.mu.Unlock()
	if _, err := c.Write(data); err != nil {
		// A service may refuse a large message before it has read it. Its response is here by now, or never comes.
		time.AfterFunc(responsePause, func() { c.fail(err) })
	} else if r.Sent != nil {
		r.Sent(at)
	}
	select {
	case response := <-c.responses:
		return response, nil
	case <-c.closed:
		select {
		case response := <-c.responses: // it came before the end
			return response, nil
		default:
		}
		return Response{}, c.end()
	case <-ctx.Done():
		c.fail(ctx.Err())
		return Response{}, ctx.Err()
	}
}

// end returns why the connection closed.
func (c *Conn) end() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}
