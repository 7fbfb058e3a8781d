package scenarios

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/traffic/payload/nffi"
	"vignette.dev/vignette/internal/traffic/transport"
	wsn "vignette.dev/vignette/internal/traffic/wsn/client"
	"vignette.dev/vignette/internal/trafficconfig"
)

// sizes returns the bytes of the first NFFI message of vehicle 1: of the content, and as WS-Notification with its HTTP header.
func sizes(t *testing.T, payload string) map[string]any {
	t.Helper()
	newMaker := nffi.New
	if payload == "nffi-long" {
		newMaker = nffi.NewLong
	}
	content := newMaker("VEH", "VEH-UNIT001", "VEH-S001", 1).Append(nil, "VEH-S001_1", time.UnixMilli(1588759108433))
	return map[string]any{"content": float64(len(content)), "wsNotification": float64(wsnSize(t, content))}
}

// wsnSizes are those that were measured, by the length of the content.
var wsnSizes = map[int]int{}

// wsnSize is that of a message to the broker on node hq.
func wsnSize(t *testing.T, content []byte) int {
	t.Helper()
	if known, ok := wsnSizes[len(content)]; ok {
		return known
	}
	listener := testport.Listen(t)
	at := listener.Addr().String()
	up := make(chan bool, 1)
	setup := transport.Setup{Config: trafficconfig.Config{Instance: "veh-1/bft", Protocol: "ws-notification", Broker: at, Publish: &trafficconfig.Publish{}},
		ClientID: "veh-1", Warn: func(text string) { t.Log(text) }}
	client, err := wsn.Open(setup, transport.Events{
		Connection: func(now bool, _ string) {
			select {
			case up <- now:
			default:
			}
		},
		Sent: func(time.Time, string, []byte) {}})
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(context.Background())
	end()
	defer client.Close(ended)
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if !<-up {
		t.Fatal("the client has no connection")
	}
	if err := client.Publish("/VEH/VEH-UNIT001/VEH-S001/location", content); err != nil {
		t.Fatal(err)
	}
	// The broker's name stands in a message twice.
	wsnSizes[len(content)] = requestSize(t, conn) - 2*(len(at)-len("hq:8080"))
	return wsnSizes[len(content)]
}

// requestSize reads a request and returns its size with its header.
func requestSize(t *testing.T, conn net.Conn) int {
	t.Helper()
	size := 0
	request, err := http.ReadRequest(bufio.NewReader(io.TeeReader(conn, counter(func(n int) { size += n }))))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, request.Body); err != nil {
		t.Fatal(err)
	}
	return size
}

// counter is a writer that only counts.
type counter func(bytes int)

func (c counter) Write(p []byte) (int, error) {
	c(len(p))
	return len(p), nil
}
