package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"
	tcpcoder "github.com/plgd-dev/go-coap/v3/tcp/coder"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/traffic/request"
)

const (
	// maxMessageBytes is the Max-Message-Size that we announce. Longer bodies come in blocks.
	maxMessageBytes = 1 << 20
	// defaultMessageBytes is what an endpoint accepts that announces nothing (RFC 8323, section 5.3.1).
	defaultMessageBytes = 1152
	// maxConnections of a peer, in either direction.
	maxConnections = 1024
	// readStep is how much of a long message is read at a time.
	readStep = 16 << 10
	// announcement is how long to wait for the remote endpoint's CSM. Some send none, although RFC 8323 wants it.
	announcement = 5 * time.Second
	// stall is how long a message may stop in its middle, read or written.
	stall = 4 * time.Minute
	// maxRequests of a connection that are handled, or whose responses are not written yet. Others have to wait.
	maxRequests = 64
)

// tcpTransport has the server's connections, and one to each remote endpoint of the client.
type tcpTransport struct {
	core     *core
	budget   *budget
	dial     func(ctx context.Context, to string) (net.Conn, error)
	listener net.Listener
	// dials let one connection to an address be opened at a time.
	dials slots[string]

	mu      sync.Mutex
	streams map[*stream]bool
	byName  map[string]*stream
	closed  bool
}

func openTCP(c *core, s request.Setup) (transport, error) {
	if len(s.MulticastGroups) > 0 {
		return nil, fmt.Errorf("multicast groups %q: CoAP over TCP has no multicast", s.MulticastGroups)
	}
	t := newTCP(c)
	if s.Listen == "" {
		return t, nil
	}
	listener, err := (&net.ListenConfig{KeepAlive: -1}).Listen(c.ctx, "tcp", s.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen %q: the port is in use, or the address is none of this node's", s.Listen)
	}
	t.listener = listener
	c.running.Go(t.accept)
	return t, nil
}

func newTCP(c *core) *tcpTransport {
	t := &tcpTransport{core: c, budget: &budget{left: storeBytes}, dials: slots[string]{limit: 1}, streams: map[*stream]bool{}, byName: map[string]*stream{}}
	t.dial = func(ctx context.Context, to string) (net.Conn, error) {
		return (&net.Dialer{KeepAlive: -1}).DialContext(ctx, "tcp", to) // it would load the network
	}
	return t
}

func (t *tcpTransport) accept() {
	for {
		conn, err := t.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // such as too many open files
			if !clock.Pause(t.core.ctx, 100*time.Millisecond) {
				return
			}
		case t.start(conn, "") == nil:
			conn.Close()
		}
	}
}

// start runs a connection; name is that of one which the client opened.
func (t *tcpTransport) start(conn net.Conn, name string) *stream {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.makeRoom()
	s := &stream{core: t.core, budget: t.budget, conn: conn, from: conn.RemoteAddr().String(), writing: make(chan struct{}, 1), requests: make(chan struct{}, maxRequests), announced: make(chan struct{}), over: make(chan struct{}), peerBytes: defaultMessageBytes, peerBlocks: true}
	s.writing <- struct{}{} // for the CSM, which has to be first
	s.used.Store(time.Now().UnixNano())
	t.streams[s] = true
	if name != "" {
		t.byName[name] = s
	}
	t.core.running.Go(func() {
		s.run()
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.streams, s)
		if t.byName[name] == s {
			delete(t.byName, name)
		}
	})
	return s
}

// makeRoom ends the connection that was not used for longest, if there are too many.
func (t *tcpTransport) makeRoom() {
	if len(t.streams) < maxConnections {
		return
	}
	var oldest *stream
	for s := range t.streams {
		if oldest == nil || s.used.Load() < oldest.used.Load() {
			oldest = s
		}
	}
	oldest.conn.Close()
	delete(t.streams, oldest)
	t.core.warn("CoAP: more than %d connections: the one that was not used for longest is ended", maxConnections)
}

func (t *tcpTransport) existing(name string) *stream {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byName[name]
}

