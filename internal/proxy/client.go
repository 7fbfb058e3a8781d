package proxy

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/proxy/frame"
	"vignette.dev/vignette/internal/proxy/message"
	"vignette.dev/vignette/internal/proxy/store"
)

const (
	// idleTimeout is how long a client's connection may wait for a request.
	idleTimeout = 5 * time.Minute
	// stallTimeout is how long a client may take for the next bytes of a request, or of reading a response.
	stallTimeout = time.Minute
	// moreConnections than requests are for clients that are refused.
	moreConnections = 1000
)

// Fields that a client may give the proxy. They are carried like all others.
const (
	// timeoutField shortens the request's deadline, in seconds.
	timeoutField = "Proxy-Timeout"
	// keyField makes repetitions of a request by its client one request.
	keyField = "Idempotency-Key"
)

// client is one connection of an HTTP client.
type client struct {
	near   *near
	conn   net.Conn
	reader *bufio.Reader
}

// serveClient serves one connection.
func (n *near) serveClient(conn net.Conn) {
	defer conn.Close()
	c := &client{near: n, conn: conn}
	c.reader = bufio.NewReader(c)
	for c.serve() {
	}
}

// Read implements io.Reader: each piece of a request has to come in time.
func (c *client) Read(p []byte) (int, error) { return c.conn.Read(p) }

// Write implements io.Writer: each piece of a response has to be taken in time.
func (c *client) Write(p []byte) (int, error) {
	_ = c.conn.SetWriteDeadline(time.Now().Add(stallTimeout))
	return c.conn.Write(p)
}

// serve handles one request, and reports whether the connection can have another.
func (c *client) serve() bool {
	_ = c.conn.SetReadDeadline(time.Now().Add(idleTimeout))
	if _, err := c.reader.Peek(1); err != nil {
		return false
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(stallTimeout))
	head, err := message.ReadHead(c.reader, frame.HeadLimit)
	if err != nil {
		return c.refuse("", outcomeMalformed, err)
	}
	r, err := message.ParseRequest(head.Start)
	if err != nil {
		return c.refuse("", outcomeMalformed, err)
	}
	atStep(stepRead)
	e, err := c.accept(r, head)
	if err != nil {
		return c.refuse(r.Method, refusedAs(err), err)
	}
	persistent := r.Minor == 1 && !head.Has("Connection", "close")
	if !c.wait(e) {
		c.near.left(c, e, false)
		return false
	}
	delivered, again := c.deliver(e, r, persistent)
	c.near.left(c, e, delivered)
	return delivered && again
}

// refusedAs returns the outcome of a request that was not accepted.
func refusedAs(err error) string {
	var own *refusal
	switch {
	case errors.As(err, &own) && own.kind == errorLimit:
		return outcomeFull
	case errors.As(err, &own) && own.kind == errorInternal:
		return outcomeDisk
	}
	return outcomeMalformed
}

// refuse answers a request that is not accepted. The connection ends, as the rest of the request was not read.
func (c *client) refuse(method, outcome string, err error) bool {
	r := &refusal{}
	var wrong *message.Error
	switch {
	case errors.As(err, &r):
	case errors.As(err, &wrong):
		r = &refusal{wrong.Status, errorRequest, "The request is refused: " + wrong.Text + "."}
	case errors.Is(err, os.ErrDeadlineExceeded):
		r = &refusal{http.StatusRequestTimeout, errorRequest, fmt.Sprintf("The request is refused: it stopped for %v before its end.", stallTimeout)}
	default: // the client is gone
		return false
	}
	c.near.metrics.requests.WithLabelValues(outcome).Inc()
	head, body := r.message(nearName)
	head.Fields = append(head.Fields, "Connection: close")
	if method == http.MethodHead {
		body = ""
	}
	if _, err := c.Write(append(head.Append(nil), body...)); err != nil {
		return false
	}
	c.linger()
	return false
}

