package radioqueue

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func serve(t *testing.T, address string, frames *atomic.Int64) *Server {
	t.Helper()
	listener, err := net.Listen("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	s := Serve(listener, func() Report {
		return Report{[]Network{{"vhf", 1}, {"wan", int(frames.Load())}}}
	})
	t.Cleanup(s.Close)
	return s
}

func address(t *testing.T) string { return fmt.Sprintf("@vignette-test/%d/%s", os.Getpid(), t.Name()) }

func TestAClientHearsOfTheLongestQueueAndOutlivesTheServer(t *testing.T) {
	t.Parallel()
	var frames atomic.Int64
	c := Client{Address: address(t)}
	defer c.Close()
	ask := func(want int) {
		t.Helper()
		frames.Store(int64(want))
		time.Sleep(2 * freshness)
		if r, err := c.Ask(time.Second); err != nil || r.Most() != max(want, 1) || r.Networks[0].Network != "vhf" {
			t.Errorf("%+v, %v; want %d frames at most", r, err, max(want, 1))
		}
	}
	const absent = "radio queue: radiod does not answer"
	if _, err := c.Ask(time.Second); err == nil || err.Error() != absent {
		t.Errorf("without a server: %v; want %q", err, absent)
	}
	s := serve(t, c.Address, &frames)
	ask(7)
	ask(0)
	s.Close()
	if _, err := c.Ask(time.Second); err == nil || err.Error() != absent {
		t.Errorf("after the server's end: %v; want %q", err, absent)
	}
	serve(t, c.Address, &frames)
	ask(9)
}

func TestQuestionsCostTheRadioLittleHoweverManyThereAre(t *testing.T) {
	t.Parallel()
	looks := 0
	listener, err := net.Listen("unix", address(t))
	if err != nil {
		t.Fatal(err)
	}
	s := Serve(listener, func() Report { looks++; return Report{[]Network{{"wan", 1}}} })
	c := Client{Address: address(t)}
	begin, asked := time.Now(), 0
	for ; time.Since(begin) < 200*time.Millisecond; asked++ {
		if _, err := c.Ask(time.Second); err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
	s.Close()
	if most := int(time.Since(begin)/freshness) + 1; looks > most || asked <= looks {
		t.Errorf("%d questions, %d looks; want %d looks at most", asked, looks, most)
	}
}

func TestANodeHasSoManyConnectionsAndNoLongQuestions(t *testing.T) {
	t.Parallel()
	var frames atomic.Int64
	serve(t, address(t), &frames)
	var open []net.Conn
	answered := func(question string) bool {
		conn, err := net.Dial("unix", address(t))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
		_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
		_, _ = conn.Write([]byte(question))
		n, _ := conn.Read(make([]byte, maxAnswer))
		return n > 0
	}
	if answered(strings.Repeat("x", 2*maxQuestion) + "\n") {
		t.Error("a long question was answered")
	}
	for i := range maxConnections {
		if !answered("?\n") {
			t.Fatalf("connection %d was not served", i)
		}
	}
	if answered("?\n") {
		t.Error("one connection too many was served")
	}
	for _, conn := range open {
		conn.Close()
	}
}