func (t *tcpTransport) session(ctx context.Context, to string) (session, bool, error) {
	address, err := resolve(ctx, to)
	if err != nil {
		return nil, false, err
	}
	if address.Addr().IsMulticast() {
		return nil, false, invalid("address %q: CoAP over TCP has no multicast", to)
	}
	name := address.String()
	release, err := t.dials.acquire(ctx, name)
	if err != nil {
		return nil, false, err
	}
	defer release()
	if s := t.existing(name); s != nil {
		return s, false, nil
	}
	conn, err := t.dial(ctx, name)
	if err != nil {
		return nil, false, err
	}
	s := t.start(conn, name)
	if s == nil {
		conn.Close()
		return nil, false, request.Failed(request.Cancelled, "")
	}
	return s, false, nil
}

func (t *tcpTransport) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.listener != nil {
		t.listener.Close()
	}
	for s := range t.streams {
		s.conn.Close()
	}
}

// stream is one connection.
type stream struct {
	*core
	budget    *budget
	conn      net.Conn
	from      string
	exchanges exchanges
	// used is when the last message came, in nanoseconds.
	used atomic.Int64
	// writing is held while a message is written.
	writing chan struct{}
	// requests has an element for each that is handled, or whose response is not written yet.
	requests chan struct{}
	// ponging: a Pong is to be written.
	ponging atomic.Bool

	// announced is closed once the remote endpoint has announced what it accepts.
	announced chan struct{}
	// over is closed once the connection has ended.
	over       chan struct{}
	mu         sync.Mutex
	peerBytes  int
	peerBlocks bool
	// silent: it announced nothing in time.
	silent bool
}

// run reads messages until the connection ends.
func (s *stream) run() {
	defer s.conn.Close()
	csm := message.Message{Code: codes.CSM}
	addUint(&csm, message.TCPMaxMessageSize, maxMessageBytes)
	add(&csm, message.TCPBlockWiseTransfer, nil)
	s.running.Go(func() {
		defer func() { <-s.writing }()
		_ = s.write(s.ctx, csm, nil)
	})
	err := s.read()
	s.conn.Close()
	failure := request.Failed(request.Reset, "the addressee ended the connection")
	if s.ctx.Err() != nil {
		failure = request.Failed(request.Cancelled, "")
	} else if f := (*request.Failure)(nil); errors.As(err, &f) {
		failure = f
	}
	s.exchanges.fail(failure)
	close(s.over)
}

func (s *stream) read() error {
	reader := bufio.NewReaderSize(s.conn, 4096)
	for {
		m, size, err := s.next(reader)
		if errors.Is(err, errMalformed) || errors.Is(err, errTooLong) {
			s.abort(err)
			return invalid("the addressee sent a %v", err)
		}
		if err != nil {
			return err
		}
		if err := s.handle(m, size, time.Now()); err != nil {
			return err
		}
	}
}

var errTooLong = errors.New("message that is too long")

// next reads a message. Its size is taken from the budget.
func (s *stream) next(r *bufio.Reader) (m message.Message, size int, err error) {
	_ = s.conn.SetReadDeadline(time.Time{})
	first, err := r.Peek(1)
	if err != nil {
		return m, 0, err
	}
	extended := map[byte]int{13: 1, 14: 2, 15: 4}[first[0]>>4]
	tokenLength := int(first[0] & 0xf)
	if tokenLength > maxTokenBytes {
		return m, 0, errMalformed
	}
	_ = s.conn.SetReadDeadline(time.Now().Add(stall))
	head, err := r.Peek(1 + extended + 1 + tokenLength)
	if err != nil {
		return m, 0, err
	}
	// Checked here as the library's sum may overflow.
	if extended == 4 && (head[1] != 0 || head[2] > maxMessageBytes>>16) {
		return m, 0, errTooLong
	}
	var header tcpcoder.MessageHeader
	if _, err := tcpcoder.DefaultCoder.DecodeHeader(head, &header); err != nil {
		return m, 0, errMalformed
	}
	if header.MessageLength > maxMessageBytes {
		return m, 0, errTooLong
	}
	frame, err := s.take(r, int(header.MessageLength))
	if err != nil {
		return m, 0, err
	}
	m.Code, m.Token = header.Code, frame[int(header.Length)-tokenLength:header.Length]
	if err := parseOptions(&m, frame[header.Length:]); err != nil {
		s.budget.give(len(frame))
		return m, 0, err
	}
	return m, len(frame), nil
}

