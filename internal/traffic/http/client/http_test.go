package client

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/testtool"
	limits "vignette.dev/vignette/internal/traffic/http"
	"vignette.dev/vignette/internal/traffic/request"
	"vignette.dev/vignette/internal/traffic/request/requesttest"
)

// receipt answers each request without content.
func receipt(time.Time, request.Request) request.Response { return request.Response{Status: 204} }

func open(t *testing.T, s request.Setup) request.Peer {
	t.Helper()
	return requesttest.Start(t, Open, s)
}

func TestARequestAndItsResponseArriveByteForByte(t *testing.T) {
	bytesOfAll := make([]byte, 300<<10)
	for i := range bytesOfAll {
		bytesOfAll[i] = byte(i * i >> 8)
	}
	at := requesttest.Address(t)
	got := make(chan request.Request, 1)
	answer := request.Response{Status: 200, Body: slices.Concat(bytesOfAll, []byte("end")), ContentType: "application/cbor", ContentEncoding: "gzip"}
	open(t, request.Setup{Listen: at, Handler: func(_ time.Time, r request.Request) request.Response {
		got <- r
		return answer
	}})
	client := open(t, request.Setup{})
	for name, want := range map[string]request.Request{
		"POST":         {Path: "/messages", Body: bytesOfAll, ContentType: "application/json", ContentEncoding: "gzip"},
		"GET":          {Path: "/a%20b/c?x=1&y=%2F"},
		"without type": {Path: "/", Body: []byte("x")},
	} {
		t.Run(name, func(t *testing.T) {
			response, _, err := client.Do(t.Context(), at, want, request.Events{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, <-got); diff != "" {
				t.Errorf("request: %s", diff)
			}
			if diff := cmp.Diff(answer, response); diff != "" {
				t.Errorf("response: %s", diff)
			}
		})
	}
}

func TestAResponseWithoutContentIsAReceipt(t *testing.T) {
	at := requesttest.Address(t)
	open(t, request.Setup{Listen: at, Handler: func(time.Time, request.Request) request.Response { return request.Response{} }})
	response, _, err := open(t, request.Setup{}).Do(t.Context(), at, request.Request{Path: "/", Body: []byte("x")}, request.Events{})
	if err != nil || response.Status != 204 || len(response.Body) > 0 {
		t.Errorf("%+v, %v; want 204 without content", response, err)
	}
}

// delayed passes connections on to a server, with a delay each way.
func delayed(t *testing.T, server string, delay time.Duration) string {
	t.Helper()
	listener, err := net.Listen("tcp", requesttest.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	pass := func(to, from net.Conn) {
		defer to.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			due := time.Now().Add(delay)
			if err != nil {
				return
			}
			time.Sleep(time.Until(due))
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			onward, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				return
			}
			go pass(onward, client)
			go pass(client, onward)
		}
	}()
	return listener.Addr().String()
}

func TestTheResponseTimeIsTheSumOfTheDelays(t *testing.T) {
	const (
		oneWay = 40 * time.Millisecond
		work   = 20 * time.Millisecond
		slack  = 15 * time.Millisecond
	)
	at := requesttest.Address(t)
	var mu sync.Mutex
	var received time.Time
	open(t, request.Setup{Listen: at, Handler: func(at time.Time, _ request.Request) request.Response {
		mu.Lock()
		received = at
		mu.Unlock()
		time.Sleep(work)
		return request.Response{}
	}})
	through := delayed(t, at, oneWay)
	for name, options := range map[string]request.HTTPOptions{"persistent": {}, "fresh": {FreshConnections: true}} {
		t.Run(name, func(t *testing.T) {
			client := open(t, request.Setup{HTTP: options})
			bestForth, best := time.Hour, time.Hour
			for i := 0; i < 5 || i < 50 && (bestForth > oneWay+slack || best > 2*oneWay+work+slack); i++ {
				var e requesttest.Events
				triggered := time.Now()
				_, arrived, err := client.Do(t.Context(), through, request.Request{Path: "/", Body: []byte("x")}, e.Record())
				if err != nil || len(e.Sent) != 1 || len(e.Retransmitted) > 0 {
					t.Fatalf("%v, %+v", err, e)
				}
				mu.Lock()
				forth, whole := received.Sub(e.Sent[0]), arrived.Sub(e.Sent[0])
				mu.Unlock()
				if e.Sent[0].Before(triggered) || forth < oneWay || whole < 2*oneWay+work {
					t.Errorf("request %d: %v to the server, %v in all; want %v and %v at least", i, forth, whole, oneWay, 2*oneWay+work)
				}
				bestForth, best = min(bestForth, forth), min(best, whole)
			}
			// A busy machine adds to most.
			if bestForth > oneWay+slack || best > 2*oneWay+work+slack {
				t.Errorf("the fastest: %v to the server, %v in all; want %v and %v", bestForth, best, oneWay, 2*oneWay+work)
			}
		})
	}
}

