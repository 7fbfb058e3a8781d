package client

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"vignette.dev/vignette/internal/traffic/amqp/amqptest"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

// serveSlowly is a broker with a heartbeat of three seconds, which sends one of its own, and then a frame byte by byte.
func serveSlowly(conn net.Conn, pause time.Duration, frame []byte) error {
	if _, err := amqptest.Login(conn, 3); err != nil {
		return err
	}
	go func() { _, _ = io.Copy(io.Discard, conn) }() // its heartbeats
	time.Sleep(pause)                                // the library waits for the first frame only later
	if _, err := conn.Write([]byte("\x08\x00\x00\x00\x00\x00\x00\xCE")); err != nil {
		return err
	}
	for i := range frame {
		if _, err := conn.Write(frame[i : i+1]); err != nil {
			return err
		}
		time.Sleep(pause)
	}
	return nil
}

// TestAFrameThatTakesLongKeepsTheConnection: a frame of 128 KiB takes minutes on a slow link.
func TestAFrameThatTakesLongKeepsTheConnection(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	served := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			defer conn.Close()
			// The frame takes longer than the library waits for one.
			err = serveSlowly(conn, 100*time.Millisecond, amqptest.Method(10, 60, "\x28"+strings.Repeat("x", 40)))
		}
		served <- err
	}()
	dialer, err := transport.NewDialer(transport.Setup{Config: trafficconfig.Config{Broker: l.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	socket, err := dialer.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	connection, err := Login(socket, dialer, 3*time.Second, nil)
	if err != nil {
		t.Fatal(errors.Join(err, <-served))
	}
	defer connection.Close()
	blocked := connection.NotifyBlocked(make(chan amqp.Blocking, 1))
	ended := connection.NotifyClose(make(chan *amqp.Error, 1))
	select {
	case b := <-blocked:
		if len(b.Reason) != 40 {
			t.Errorf("a reason of %d bytes; want 40", len(b.Reason))
		}
	case err := <-ended:
		t.Errorf("the connection ended in the middle of a frame: %v", err)
	}
}