// linger reads on for a moment, as closing with unread bytes would reset the connection before the client has read the response.
func (c *client) linger() {
	if tcp, ok := c.conn.(*net.TCPConn); ok && tcp.CloseWrite() == nil {
		_ = c.conn.SetReadDeadline(time.Now().Add(time.Second))
		_, _ = io.CopyN(io.Discard, c.conn, 1<<20)
	}
}

// accept reads a request to the disk. From then on it will be carried; before, an error refuses it.
func (c *client) accept(r message.Request, head message.Head) (*entry, error) {
	framing, err := message.RequestFraming(head)
	if err != nil {
		return nil, err
	}
	if c.asksForTheProxy(r.Authority) {
		return nil, &refusal{http.StatusLoopDetected, errorLoop, "The request is refused: " + r.Authority + " is this proxy itself, not a service."}
	}
	limit := c.near.config.Limits.BodyBytes
	if framing.Length > int64(limit) {
		return nil, tooLarge(limit)
	}
	deadline, err := c.deadline(head)
	if err != nil {
		return nil, err
	}
	id, keyed := c.idOf(r, head)
	e, err := c.near.reserve(id)
	switch {
	case err != nil:
		return nil, err
	case e != nil:
		return c.join(e, framing, head, deadline)
	}
	e = c.near.newEntry(store.Record{ID: id, Deadline: deadline}, r.Safe())
	e.keyed, e.clients = keyed, 1 // nobody else has it yet
	size, err := c.spool(e, head, framing)
	if err != nil {
		e.cancel()
		c.near.release(id, nil)
		return nil, err
	}
	e.accepted = time.Now()
	c.near.log.record(e.accepted, messagelog.Triggered, id, size, "")
	c.near.release(id, e)
	return e, nil
}

// join waits for the response of a request with the same key, after its repetition was read.
func (c *client) join(e *entry, framing message.Framing, head message.Head, deadline time.Time) (*entry, error) {
	if err := c.proceed(head, framing); err == nil {
		body := stalls{c.body(framing), c.conn, deadline}
		_, err = io.Copy(io.Discard, &limitedBody{body: body, left: c.near.config.Limits.BodyBytes})
		if err == nil {
			return e, nil
		}
	}
	c.near.left(c, e, false)
	return nil, io.ErrUnexpectedEOF
}

// deadline returns until when a request has to have its response.
func (c *client) deadline(head message.Head) (time.Time, error) {
	seconds := c.near.config.Near.DeadlineSeconds
	for _, value := range head.Values(timeoutField) {
		asked, err := strconv.ParseFloat(value, 64)
		if err != nil || !(asked > 0 && asked <= 1e9) {
			return time.Time{}, &refusal{http.StatusBadRequest, errorRequest, fmt.Sprintf("The request is refused: %s is %q; want a number of seconds.", timeoutField, value)}
		}
		seconds = min(seconds, asked)
	}
	return time.Now().Add(secondsOf(seconds)).Truncate(time.Millisecond), nil
}

// idOf returns the id of a request: that of its key, if it has one, else a new one. Clients may choose the same keys, and several
// near proxies may have one far proxy. So the id also depends on the client's address, and on this proxy.
func (c *client) idOf(r message.Request, head message.Head) (id frame.ID, keyed bool) {
	keys := head.Values(keyField)
	if len(keys) != 1 || keys[0] == "" {
		_, _ = rand.Read(id[:]) // it does not fail
		return id, false
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{c.near.config.Instance, c.address(), r.Method, r.Authority, r.Target, keys[0]}, "\n")))
	copy(id[:], sum[:])
	return id, true
}

// address returns the client's address without its port, which differs by connection.
func (c *client) address() string {
	host, _, _ := net.SplitHostPort(c.conn.RemoteAddr().String()) // which always has a port
	return host
}