func TestSentIsAfterTheConnectionIsSetUp(t *testing.T) {
	const setUp = 100 * time.Millisecond
	at := requesttest.Address(t)
	open(t, request.Setup{Listen: at})
	client := open(t, request.Setup{})
	dial := client.(*peer).transport.DialContext
	client.(*peer).transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		time.Sleep(setUp)
		return dial(ctx, network, address)
	}
	var e requesttest.Events
	triggered := time.Now()
	if _, _, err := client.Do(t.Context(), at, request.Request{Path: "/", Body: []byte("x")}, e.Record()); err != nil {
		t.Fatal(err)
	}
	if waited := e.Sent[0].Sub(triggered); waited < setUp {
		t.Errorf("sent %v after it was triggered; want the %v of the connection's set-up at least", waited, setUp)
	}
}

// accepted counts the connections that a server gets, each of which a function serves.
func accepted(t *testing.T, serve func(number int, c net.Conn)) (string, *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", requesttest.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	var count atomic.Int64
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			number := int(count.Add(1))
			go func() {
				defer c.Close()
				serve(number, c)
			}()
		}
	}()
	return listener.Addr().String(), &count
}

// readRequest reads one whole request.
func readRequest(r *bufio.Reader) (*http.Request, error) {
	got, err := http.ReadRequest(r)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, got.Body)
	return got, err
}

var eventually = testtool.Eventually

const noContent = "HTTP/1.1 204 No Content\r\n\r\n"

func TestConnectionsAreKeptUnlessFreshOnesAreAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		options request.HTTPOptions
		want    int64
	}{"persistent": {request.HTTPOptions{}, 1}, "fresh": {request.HTTPOptions{FreshConnections: true}, 5}} {
		t.Run(name, func(t *testing.T) {
			at, count := accepted(t, func(_ int, c net.Conn) {
				for r := bufio.NewReader(c); ; {
					if _, err := readRequest(r); err != nil {
						return
					}
					_, _ = io.WriteString(c, noContent)
				}
			})
			client := open(t, request.Setup{HTTP: c.options})
			for range 5 {
				if _, _, err := client.Do(t.Context(), at, request.Request{Path: "/", Body: []byte("x")}, request.Events{}); err != nil {
					t.Fatal(err)
				}
			}
			if got := count.Load(); got != c.want {
				t.Errorf("%d connections for 5 requests; want %d", got, c.want)
			}
		})
	}
}

func TestAsManyConnectionsAreKeptAsWereUsedAtOnce(t *testing.T) {
	const atOnce = 10
	var mu sync.Mutex
	all, waiting := make(chan struct{}), 0
	at, count := accepted(t, func(_ int, c net.Conn) {
		for r := bufio.NewReader(c); ; {
			if _, err := readRequest(r); err != nil {
				return
			}
			mu.Lock()
			here := all
			if waiting++; waiting == atOnce {
				close(all)
				all, waiting = make(chan struct{}), 0
			}
			mu.Unlock()
			<-here
			_, _ = io.WriteString(c, noContent)
		}
	})
	client := open(t, request.Setup{})
	var kept atomic.Int64
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{PutIdleConn: func(error) { kept.Add(1) }})
	for round := range 3 {
		var group sync.WaitGroup
		for range atOnce {
			group.Go(func() {
				if _, _, err := client.Do(ctx, at, request.Request{Path: "/", Body: []byte("x")}, request.Events{}); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		eventually(t, "the transport has the connections back", func() bool { return kept.Load() == int64(atOnce*(round+1)) })
	}
	if got := count.Load(); got != atOnce {
		t.Errorf("%d connections; want %d", got, atOnce)
	}
}

// TestWhatTheTransportRepeatsIsReported: net/http repeats a GET whose kept connection ends after it was written. A POST it never writes twice.
func TestWhatTheTransportRepeatsIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		body        []byte
		again, sent int
		reason      request.Reason
		requests    int64
	}{
		"GET is repeated":      {nil, 1, 1, "", 3},
		"POST is not repeated": {[]byte("x"), 0, 1, request.Reset, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			at, _ := accepted(t, func(number int, c net.Conn) {
				r := bufio.NewReader(c)
				for i := 1; ; i++ {
					if _, err := readRequest(r); err != nil {
						return
					}
					requests.Add(1)
					if number == 1 && i == 2 {
						return // the server ends while a request is on the way
					}
					_, _ = io.WriteString(c, noContent)
				}
			})
			client := open(t, request.Setup{})
			if _, _, err := client.Do(t.Context(), at, request.Request{Path: "/", Body: []byte("x")}, request.Events{}); err != nil {
				t.Fatal(err)
			}
			var e requesttest.Events
			_, _, err := client.Do(t.Context(), at, request.Request{Path: "/", Body: c.body}, e.Record())
			if request.ReasonOf(err) != c.reason || len(e.Sent) != c.sent || len(e.Retransmitted) != c.again || requests.Load() != c.requests {
				t.Errorf("%v, sent %d times, repeated %d times, the server got %d requests; want %q, %d, %d, %d",
					err, len(e.Sent), len(e.Retransmitted), requests.Load(), c.reason, c.sent, c.again, c.requests)
			}
		})
	}
}