// take reads a whole message piece by piece: announced bytes take no memory.
func (s *stream) take(r *bufio.Reader, length int) (frame []byte, err error) {
	taken := 0
	defer func() {
		if err != nil {
			s.budget.give(taken)
		}
	}()
	for len(frame) < length {
		step := min(readStep, length-len(frame))
		if !s.budget.take(step) {
			s.warn("CoAP: messages that are being read exceed %d bytes: a connection is ended", storeBytes)
			return nil, errTooLong
		}
		taken += step
		_ = s.conn.SetReadDeadline(time.Now().Add(stall))
		before := len(frame)
		frame = append(frame, make([]byte, step)...)
		if _, err := io.ReadFull(r, frame[before:]); err != nil {
			return nil, err
		}
	}
	return frame, nil
}

// handle handles a message. An error ends the connection.
func (s *stream) handle(m message.Message, size int, at time.Time) error {
	s.used.Store(at.UnixNano())
	if isRequest(m.Code) {
		return s.request(m, size, at)
	}
	if isResponse(m.Code) {
		if x := s.exchanges.find(m.Token); x != nil {
			x.deliver(event{kind: responded, message: m, at: at})
		}
	}
	s.budget.give(size)
	switch m.Code {
	case codes.CSM:
		return s.settings(m)
	case codes.Ping:
		s.pong(m.Token)
	case codes.Release, codes.Abort:
		return request.Failed(request.Reset, "the addressee ended the connection")
	}
	return nil
}

// pong answers a Ping, unless the answer to an earlier one is not written yet: they would accumulate.
func (s *stream) pong(token message.Token) {
	if !s.ponging.CompareAndSwap(false, true) {
		return
	}
	s.running.Go(func() {
		defer s.ponging.Store(false)
		_ = s.send(s.ctx, message.Message{Code: codes.Pong, Token: token}, nil)
	})
}

// settings notes what the remote endpoint accepts.
func (s *stream) settings(m message.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isAnnounced() {
		s.peerBlocks = false
	}
	for _, o := range m.Options {
		switch {
		case o.ID == message.TCPMaxMessageSize && len(o.Value) <= 4:
			size := 0
			for _, b := range o.Value {
				size = size<<8 | int(b)
			}
			s.peerBytes = min(size, 1<<30)
		case o.ID == message.TCPBlockWiseTransfer:
			s.peerBlocks = true
		case o.ID&1 == 1:
			return invalid("the addressee's CSM has the unknown option %d", o.ID)
		}
	}
	if !s.isAnnounced() {
		close(s.announced)
	}
	return nil
}

func (s *stream) isAnnounced() bool {
	select {
	case <-s.announced:
		return true
	default:
		return false
	}
}

// abort says why the connection ends.
func (s *stream) abort(why error) {
	ctx, cancel := context.WithTimeout(s.ctx, time.Second)
	defer cancel()
	_ = s.send(ctx, message.Message{Code: codes.Abort, Payload: []byte(why.Error())}, nil)
}

func (s *stream) request(m message.Message, size int, at time.Time) error {
	for _, room := range []chan struct{}{s.requests, s.handlers} {
		select {
		case room <- struct{}{}: // while there is none TCP holds the sender up
		case <-s.ctx.Done():
			s.budget.give(size)
			return s.ctx.Err()
		}
	}
	s.running.Go(func() {
		defer func() { <-s.requests }()
		if response, wanted := s.respond(m, size, at); wanted {
			_ = s.send(s.ctx, response, nil)
		}
	})
	return nil
}

