// Package positions holds the example program of docs/how-to/run-own-app.md that knows where it is; this test runs it on the loopback
// interface.
package positions

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/gpsd"
	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/position"
	"vignette.dev/vignette/internal/syncbuffer"
)

// serveGPS serves a position where gpsd's clients expect it.
func serveGPS(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", gpsd.Address)
	if err != nil {
		t.Skipf("needs the port of gpsd: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	here := position.Place{Position: geo.Position{Latitude: 58.25, Longitude: 7.5, Altitude: 40}}
	server := &gpsd.Server{Device: "test", Report: func(at time.Time) gpsd.TPV { return gpsd.NewTPV("test", at, here, true) }}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(ctx, listener) }()
	t.Cleanup(func() { cancel(); <-ended })
}

// start runs the program, and returns its output.
func start(t *testing.T, instance string, arguments ...string) *syncbuffer.Buffer {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3")
	}
	out := &syncbuffer.Buffer{}
	c := exec.Command(python, append([]string{"-u", "gps.py"}, arguments...)...)
	c.Env, c.Stdout, c.Stderr = append(os.Environ(), "VIGNETTE_INSTANCE="+instance), out, out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return out
}

// freePort of UDP.
func freePort(t *testing.T) string {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, port, _ := net.SplitHostPort(conn.LocalAddr().String())
	return port
}

func TestTheProgramTellsWhereItsNodeIs(t *testing.T) {
	serveGPS(t)
	port := freePort(t)
	received := start(t, "hq/map", "receive", port)
	time.Sleep(time.Second) // until it listens
	sent := start(t, "veh-1/tracker", "send", "127.0.0.1:"+port, "0.2")
	for deadline := time.Now().Add(30 * time.Second); strings.Count(received.String(), "\n") < 3 && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	reports := 0
	bad, err := messagelog.Read(strings.NewReader(sent.String()), func(r messagelog.Record) {
		reports++
		if r.Status != messagelog.Sent || r.Position == nil || *r.Position != [3]float64{58.25, 7.5, 40} {
			t.Errorf("record %+v with position %v; want a sent message from 58.25, 7.5", r, r.Position)
		}
	})
	if err != nil || bad > 0 || reports < 3 || strings.Count(received.String(), `"received"`) < 3 {
		t.Errorf("%d reports, %d bad lines, %v; sent:\n%s\nreceived:\n%s", reports, bad, err, sent.String(), received.String())
	}
}