// tellsClose tells when the connection is closed at this end.
type tellsClose struct {
	net.Conn
	closed chan<- struct{}
}

func (c tellsClose) Close() error {
	c.closed <- struct{}{}
	return c.Conn.Close()
}

func TestARequestTakesAnotherConnectionIfTheKeptOneWasClosed(t *testing.T) {
	closed := make(chan struct{}, 10)
	at, count := accepted(t, func(_ int, c net.Conn) {
		if _, err := readRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.WriteString(c, noContent)
		}
		c.Close()
		closed <- struct{}{}
	})
	client := open(t, request.Setup{})
	ended := make(chan struct{}, 100)
	dial := client.(*peer).transport.DialContext
	client.(*peer).transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if c, ok := c.(*conn); ok {
			c.Conn = tellsClose{c.Conn, ended}
		}
		return c, err
	}
	for range 5 {
		var e requesttest.Events
		if _, _, err := client.Do(t.Context(), at, request.Request{Path: "/", Body: []byte("x")}, e.Record()); err != nil || len(e.Sent) != 1 || len(e.Retransmitted) > 0 {
			t.Fatalf("%v, %+v", err, e)
		}
		<-closed
		<-ended // the client has noticed
	}
	if got := count.Load(); got != 5 {
		t.Errorf("%d connections; want 5", got)
	}
}

func TestAProxyGetsTheWholeURL(t *testing.T) {
	got := make(chan *http.Request, 1)
	proxy, _ := accepted(t, func(_ int, c net.Conn) {
		if r, err := readRequest(bufio.NewReader(c)); err == nil {
			got <- r
			_, _ = io.WriteString(c, "HTTP/1.1 504 Gateway Timeout\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nno link: 5 s\n")
		}
	})
	response, _, err := open(t, request.Setup{HTTP: request.HTTPOptions{Proxy: proxy}}).
		Do(t.Context(), "198.18.0.7:80", request.Request{Path: "/a?b", Body: []byte("x")}, request.Events{})
	if r := <-got; r.RequestURI != "http://198.18.0.7:80/a?b" || r.Host != "198.18.0.7:80" {
		t.Errorf("the proxy got %q for host %q", r.RequestURI, r.Host)
	}
	if want := "rejected: 504 Gateway Timeout: no link: 5 s"; err == nil || err.Error() != want || response.Status != 504 {
		t.Errorf("%v, status %d; want %q and 504", err, response.Status, want)
	}
}

func TestNoProxyOfTheEnvironmentIsUsed(t *testing.T) {
	if newTransport(request.HTTPOptions{}, time.Second).Proxy != nil {
		t.Error("a transport without the option has a proxy")
	}
}

