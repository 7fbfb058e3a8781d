package client

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"vignette.dev/vignette/internal/traffic/payload/nffi"
	"vignette.dev/vignette/internal/traffic/wsn"
)

// counter of bytes that come in.
type counter struct {
	io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

// measuringBroker accepts every message and tells its whole size, HTTP's header included.
func measuringBroker(t *testing.T, size func(bytes int)) string {
	t.Helper()
	listener, err := net.Listen("tcp", address(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	serve := func(conn net.Conn) {
		defer conn.Close()
		count := &counter{Reader: conn}
		reader := bufio.NewReader(count)
		for {
			request, err := http.ReadRequest(reader)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, request.Body)
			size(count.n)
			count.n = 0
			if _, err := io.WriteString(conn, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return listener.Addr().String()
}

// The published figures of the messages that an MQTT publish carries as 880 and 909 bytes.
const minBytes, maxBytes = 1863, 1939

func TestNFFIMessagesHaveThePublishedSizes(t *testing.T) {
	for name, w := range map[string]*wsn.Options{"own broker": nil, "CXF": {Dialect: wsn.DialectSimple}} {
		for form, newMaker := range map[string]func(country, unit, entity string, seed int64) *nffi.Maker{"short": nffi.New, "long": nffi.NewLong} {
			t.Run(name+", "+form, func(t *testing.T) { checkSizes(t, w, newMaker) })
		}
	}
}

// checkSizes sends E1's messages to a broker that measures them.
func checkSizes(t *testing.T, w *wsn.Options, newMaker func(country, unit, entity string, seed int64) *nffi.Maker) {
	t.Helper()
	var mu sync.Mutex
	count, least, most := 0, 1<<30, 0
	at := measuringBroker(t, func(bytes int) {
		mu.Lock()
		defer mu.Unlock()
		count, least, most = count+1, min(least, bytes), max(most, bytes)
	})
	// E1's run: nodes 2 to 24 for 30 minutes, a message every 10 s.
	for node := 2; node <= 24; node++ {
		entity := fmt.Sprintf("VEH-S%03d", node-1)
		config := publisher(at, 1)
		config.Instance, config.WSN = fmt.Sprintf("veh-%d/bft", node-1), w
		c, _ := startClient(t, config)
		maker := newMaker("VEH", "VEH-UNIT001", entity, int64(node))
		for number := 1; number <= 180; number++ {
			content := maker.Append(nil, fmt.Sprintf("%s_%d", entity, number), time.Unix(int64(1588759108+10*number), 0))
			publish(t, c, "/VEH/VEH-UNIT001/"+entity+"/location", string(content))
		}
	}
	eventually(t, "all messages", func() bool { mu.Lock(); defer mu.Unlock(); return count == 23*180 })
	// The broker's name stands in a message twice, and is shorter in an experiment.
	least -= 2 * (len(at) - len("hq:8080"))
	t.Logf("%d messages of %d (broker hq:8080) to %d bytes (broker %s)", count, least, most, at)
	if least < minBytes || most > maxBytes {
		t.Errorf("messages have %d to %d bytes; want %d to %d", least, most, minBytes, maxBytes)
	}
}