// respond calls the service. Then it gives the handler's slot back, as the remote endpoint may be slow to read the response.
func (s *stream) respond(m message.Message, size int, at time.Time) (response message.Message, wanted bool) {
	defer func() { <-s.handlers }()
	defer s.budget.give(size)
	a := arrival{message: m, at: at, from: s.from, room: s.accepted()}
	response = s.service.respond(a)
	response.Token = slices.Clone(m.Token) // it shares the request's memory
	return response, !suppressed(m, response.Code)
}

// accepted is what the remote endpoint accepts in one message, as far as that is known.
func (s *stream) accepted() room {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := room{whole: max(s.peerBytes-maxHeaderBytes, 0), stream: true}
	if s.peerBytes == defaultMessageBytes {
		r.whole = 1024 // with 128 bytes for the rest, as RFC 7252 means it
	}
	switch {
	case !s.peerBlocks:
	case r.whole >= 2048:
		r.exponent, r.bytes = bert, r.whole/1024*1024
	case r.whole >= 16:
		for r.exponent < 6 && 32<<r.exponent <= r.whole {
			r.exponent++
		}
		r.bytes = 16 << r.exponent
	}
	return r
}

// send writes a message when it is its turn.
func (s *stream) send(ctx context.Context, m message.Message, p *progress) error {
	select {
	case s.writing <- struct{}{}:
	case <-ctx.Done():
		return ended(ctx)
	}
	defer func() { <-s.writing }()
	return s.write(ctx, m, p)
}

func (s *stream) write(ctx context.Context, m message.Message, p *progress) error {
	b, err := formatStream(m)
	if err != nil {
		return invalid("the message cannot be encoded")
	}
	// A message that is cut short ends the connection, as nothing can follow it.
	stop := context.AfterFunc(ctx, s.cut)
	at := time.Now()
	err = s.put(ctx, b)
	if !stop() && err == nil {
		s.conn.Close()
	}
	if err != nil {
		s.conn.Close()
		return failedIn(ctx, err)
	}
	p.wrote(at, false)
	return nil
}

// put writes bytes. It fails if the context ends, or if the remote endpoint takes none for the time stall.
func (s *stream) put(ctx context.Context, b []byte) error {
	for {
		_ = s.conn.SetWriteDeadline(time.Now().Add(stall))
		if ctx.Err() != nil { // the new deadline may have replaced that of cut
			s.cut()
		}
		n, err := s.conn.Write(b)
		b = b[n:]
		if n == 0 || ctx.Err() != nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
}

// cut ends the write that is under way.
func (s *stream) cut() { _ = s.conn.SetWriteDeadline(time.Unix(1, 0)) }

func (s *stream) open() (*exchange, error) { return s.exchanges.open(s.random, origin{}) }

func (s *stream) close(x *exchange) { s.exchanges.close(x) }

// room waits for what the remote endpoint announces only if the body does not fit what every endpoint accepts. If it announces nothing,
// blocks are tried.
func (s *stream) room(ctx context.Context, n int) (room, error) {
	s.mu.Lock()
	silent := s.silent
	s.mu.Unlock()
	if r := s.accepted(); n <= r.whole || silent {
		return r, nil
	}
	timer := time.NewTimer(announcement)
	defer timer.Stop()
	select {
	case <-s.announced:
		return s.accepted(), nil
	case <-timer.C:
		s.mu.Lock()
		s.silent = true
		s.mu.Unlock()
		return s.accepted(), nil
	case <-s.over:
		return room{}, request.Failed(request.Reset, "the addressee ended the connection")
	case <-ctx.Done():
		return room{}, ended(ctx)
	}
}

func (s *stream) ask(ctx context.Context, x *exchange, m message.Message, p *progress) (message.Message, time.Time, error) {
	if err := s.send(ctx, m, p); err != nil {
		return message.Message{}, time.Time{}, err
	}
	for {
		select {
		case <-ctx.Done():
			return message.Message{}, time.Time{}, ended(ctx)
		case e := <-x.events:
			return e.result()
		}
	}
}

func (s *stream) tell(ctx context.Context, m message.Message, p *progress) error {
	m.Token = s.random.token()
	return s.send(ctx, m, p)
}
