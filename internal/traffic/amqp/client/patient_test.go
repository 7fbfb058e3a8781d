package client

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"vignette.dev/vignette/internal/testcert"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/traffic/amqp/amqptest"
	"vignette.dev/vignette/internal/traffic/protocol"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

// slowLink sends byte by byte once it has a pause.
type slowLink struct {
	net.Conn
	pause atomic.Int64
}

func (l *slowLink) Write(b []byte) (int, error) {
	pause := time.Duration(l.pause.Load())
	if pause == 0 {
		return l.Conn.Write(b)
	}
	for i := range b {
		if _, err := l.Conn.Write(b[i : i+1]); err != nil {
			return i, err
		}
		time.Sleep(pause)
	}
	return len(b), nil
}

// serveSlowly is a broker with a heartbeat of three seconds, which sends one of its own, and then a frame.
func serveSlowly(conn net.Conn, link *slowLink, frame []byte) error {
	if _, err := amqptest.Login(conn, 3); err != nil {
		return err
	}
	go func() { _, _ = io.Copy(io.Discard, conn) }() // its heartbeats
	const pause = 100 * time.Millisecond
	time.Sleep(pause) // the library waits for the first frame only later
	link.pause.Store(int64(pause))
	if _, err := conn.Write([]byte("\x08\x00\x00\x00\x00\x00\x00\xCE")); err != nil {
		return err
	}
	_, err := conn.Write(frame)
	return err
}

// TestAFrameThatTakesLongKeepsTheConnection: a frame of 128 KiB takes minutes on a slow link, and a record of TLS may take one.
func TestAFrameThatTakesLongKeepsTheConnection(t *testing.T) {
	authority, err := testcert.New()
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := authority.Issue("broker", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, authority.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	serverTLS := &tls.Config{Certificates: []tls.Certificate{certificate}, SessionTicketsDisabled: true}
	for name, security := range map[string]*protocol.Security{"plain": nil, "TLS": {CAFile: ca}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := testport.Listen(t)
			served := make(chan error, 1)
			go func() {
				conn, err := l.Accept()
				if err == nil {
					defer conn.Close()
					link := &slowLink{Conn: conn}
					if conn = link; security != nil {
						conn = tls.Server(link, serverTLS)
					}
					// The frame takes longer than the library waits for one.
					err = serveSlowly(conn, link, amqptest.Method(10, 50, "\x01\x40\x28"+strings.Repeat("x", 40)+"\x00\x00\x00\x00"))
				}
				served <- err
			}()
			dialer, err := transport.NewDialer(transport.Setup{Config: trafficconfig.Config{Broker: l.Addr().String(), Security: security}})
			if err != nil {
				t.Fatal(err)
			}
			socket, err := Dial(t.Context(), dialer)
			if err != nil {
				t.Fatal(err)
			}
			connection, err := Login(socket, dialer, 3*time.Second, nil)
			if err != nil {
				t.Fatal(errors.Join(err, <-served))
			}
			defer connection.Close()
			if err := <-connection.NotifyClose(make(chan *amqp.Error, 1)); err == nil || len(err.Reason) != 40 {
				t.Errorf("the connection ended with %v; want the frame's reason of 40 bytes", err)
			}
		})
	}
}
