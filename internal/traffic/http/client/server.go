package client

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	limits "vignette.dev/vignette/internal/traffic/http"
	"vignette.dev/vignette/internal/traffic/request"
)

// server answers requests by a handler.
type server struct {
	http        *http.Server
	handler     request.Handler
	connections *connections
}

// serve listens at once, so that an error is known. An exchange that takes longer than the longest is ended.
func serve(s request.Setup, longest time.Duration) (*server, error) {
	config := net.ListenConfig{KeepAlive: -1}
	// MPTCP would answer a client of it by another protocol than the one to measure.
	config.SetMultipathTCP(false)
	inner, err := config.Listen(context.Background(), "tcp", s.Listen)
	if err != nil {
		return nil, ListenError(s.Listen, err)
	}
	made := &server{handler: s.Handler, connections: &connections{most: maxConnections, warn: s.Warn, state: map[net.Conn]*list.Element{}}}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	made.http = &http.Server{
		Handler: http.HandlerFunc(made.answer), Protocols: protocols, MaxHeaderBytes: maxHeaderBytes, DisableGeneralOptionsHandler: true,
		// The client has given up after the same time. Writing has the handler's time too.
		ReadHeaderTimeout: longest, ReadTimeout: longest, WriteTimeout: 2 * longest, IdleTimeout: serverIdle,
		ConnState:   made.connections.change,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ErrorLog:    log.New(io.Discard, "", 0),
	}
	go func() { _ = made.http.Serve(listener{inner}) }() // it ends with close, and retries what else fails
	return made, nil
}

// ListenError says what is wrong with the address to listen at.
func ListenError(address string, err error) error {
	reason := "want host:port with an address of this node"
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		reason = "another program uses the port"
	case errors.Is(err, unix.EACCES):
		reason = "ports below 1024 take a privilege"
	}
	return fmt.Errorf("listen at %q: %s", address, reason)
}

// listener makes its connections note times.
type listener struct{ net.Listener }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(inner), nil
}

type connKey struct{}

// answer answers one request.
func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, "want GET or POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limits.MaxBytes))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		http.Error(w, fmt.Sprintf("want a body of at most %d bytes", limits.MaxBytes), http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		http.Error(w, "the body did not arrive whole", http.StatusBadRequest)
		return
	}
	at := time.Now()
	if c, ok := r.Context().Value(connKey{}).(*conn); ok {
		at = c.lastRead()
	}
	if r.Method != http.MethodPost {
		body = nil
	}
	reply(w, s.handler(at, request.Request{
		Path: r.URL.RequestURI(), Body: body, ContentType: r.Header.Get("Content-Type"), ContentEncoding: r.Header.Get("Content-Encoding"),
	}))
}

// reply writes a response. Without a valid status it is a receipt.
func reply(w http.ResponseWriter, response request.Response) {
	status := response.Status
	if status < 200 || status > 599 {
		status = http.StatusNoContent
	}
	if status == http.StatusNoContent && len(response.Body) > 0 {
		status = http.StatusOK
	}
	header := w.Header()
	// A nil value keeps net/http from guessing a type.
	header["Content-Type"] = nil
	if response.ContentType != "" {
		header.Set("Content-Type", response.ContentType)
	}
	if response.ContentEncoding != "" {
		header.Set("Content-Encoding", response.ContentEncoding)
	}
	if status != http.StatusNoContent {
		header.Set("Content-Length", strconv.Itoa(len(response.Body)))
	}
	w.WriteHeader(status)
	_, _ = w.Write(response.Body) // a client that is gone has failed by itself
}

func (s *server) close(ctx context.Context) {
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
}

// connections bounds those of the server: for one beyond the most, the one that has been idle longest is closed.
type connections struct {
	most int
	warn func(string)

	mu sync.Mutex
	// state has each connection's place among the idle ones, which begin with the longest; nil for one in use.
	state  map[net.Conn]*list.Element
	idle   list.List
	warned bool
}

// change is called by the server for each connection's states.
func (c *connections) change(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if place := c.state[conn]; place != nil {
		c.idle.Remove(place)
	}
	switch state {
	case http.StateClosed, http.StateHijacked:
		delete(c.state, conn)
		return
	case http.StateIdle:
		c.state[conn] = c.idle.PushBack(conn)
	default:
		c.state[conn] = nil
	}
	if state == http.StateNew && len(c.state) > c.most {
		c.closeOne(conn)
	}
}

func (c *connections) closeOne(newest net.Conn) {
	victim := newest
	if longest := c.idle.Front(); longest != nil {
		victim = c.idle.Remove(longest).(net.Conn)
	} else if !c.warned && c.warn != nil {
		c.warned = true
		c.warn(fmt.Sprintf("%d connections are in use: further ones are closed", c.most))
	}
	delete(c.state, victim)
	_ = victim.Close() // the server notices
}
