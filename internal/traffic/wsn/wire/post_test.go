package wire

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/soap"
	"vignette.dev/vignette/internal/testport"
)

// slowPeer reads a request and writes its response in pieces, and lets each wait for pause.
func slowPeer(t *testing.T, requestBytes, pieces int, pause time.Duration) (address string) {
	t.Helper()
	listener := testport.Listen(t)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		t.Cleanup(func() { conn.Close() })
		for range pieces {
			time.Sleep(pause)
			if _, err := io.CopyN(io.Discard, conn, int64(requestBytes/pieces)); err != nil {
				return
			}
		}
		go func() { _, _ = io.Copy(io.Discard, conn) }() // the header's bytes beside those of the message
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", pieces)
		for range pieces {
			time.Sleep(pause)
			fmt.Fprint(conn, "x")
		}
	}()
	return listener.Addr().String()
}

func TestAMessageOrAResponseTakesItsTimeWhileItMoves(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	for name, c := range map[string]struct {
		pause time.Duration
		want  string
	}{
		"a slow link":   {timeout / 8, ""},
		"a silent peer": {30 * timeout, "no response within 2s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			message := []byte(strings.Repeat("x", 32<<20)) // more than the kernels' buffers
			address := slowPeer(t, len(message), 20, c.pause)
			plain, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			conn := NewConn(plain, timeout)
			defer conn.Close()
			begun := time.Now()
			response, err := conn.Post(t.Context(), Request{Host: address, Path: "/", SOAP: soap.SOAP11, Message: message})
			if took := time.Since(begun); took < timeout {
				t.Errorf("it ends after %v; want more than %v", took, timeout)
			}
			switch {
			case c.want == "" && (err != nil || len(response.Body) != 20):
				t.Errorf("%v, a response of %d bytes; want 20", err, len(response.Body))
			case c.want != "" && (err == nil || err.Error() != c.want):
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}
