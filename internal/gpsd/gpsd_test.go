package gpsd_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vignette.dev/vignette/internal/gpsd"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/testtool"
)

func number(v float64) *float64 { return &v }

// report is a fix whose longitude is the second of the minute, so that tests know when it was made.
func report(at time.Time) gpsd.TPV {
	return gpsd.TPV{Class: "TPV", Device: "test", Mode: gpsd.Mode3D, Time: gpsd.FormatTime(at), LatitudeDegrees: number(58.25), LongitudeDegrees: number(float64(at.Second())),
		HeightMetres: number(40), AltitudeMetres: number(40), CourseDegrees: number(90), SpeedMetresPerSecond: number(10), ClimbMetresPerSecond: number(0)}
}

// serve serves until the test ends, and returns the address.
func serve(t *testing.T) string {
	t.Helper()
	listener := testport.Listen(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- (&gpsd.Server{Device: "test", Report: report}).Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// client is a connection to the server.
type client struct {
	t *testing.T
	net.Conn
	lines *bufio.Scanner
}

func connect(t *testing.T, address string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	return &client{t, conn, bufio.NewScanner(conn)}
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// next is the next object.
func (c *client) next() map[string]any {
	c.t.Helper()
	var object map[string]any
	if !c.lines.Scan() {
		c.t.Fatalf("the connection ended: %v", c.lines.Err())
	}
	if err := json.Unmarshal(c.lines.Bytes(), &object); err != nil {
		c.t.Fatalf("%q: %v", c.lines.Text(), err)
	}
	return object
}

// expect reads objects of these classes, in order, and returns the last.
func (c *client) expect(classes ...string) (last map[string]any) {
	c.t.Helper()
	for _, class := range classes {
		if last = c.next(); last["class"] != class {
			c.t.Fatalf("%v; want class %s", last, class)
		}
	}
	return last
}

func TestAWatchingClientHasAReportEachWholeSecond(t *testing.T) {
	c := connect(t, serve(t))
	c.send("?WATCH={\"enable\":true,\"json\":true};\n")
	c.expect("VERSION", "DEVICES", "WATCH")
	first, second := c.expect("TPV"), c.expect("TPV")
	for _, tpv := range []map[string]any{first, second} {
		if at, _ := tpv["time"].(string); !strings.HasSuffix(at, ".000Z") || tpv["lat"] != 58.25 || tpv["mode"] != 3.0 {
			t.Errorf("%v; want a fix of a whole second", tpv)
		}
	}
	if first["time"] == second["time"] {
		t.Errorf("two reports of %v; want different seconds", first["time"])
	}
}

func TestAClientThatDoesNotWatchHasNoReports(t *testing.T) {
	c := connect(t, serve(t))
	c.expect("VERSION")
	_ = c.SetDeadline(time.Now().Add(1500 * time.Millisecond))
	if c.lines.Scan() {
		t.Errorf("got %s; want nothing", c.lines.Text())
	}
}

func TestWatchingEndsWhenTheClientSaysSo(t *testing.T) {
	c := connect(t, serve(t))
	c.send("?WATCH={};?WATCH={\"enable\":false};?WATCH;")
	if w := c.expect("VERSION", "DEVICES", "WATCH", "WATCH", "WATCH"); w["enable"] != false {
		t.Errorf("%v; want enable false", w)
	}
}

func TestPollIsAnsweredWithThePositionOfNow(t *testing.T) {
	c := connect(t, serve(t))
	c.send("?POLL;")
	tpv, _ := c.expect("VERSION", "POLL")["tpv"].([]any)
	if len(tpv) != 1 || tpv[0].(map[string]any)["lat"] != 58.25 {
		t.Errorf("%v; want one fix", tpv)
	}
}

func TestUnknownCommandsAreRefusedAndTheConnectionGoesOn(t *testing.T) {
	c := connect(t, serve(t))
	c.send("?NONSENSE;?WATCH=7;?VERSION;?DEVICE;")
	if d := c.expect("VERSION", "ERROR", "ERROR", "VERSION", "DEVICE"); d["path"] != "test" {
		t.Errorf("%v; want the device's path", d)
	}
}

func TestALineWithoutAnEndClosesTheConnection(t *testing.T) {
	c := connect(t, serve(t))
	c.expect("VERSION")
	c.send(strings.Repeat("x", 10_000))
	if c.lines.Scan() {
		t.Errorf("got %s; want the connection's end", c.lines.Text())
	}
}

func TestClientsBeyondTheLimitAreClosed(t *testing.T) {
	address := serve(t)
	for range 32 {
		connect(t, address).expect("VERSION")
	}
	if c := connect(t, address); c.lines.Scan() {
		t.Errorf("got %s; want a closed connection", c.lines.Text())
	}
}

// failingListener accepts one connection, and fails then.
type failingListener struct {
	net.Listener
	accepted bool
	failed   chan struct{}
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.accepted {
		<-l.failed
		return nil, errors.New("too many open files")
	}
	l.accepted = true
	return l.Listener.Accept()
}

func TestAListenerThatFailsEndsTheServerWithItsClients(t *testing.T) {
	listener := testport.Listen(t)
	failing := &failingListener{Listener: listener, failed: make(chan struct{})}
	done := make(chan error, 1)
	go func() { done <- (&gpsd.Server{Device: "test", Report: report}).Serve(t.Context(), failing) }()
	c := connect(t, listener.Addr().String())
	c.expect("VERSION")
	close(failing.failed)
	if c.lines.Scan() {
		t.Errorf("got %s; want the connection's end", c.lines.Text())
	}
	if err := <-done; err == nil {
		t.Error("no error; want the listener's")
	}
	if again, err := net.Listen("tcp", listener.Addr().String()); err != nil {
		t.Errorf("%v; want the address to be free", err)
	} else {
		again.Close()
	}
}

func TestNoSecondComesTwiceWhenTheClockIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		began, slow := time.Now(), time.Duration(0)
		ctx, cancel := context.WithCancel(t.Context())
		server := &gpsd.Server{Device: "test", Report: report, Now: func() time.Time {
			now := time.Now().Add(-slow)
			if time.Since(began) > 2*time.Second {
				slow = 300 * time.Millisecond
			}
			return now
		}}
		done := make(chan error, 1)
		go func() { done <- server.Serve(ctx, &pipeListener{conn: ours, closed: make(chan struct{})}) }()
		c := &client{t, theirs, bufio.NewScanner(theirs)}
		c.expect("VERSION")
		c.send("?WATCH={};")
		c.expect("DEVICES", "WATCH")
		seen := map[any]bool{}
		for range 5 {
			tpv := c.expect("TPV")
			if seen[tpv["time"]] {
				t.Errorf("%v came twice", tpv["time"])
			}
			seen[tpv["time"]] = true
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// pipeListener accepts one end of a pipe.
type pipeListener struct {
	conn   net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *pipeListener) Accept() (conn net.Conn, err error) {
	if conn, l.conn = l.conn, nil; conn != nil {
		return conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func TestGpspipeReadsReports(t *testing.T) {
	program := testtool.Need(t, "gpspipe")
	host, port, _ := net.SplitHostPort(serve(t))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "-w", "-n", "5", host+":"+port).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if n := strings.Count(string(out), `"class":"TPV"`); n != 2 {
		t.Errorf("%d reports after VERSION, DEVICES and WATCH; want 2:\n%s", n, out)
	}
}
