package client

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

// method is a frame of channel 0 with a method (AMQP 0-9-1, 2.3.5).
func method(class, number uint16, arguments string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{1, 0, 0}, uint32(4+len(arguments)))
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, class), number)
	return append(append(b, arguments...), 0xCE)
}

// serveSlowly is a broker with a heartbeat of three seconds, which sends one of its own, and then a frame byte by byte.
func serveSlowly(conn net.Conn, pause time.Duration, frame []byte) error {
	if _, err := io.ReadFull(conn, make([]byte, len("AMQP\x00\x00\x09\x01"))); err != nil {
		return err
	}
	skip := func() error {
		head := make([]byte, 7)
		if _, err := io.ReadFull(conn, head); err != nil {
			return err
		}
		_, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(head[3:]))+1)
		return err
	}
	const start, tune, opened = "\x00\x09\x00\x00\x00\x00\x00\x00\x00\x05PLAIN\x00\x00\x00\x05en_US", "\x00\x00\x00\x02\x00\x00\x00\x03", "\x00"
	for _, step := range []func() error{
		func() error { _, err := conn.Write(method(10, 10, start)); return err }, skip,
		func() error { _, err := conn.Write(method(10, 30, tune)); return err }, skip, skip,
		func() error { _, err := conn.Write(method(10, 41, opened)); return err },
	} {
		if err := step(); err != nil {
			return err
		}
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
			err = serveSlowly(conn, 100*time.Millisecond, method(10, 60, "\x28"+strings.Repeat("x", 40)))
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