// asksForTheProxy reports whether a request is for this proxy's own address. A loopback address is the far proxy's.
func (c *client) asksForTheProxy(authority string) bool {
	own, ok := c.conn.LocalAddr().(*net.TCPAddr)
	asked, err := netip.ParseAddrPort(authority)
	if !ok || err != nil || int(asked.Port()) != own.Port || asked.Addr().IsLoopback() {
		return false
	}
	addresses, _ := net.InterfaceAddrs() // without them nothing is refused
	return slices.ContainsFunc(addresses, func(a net.Addr) bool {
		network, ok := a.(*net.IPNet)
		return ok && network.IP.Equal(asked.Addr().AsSlice())
	})
}

func tooLarge(limit int) *refusal {
	return &refusal{http.StatusRequestEntityTooLarge, errorRequest, fmt.Sprintf("The request is refused: its body has more than the %d bytes that the proxy carries.", limit)}
}

// proceed tells a client that waits for it to send its body (RFC 9110, 10.1.1).
func (c *client) proceed(head message.Head, framing message.Framing) error {
	if !head.Has("Expect", "100-continue") || framing.Empty() || c.reader.Buffered() > 0 {
		return nil
	}
	_, err := c.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
	return err
}

func (c *client) body(framing message.Framing) *message.Body {
	return message.NewBody(c.reader, framing, frame.HeadLimit)
}

// stalls refreshes the time for each piece of a request's body.
type stalls struct {
	body     io.Reader
	conn     net.Conn
	deadline time.Time
}

func (s stalls) Read(p []byte) (int, error) {
	next := time.Now().Add(stallTimeout)
	if s.deadline.Before(next) {
		next = s.deadline
	}
	_ = s.conn.SetReadDeadline(next)
	n, err := s.body.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) && next.Equal(s.deadline) {
		err = &refusal{http.StatusRequestTimeout, errorRequest, "The request is refused: its deadline passed before its end."}
	}
	return n, err
}

// spool writes a request to the disk, and returns the bytes of its content.
func (c *client) spool(e *entry, head message.Head, framing message.Framing) (int, error) {
	w, err := c.near.store.Create(e.request)
	if err != nil {
		return 0, diskError(err)
	}
	err = c.proceed(head, framing)
	if err == nil {
		body := c.body(framing)
		limited := &limitedBody{body: stalls{body, c.conn, e.request.Deadline}, left: c.near.config.Limits.BodyBytes}
		_, err = frame.WriteContent(w, head.EndToEnd(), limited, func() []string { return body.Trailer })
		switch {
		case limited.left < 0:
			err = tooLarge(c.near.config.Limits.BodyBytes)
		case w.Err() != nil:
			err = diskError(w.Err())
		}
	}
	if err != nil {
		w.Discard()
		return 0, err
	}
	atStep(stepSpooled)
	if err := w.Commit(); err != nil {
		return 0, diskError(err)
	}
	atStep(stepAccepted)
	return int(c.near.store.Size(e.request)), nil
}

func diskError(err error) *refusal {
	if errors.Is(err, store.ErrFull) {
		return &refusal{http.StatusServiceUnavailable, errorInternal, "The request is refused: the proxy's disk is full."}
	}
	return &refusal{http.StatusServiceUnavailable, errorInternal, "The request is refused: the proxy cannot write to its disk."}
}

// reserve makes room for a request that is about to be read. If one with its id was accepted, that is returned, with the client as one of its.
func (n *near) reserve(id frame.ID) (*entry, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e, known := n.entries[id]; known {
		if e == nil {
			return nil, &refusal{http.StatusConflict, errorRequest, "The request is refused: another one with its " + keyField + " is being read."}
		}
		e.clients++
		e.keyed = true // one that an earlier process accepted does not say so
		return e, nil
	}
	if n.unanswered.Len()+n.reading >= n.config.Limits.Requests {
		return nil, &refusal{http.StatusServiceUnavailable, errorLimit,
			fmt.Sprintf("The request is refused: the queue is full with %d requests.", n.config.Limits.Requests)}
	}
	n.reading++
	n.entries[id] = nil
	return nil, nil
}

