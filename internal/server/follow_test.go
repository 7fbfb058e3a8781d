package server

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"vignette.dev/vignette/internal/runapi/client"
)

// pipes are connections in memory, whose ends share the clock of a test.
type pipes struct {
	made chan net.Conn
	done chan struct{}
}

// newPipes are those of a server.
func newPipes(server *http.Server) *pipes {
	p := &pipes{make(chan net.Conn), make(chan struct{})}
	go func() { _ = server.Serve(p) }()
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case one := <-p.made:
		return one, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	p.made <- there
	return here, nil
}

// The API server asks by HTTP/2, which ends a request at its deadline also when nothing is written.
func TestALogThatIsQuietForLongIsFollowedOnOverHTTP2(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{Dir: dir, Authenticator: everybody, Policy: Policy{AdminUsers: []string{"anna"}}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		one, err := s.runs.ensure(keyOf(examplePlan()))
		if err != nil {
			t.Fatal(err)
		}
		http2 := new(http.Protocols)
		http2.SetUnencryptedHTTP2(true)
		serving := &http.Server{Handler: s, Protocols: http2}
		listener := newPipes(serving)
		defer serving.Close()
		transport := &http.Transport{DialContext: listener.dial, Protocols: http2}
		defer transport.CloseIdleConnections()
		admin := client.New("http://archive", &http.Client{Transport: transport}, func() (string, error) { return "admin", nil })

		const log = "logs/nor/bft/stdout-1.log"
		body, err := admin.Follow(t.Context(), runUID, log, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer body.Close()
		for i, text := range []string{"one\n", "two\n", "three\n"} {
			if _, err := one.files.Append(log, int64(4*i), []byte(text)); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, len(text))
			if _, err := io.ReadFull(body, got); err != nil || string(got) != text {
				t.Fatalf("read %q, %v; want %q", got, err, text)
			}
			time.Sleep(2 * pieceTimeout)
		}
	})
}

func TestAFollowerTakesNoMemoryWhileOtherLogsGrow(t *testing.T) {
	l := newLab(t)
	l.plan()
	l.log("nor", "bft", "stdout-1.log", "one\n")
	answer := httptest.NewRecorder()
	f := &follower{w: answer, control: http.NewResponseController(answer), run: l.server.runs.get(runUID), path: "logs/nor/bft/stdout-1.log"}
	defer f.close()
	copies := func(n int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range n {
			if err := f.copy(); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	copies(1)
	if used := copies(100); used > pieceBytes {
		t.Errorf("100 looks at a log that does not grow took %d bytes; want next to none", used)
	}
	if answer.Body.String() != "one\n" {
		t.Errorf("sent %q; want the log once", answer.Body)
	}
}

func TestAReaderThatStallsIsGivenUp(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{Dir: dir, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		serving := &http.Server{Handler: s}
		listener := newPipes(serving)
		defer serving.Close()
		for what, path := range map[string]string{"a long answer": "/v1/openapi.json", "a short one": "/v1/runs", "that of no route": "/"} {
			connection, err := listener.dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			if _, err := io.WriteString(connection, "GET "+path+" HTTP/1.1\r\nHost: archive\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * pieceTimeout)
			if text, err := io.ReadAll(connection); err != nil || len(text) > 0 {
				t.Errorf("%s: after a minute the server sends %d bytes more, %v; want the connection ended", what, len(text), err)
			}
		}
	})
}