func TestAFailedRequestTellsItsReason(t *testing.T) {
	reset := func(c net.Conn) {
		_ = c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
	answer := func(text string) func(int, net.Conn) {
		return func(_ int, c net.Conn) {
			if _, err := readRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.WriteString(c, text)
			}
		}
	}
	for name, c := range map[string]struct {
		serve func(int, net.Conn)
		want  request.Reason
		sent  int
	}{
		"reset": {func(_ int, c net.Conn) {
			_, _ = readRequest(bufio.NewReader(c))
			reset(c)
		}, request.Reset, 1},
		"closed":            {answer(""), request.Reset, 1},
		"truncated":         {answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"), request.Reset, 1},
		"rejected":          {answer("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), request.Rejected, 1},
		"redirected":        {answer("HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"), request.Rejected, 1},
		"no HTTP":           {answer("SSH-2.0-OpenSSH_9.2\r\n\r\n"), request.Invalid, 1},
		"too long a header": {answer("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*maxHeaderBytes) + "\r\n\r\n"), request.Invalid, 1},
		"too long a body":   {answer(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", limits.MaxBytes+1, strings.Repeat("x", limits.MaxBytes+1))), request.Invalid, 1},
		"silent": {func(_ int, c net.Conn) {
			_, _ = io.Copy(io.Discard, c)
		}, request.Timeout, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, _ := accepted(t, c.serve)
			timeout := 20.0
			if c.want == request.Timeout {
				timeout = 3 // long enough to send the request on a busy machine
			}
			var e requesttest.Events
			_, _, err := open(t, request.Setup{TimeoutSeconds: timeout}).Do(t.Context(), at, request.Request{Path: "/", Body: []byte("x")}, e.Record())
			if request.ReasonOf(err) != c.want || len(e.Sent) != c.sent || len(e.Retransmitted) > 0 {
				t.Errorf("%v, sent %d times; want %s, %d", err, len(e.Sent), c.want, c.sent)
			}
		})
	}
}

func TestARequestFailsWithoutBeingSent(t *testing.T) {
	nobody := requesttest.Address(t)
	for name, c := range map[string]struct {
		to   string
		r    request.Request
		want string
	}{
		"refused":   {nobody, request.Request{Path: "/"}, "refused: nobody serves there"},
		"no port":   {"127.0.0.1", request.Request{Path: "/"}, `invalid: addressee "127.0.0.1": want host:port`},
		"no path":   {nobody, request.Request{Path: "a"}, `invalid: path "a": want one that begins with /, escaped as in URLs`},
		"too large": {nobody, request.Request{Path: "/", Body: make([]byte, limits.MaxBytes+1)}, "invalid: a body of 33554433 bytes: want at most 33554432"},
	} {
		t.Run(name, func(t *testing.T) {
			var e requesttest.Events
			_, _, err := open(t, request.Setup{}).Do(t.Context(), c.to, c.r, e.Record())
			if err == nil || err.Error() != c.want || len(e.Sent) > 0 {
				t.Errorf("%v, sent %d times; want %q and never", err, len(e.Sent), c.want)
			}
		})
	}
}

func TestClosingCancelsRequests(t *testing.T) {
	at, _ := accepted(t, func(_ int, c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	for name, cancel := range map[string]func(p request.Peer, cancel func()){
		"of the peer":    func(p request.Peer, _ func()) { p.Close(context.Background()) },
		"of the context": func(_ request.Peer, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t, request.Setup{})
			ctx, end := context.WithCancel(t.Context())
			defer end()
			sent := request.Events{Sent: func(time.Time) { go cancel(p, end) }}
			if _, _, err := p.Do(ctx, at, request.Request{Path: "/", Body: []byte("x")}, sent); request.ReasonOf(err) != request.Cancelled {
				t.Errorf("%v; want cancelled", err)
			}
		})
	}
	p := open(t, request.Setup{})
	p.Close(t.Context())
	if _, _, err := p.Do(t.Context(), at, request.Request{Path: "/"}, request.Events{}); request.ReasonOf(err) != request.Cancelled {
		t.Errorf("after closing: %v; want cancelled", err)
	}
}

func TestAWrongSetupIsRefused(t *testing.T) {
	used := requesttest.Address(t)
	open(t, request.Setup{Listen: used})
	for want, s := range map[string]request.Setup{
		fmt.Sprintf("listen at %q: another program uses the port", used):        {Listen: used, TimeoutSeconds: 1},
		`listen at "nowhere": want host:port with an address of this node`:      {Listen: "nowhere", TimeoutSeconds: 1},
		`listen at "192.0.2.1:80": want host:port with an address of this node`: {Listen: "192.0.2.1:80", TimeoutSeconds: 1},
		`proxy "hq": want host:port`:                                            {HTTP: request.HTTPOptions{Proxy: "hq"}, TimeoutSeconds: 1},
		"timeout 0 s: want more than 0":                                         {},
	} {
		if _, err := Open(s); err == nil || err.Error() != want {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// talk writes to a server, and returns all of its answer until the server or the deadline ends it.
func talk(t *testing.T, at string, pieces ...string) string {
	t.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	go func() {
		for _, piece := range pieces {
			if _, err := io.WriteString(c, piece); err != nil {
				return
			}
		}
	}()
	answer, _ := io.ReadAll(c)
	return string(answer)
}

func TestTheServerBoundsWhatItReads(t *testing.T) {
	at := requesttest.Address(t)
	open(t, request.Setup{Listen: at})
	for want, text := range map[string][]string{
		"HTTP/1.1 413 ": {fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", limits.MaxBytes+1), strings.Repeat("x", limits.MaxBytes+1)},
		"HTTP/1.1 431 ": {"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 2*maxHeaderBytes) + "\r\n\r\n"},
		"HTTP/1.1 405 ": {"DELETE / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"},
		"HTTP/1.1 400 ": {"GET / HTTP/1.1\r\n\r\n"},
	} {
		if answer := talk(t, at, text...); !strings.HasPrefix(answer, want) {
			t.Errorf("answer %.60q; want %s", answer, want)
		}
	}
}

func TestAClientThatIsTooSlowLosesItsConnection(t *testing.T) {
	at := requesttest.Address(t)
	const longest = 200 * time.Millisecond
	s, err := serve(request.Setup{Listen: at, Handler: receipt}, longest)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close(t.Context())
	for name, beginning := range map[string]string{"header": "POST / HTTP/1.1\r\n", "body": "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx"} {
		begin := time.Now()
		if answer := talk(t, at, beginning); strings.Contains(answer, " 204 ") {
			t.Errorf("%s: answered %q", name, answer)
		}
		if took := time.Since(begin); took < longest || took > 5*time.Second {
			t.Errorf("%s: the connection ended after %v; want about %v", name, took, longest)
		}
	}
}

func TestTheConnectionThatWasIdleLongestMakesRoom(t *testing.T) {
	at := requesttest.Address(t)
	p := open(t, request.Setup{Listen: at})
	connections := p.(*peer).server.connections
	connections.mu.Lock()
	connections.most = 2
	connections.mu.Unlock()
	var clients [3]request.Peer
	for i := range clients {
		clients[i] = open(t, request.Setup{})
		if _, _, err := clients[i].Do(t.Context(), at, request.Request{Path: "/", Body: []byte("x")}, request.Events{}); err != nil {
			t.Fatal(err)
		}
		want := min(i+1, 2)
		eventually(t, fmt.Sprintf("%d idle connections and no other", want), func() bool {
			connections.mu.Lock()
			defer connections.mu.Unlock()
			return len(connections.state) == want && connections.idle.Len() == want
		})
	}
}

func TestWithoutAnIdleConnectionTheNewOneIsClosed(t *testing.T) {
	at := requesttest.Address(t)
	var warnings []string
	busy, release := make(chan struct{}, 10), make(chan struct{})
	p := open(t, request.Setup{Listen: at, Warn: func(text string) { warnings = append(warnings, text) }, Handler: func(time.Time, request.Request) request.Response {
		busy <- struct{}{}
		<-release
		return request.Response{}
	}})
	connections := p.(*peer).server.connections
	connections.mu.Lock()
	connections.most = 1
	connections.mu.Unlock()
	client, done := open(t, request.Setup{}), make(chan error, 1)
	go func() {
		_, _, err := client.Do(t.Context(), at, request.Request{Path: "/", Body: []byte("x")}, request.Events{})
		done <- err
	}()
	<-busy
	if _, _, err := open(t, request.Setup{}).Do(t.Context(), at, request.Request{Path: "/", Body: []byte("x")}, request.Events{}); request.ReasonOf(err) != request.Reset {
		t.Errorf("%v; want reset", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Errorf("the first request: %v", err)
	}
	connections.mu.Lock()
	defer connections.mu.Unlock()
	if want := []string{"1 connections are in use: further ones are closed"}; !slices.Equal(warnings, want) {
		t.Errorf("warnings %q; want %q", warnings, want)
	}
}

func TestManyRequestsAtOnceAreEachSentOnce(t *testing.T) {
	at := requesttest.Address(t)
	var mu sync.Mutex
	got := map[string]int{}
	open(t, request.Setup{Listen: at, Handler: func(_ time.Time, r request.Request) request.Response {
		mu.Lock()
		defer mu.Unlock()
		got[string(r.Body)]++
		return request.Response{Body: bytes.Clone(r.Body)}
	}})
	client := open(t, request.Setup{})
	var group sync.WaitGroup
	for i := range 500 {
		group.Go(func() {
			var e requesttest.Events
			id := fmt.Sprint(i)
			response, _, err := client.Do(t.Context(), at, request.Request{Path: "/", Body: []byte(id)}, e.Record())
			if err != nil || string(response.Body) != id || len(e.Sent) != 1 || len(e.Retransmitted) != 0 {
				t.Errorf("request %d: %v, %q, %+v", i, err, response.Body, e)
			}
		})
	}
	group.Wait()
	mu.Lock()
	defer mu.Unlock()
	for id, count := range got {
		if count != 1 {
			t.Errorf("request %s came %d times", id, count)
		}
	}
}