// release ends the reading of a request, which was accepted, or refused without an entry.
func (n *near) release(id frame.ID, e *entry) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reading--
	if e == nil {
		delete(n.entries, id)
		return
	}
	n.enqueueLocked(e) // under the same lock, or the request would count twice for a moment
}

// wait waits for a response, and reports whether the client does so too.
func (c *client) wait(e *entry) bool {
	_ = c.conn.SetReadDeadline(time.Time{})
	c.near.mu.Lock()
	if !e.done {
		// Ends the read below, so that one goroutine waits for the response and notices a client that goes away.
		e.wake[c] = func() { _ = c.conn.SetReadDeadline(time.Unix(1, 0)) }
	}
	done := e.done
	c.near.mu.Unlock()
	if !done {
		if _, err := c.reader.Peek(1); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return false
		}
		select {
		case <-e.ended:
		case <-c.near.ctx.Done():
			return false
		}
	}
	_ = c.conn.SetReadDeadline(time.Time{})
	return true
}

// left ends a client's interest in a request.
func (n *near) left(c *client, e *entry, delivered bool) {
	n.mu.Lock()
	e.clients--
	delete(e.wake, c)
	done, clients, unwanted := e.done, e.clients, n.dropLocked(e)
	n.mu.Unlock()
	switch {
	case clients > 0:
	case !done && e.safe:
		n.abandon(e, "the client did not wait")
	case unwanted:
		n.store.Remove(e.response)
		if delivered {
			atStep(stepRemoved)
		}
	}
}

// deliver writes the response of a request, and reports whether the client has it, and whether the connection can have another request.
func (c *client) deliver(e *entry, r message.Request, persistent bool) (delivered, again bool) {
	content, answer, framing, err := c.near.response(e, r.Method)
	if err != nil {
		return false, c.refuse(r.Method, outcomeDisk, &refusal{http.StatusInternalServerError, errorInternal,
			"There was a response, which the proxy cannot read from its disk."})
	}
	defer content.Close()
	head := answer.Head
	head.Start = "HTTP/1.1" + head.Start[len("HTTP/1.1"):]
	if framing.Chunked && r.Minor == 0 {
		head, framing = head.Without("Transfer-Encoding"), message.Framing{UntilClose: true}
	}
	if again = persistent && !framing.UntilClose; !again {
		head.Fields = append(head.Fields, "Connection: close")
	}
	out := bufio.NewWriter(c)
	_, err = out.Write(head.Append(nil))
	if err == nil && !bodiless(answer, r.Method) {
		err = message.WriteBody(out, answer, framing, func() []string { return answer.Trailer })
	}
	if err = errors.Join(err, out.Flush()); err != nil {
		return false, false
	}
	atStep(stepDelivered)
	return true, again
}

func bodiless(answer *frame.Content, method string) bool {
	status, _ := message.StatusOf(answer.Head.Start) // which was read before
	return message.Bodiless(method, status)
}

// response opens the response of a request.
func (n *near) response(e *entry, method string) (content io.ReadCloser, answer *frame.Content, framing message.Framing, err error) {
	n.mu.Lock()
	own, held := e.refusal, e.held
	n.mu.Unlock()
	switch {
	case own != nil:
		content = io.NopCloser(bytes.NewReader(own.content(nearName)))
	case held != nil:
		content = io.NopCloser(bytes.NewReader(held))
	default:
		if content, err = n.store.Open(e.response); err != nil {
			return nil, nil, framing, err
		}
	}
	var status int
	if answer, err = frame.ReadContent(content); err == nil {
		status, err = message.StatusOf(answer.Head.Start)
	}
	if err == nil {
		framing, err = message.ResponseFraming(answer.Head, method, status)
	}
	if err != nil {
		content.Close()
	}
	return content, answer, framing, err
}

// requestOf returns the request of a content that was accepted.
func requestOf(c *frame.Content) message.Request {
	r, _ := message.ParseRequest(c.Head.Start)
	return r
}
