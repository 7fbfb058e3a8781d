package zmq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// open skips the test if the library is missing.
func open(t testing.TB) *Context {
	t.Helper()
	c, err := Open()
	if err != nil {
		t.Skipf("libzmq is not installed (Debian package libzmq5): %v", err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func socket(t testing.TB, c *Context, kind Type, options map[Option]int) *Socket {
	t.Helper()
	s, err := c.Socket(kind)
	if err == nil {
		err = errors.Join(s.Set(Linger, 0), s.SetAll(options))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestDebiansLibraryHasPGM(t *testing.T) {
	open(t)
	for capability, want := range map[string]bool{"pgm": true, "telepathy": false} {
		if has, err := Has(capability); err != nil || has != want {
			t.Errorf("has %s: %t, %v; want %t", capability, has, err, want)
		}
	}
}

func TestMessagesArriveFrameByFrameAndAWaitForThemEndsWithItsContext(t *testing.T) {
	c := open(t)
	server, client := socket(t, c, XPUB, nil), socket(t, c, SUB, nil)
	if err := errors.Join(server.Bind("inproc://here"), client.Connect("inproc://here"), client.Subscribe("a")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := server.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if frames, err := server.Receive(); err != nil || string(frames[0]) != "\x01a" {
		t.Fatalf("subscription %q, %v; want 01 a", frames, err)
	}
	large := strings.Repeat("x", 1<<20)
	for _, message := range [][2]string{{"b", "not wanted"}, {"a/1", ""}, {"a/2", large}} {
		if err := server.Send([]byte(message[0]), []byte(message[1])); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range [][2]string{{"a/1", ""}, {"a/2", large}} {
		if err := client.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		frames, err := client.Receive()
		if err != nil || len(frames) != 2 || string(frames[0]) != want[0] || string(frames[1]) != want[1] {
			t.Fatalf("received %d frames, %v; want %s", len(frames), err, want[0])
		}
	}
	if _, err := client.Receive(); !Again(err) || !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("nothing to receive: %v; want EAGAIN", err)
	}
	short, end := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer end()
	if err := client.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("wait: %v; want the end of its context", err)
	}
}

func TestAFullQueueRefusesMessagesWhereNothingMayBeDropped(t *testing.T) {
	c := open(t)
	server, client := socket(t, c, XPUB, map[Option]int{SendHighWater: 2, NoDrop: 1}), socket(t, c, SUB, map[Option]int{ReceiveHighWater: 2})
	if err := errors.Join(server.Bind("inproc://here"), client.Connect("inproc://here"), client.Subscribe("")); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Receive(); err != nil {
		t.Fatal(err)
	}
	sent := 0
	for ; sent < 100; sent++ {
		if err := server.Send([]byte("topic"), []byte("content")); err != nil {
			if !Again(err) {
				t.Fatal(err)
			}
			break
		}
	}
	if sent < 2 || sent == 100 {
		t.Errorf("%d messages went into a queue of 2 and 2", sent)
	}
}

func TestErrorsNameTheCallAndItsObject(t *testing.T) {
	c := open(t)
	s := socket(t, c, PUB, nil)
	for want, err := range map[string]error{
		"zmq_bind tcp://nowhere:1x: ":           s.Bind("tcp://nowhere:1x"),
		"zmq_connect smoke://signal: Protocol":  s.Connect("smoke://signal"),
		"zmq_setsockopt of option 17 to -7: In": s.Set(Linger, -7),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v; want an error that begins with %q", err, want)
		}
	}
}

func TestAMonitorTellsOfConnections(t *testing.T) {
	c := open(t)
	client := socket(t, c, SUB, map[Option]int{ReconnectInterval: -1})
	monitor, err := client.Monitor()
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Connect("tcp://127.0.0.1:9"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := monitor.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	event, endpoint, err := monitor.ReceiveEvent()
	if fmt.Sprintf("%v %s %v", event, endpoint, err) != "no connection tcp://127.0.0.1:9 <nil>" {
		t.Errorf("%v %s %v; want no connection to port 9", event, endpoint, err)
	}
}
