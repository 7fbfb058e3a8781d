// Package httplink carries the frames of a proxy pair by HTTP/1.1: each is the body of a POST, its answer the body of the response.
package httplink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"syscall"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/proxy/link"
	httpreq "vignette.dev/vignette/internal/traffic/http/client"
	"vignette.dev/vignette/internal/traffic/request"
)

// Protocol is this one.
var Protocol = link.Protocol{Dial: Dial, Listen: Listen}

// path is that of all requests.
const path = "/"

// contentType of frames.
const contentType = "application/octet-stream"

// maxConnections of a far proxy. Each of its near proxies keeps some idle.
const maxConnections = 10_000

type sender struct {
	client *http.Client
	url    string
	limit  int
}

// Dial is part of a link.Protocol.
func Dial(setup link.Setup) (link.Sender, error) {
	// Shorter than the silence, as the kernel's attempts to connect come ever later: a new one finds a mended link sooner.
	dialer := &net.Dialer{Timeout: setup.Silence() / 4, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: setup.Silence() / 2, Interval: setup.Silence() / 6, Count: 3},
		Control: silence(setup.Silence())}
	transport := &http.Transport{DialContext: dialer.DialContext, DisableCompression: true,
		MaxIdleConnsPerHost: setup.Config.Limits.Concurrent, IdleConnTimeout: 5 * time.Minute}
	return &sender{client: &http.Client{Transport: transport}, url: "http://" + setup.Config.Near.Peer + path, limit: setup.FrameLimit()}, nil
}

// silence bounds how long sent data may stay unacknowledged: the kernel's own bound is about a quarter of an hour.
func silence(most time.Duration) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var err error
		return errors.Join(c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(most.Milliseconds())) //nolint:gosec // a descriptor
		}), err)
	}
}

// Carry implements link.Sender.
func (s *sender) Carry(ctx context.Context, frame []byte, sent func(at time.Time)) ([]byte, error) {
	var at time.Time
	trace := &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { at = time.Now() },
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				sent(at)
			}
		},
	}
	r, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodPost, s.url, bytes.NewReader(frame))
	if err != nil {
		return nil, &request.Failure{Reason: request.Invalid, Detail: "the peer's address is malformed"}
	}
	r.Header.Set("Content-Type", contentType)
	r.Header["User-Agent"] = nil // fewer bytes on the link
	response, err := s.client.Do(r)
	if err != nil {
		return nil, link.Failure(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != contentType {
		return nil, &request.Failure{Reason: request.Invalid, Detail: "no far proxy listens at the peer's address: it answered " + response.Status}
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, int64(s.limit)+1))
	switch {
	case err != nil:
		return nil, link.Failure(err)
	case len(answer) > s.limit:
		return nil, &request.Failure{Reason: request.Invalid, Detail: "the far proxy's answer is larger than the limit"}
	}
	return answer, nil
}

// Close implements link.Sender.
func (s *sender) Close() { s.client.CloseIdleConnections() }

// Listen is part of a link.Protocol.
func Listen(ctx context.Context, setup link.Setup, handle link.Handler) error {
	// The near proxy's keep-alive serves both ends. This one, much later, finds connections that a cut left behind.
	listening := net.ListenConfig{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 2 * setup.Silence(), Interval: setup.Silence() / 6, Count: 3},
		Control: silence(setup.Silence())} // accepted connections inherit it
	listener, err := listening.Listen(ctx, "tcp", setup.Config.Far.Listen)
	if err != nil {
		return fmt.Errorf("far.listen: %w", httpreq.ListenError(setup.Config.Far.Listen, err))
	}
	server := &http.Server{Handler: serve(setup, handle), ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	context.AfterFunc(ctx, func() { server.Close() })
	go func() {
		if err := server.Serve(netutil.LimitListener(listener, maxConnections)); !errors.Is(err, http.ErrServerClosed) {
			setup.Warn("the far proxy's port fails: " + link.Failure(err).Error())
		}
	}()
	return nil
}

func serve(setup link.Setup, handle link.Handler) http.HandlerFunc {
	limit := setup.FrameLimit()
	// A peer that was cut off may leave requests behind until their silence is noticed: there is room for as many again.
	room := make(chan struct{}, 4*setup.Config.Limits.Concurrent)
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != contentType {
			http.Error(w, "Here a far proxy listens for its near proxy. HTTP clients want the near proxy's address.", http.StatusMethodNotAllowed)
			return
		}
		room <- struct{}{}
		defer func() { <-room }()
		frame, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(limit)))
		if err != nil {
			http.Error(w, "The frame is not whole, or too large.", http.StatusBadRequest)
			return
		}
		answer := handle(r.Context(), frame)
		if answer == nil {
			panic(http.ErrAbortHandler) // closes the connection
		}
		w.Header().Set("Content-Type", contentType)
		w.Header()["Date"] = nil
		_, _ = w.Write(answer) // the near proxy asks again for what it did not get
	}
}
