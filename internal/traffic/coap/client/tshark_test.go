package client

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vignette.dev/vignette/internal/testcapture"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/traffic/request"
)

// dissect makes a capture of pieces that went to and from a server, and returns what tshark calls the messages in them.
func dissect(t *testing.T, transport string, pieces []piece) []string {
	t.Helper()
	var dumps strings.Builder
	for _, p := range pieces {
		dumps.WriteString(map[bool]string{true: "O\n", false: "I\n"}[p.toServer] + testcapture.HexDump(p.content))
	}
	ports := map[string]string{"udp": "-u", "tcp": "-T"}[transport]
	read := testcapture.Read(t, testcapture.Of(t, dumps.String(), "-D", ports, "40000,5683", "-4", "10.0.0.1,10.0.0.2"), "-O", "coap")
	// tshark 4.0 does not know the option No-Response (258).
	text := strings.ReplaceAll(read, "[Expert Info (Warning/Malformed): Invalid Option Number 258]", "")
	testcapture.NoneOf(t, text, "Malformed Packet", "Expert Info (Err", "Expert Info (Warn")
	var codes []string
	for line := range strings.Lines(text) {
		if _, code, found := strings.Cut(strings.TrimSpace(line), "Code: "); found {
			codes = append(codes, code)
		}
	}
	return codes
}

// piece is a datagram, or what was written to a connection at once.
type piece struct {
	toServer bool
	content  []byte
}

func TestTsharkDissectsEverythingOverUDP(t *testing.T) {
	t.Parallel()
	a := newAir()
	synctest.Test(t, func(t *testing.T) {
		a.peer(t, "10.0.0.3:5683", nil)
		for _, set := range []func(*request.Setup){
			func(*request.Setup) {}, func(s *request.Setup) { s.CoAP.NonConfirmable = true },
			func(s *request.Setup) { s.Receipt = false }, func(s *request.Setup) { s.CoAP.BlockBytes = 64 },
		} {
			client := a.peer(t, "", set)
			for mediaType := range formats {
				for _, encoding := range []string{"", "gzip"} {
					_, _, _ = client.Do(t.Context(), "10.0.0.3:5683", request.Request{Path: "/a/b?c=d", Body: body(300), ContentType: mediaType, ContentEncoding: encoding}, request.Events{})
				}
			}
			_, _, _ = client.Do(t.Context(), "10.0.0.3:5683", request.Request{Path: "/", Body: body(3000)}, request.Events{})
		}
		time.Sleep(time.Minute)
	})
	var pieces []piece
	for _, d := range a.sent {
		pieces = append(pieces, piece{toServer: d.to.Port() == netip.MustParseAddrPort(server).Port(), content: d.content})
	}
	if codes := dissect(t, "udp", pieces); len(codes) != len(pieces) || len(codes) < 200 {
		t.Errorf("tshark names %d of %d messages; want all, and 200 at least", len(codes), len(pieces))
	}
}

func TestTsharkDissectsEverythingOverTCP(t *testing.T) {
	t.Parallel()
	_, at := real(t, OpenTCP, func(s *request.Setup) { s.Handler = resources })
	r := &relay{to: at}
	client, _ := real(t, OpenTCP, nil)
	through := r.listen(t)
	for _, n := range []int{0, 10, 300, 5000} {
		if _, _, err := client.Do(t.Context(), through, request.Request{Path: "/messages", Body: body(n), ContentType: "application/cbor"}, request.Events{}); err != nil {
			t.Fatal(err)
		}
	}
	_, _, _ = client.Do(t.Context(), through, request.Request{Path: "/missing"}, request.Events{})
	r.mu.Lock()
	pieces := r.pieces
	r.mu.Unlock()
	// Five requests with their responses.
	if codes := dissect(t, "tcp", pieces); len(codes) < 10 {
		t.Errorf("tshark names %d messages: %q", len(codes), codes)
	}
}

// relay passes a connection on, and keeps what goes through it.
type relay struct {
	to     string
	mu     sync.Mutex
	pieces []piece
}

func (r *relay) listen(t *testing.T) string {
	at := fmt.Sprintf("127.0.0.1:%d", testport.Free(t))
	listener, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		near, err := listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", r.to)
		if err != nil {
			near.Close()
			return
		}
		go r.pass(near, far, true)
		r.pass(far, near, false)
	}()
	return at
}

func (r *relay) pass(from, to net.Conn, toServer bool) {
	defer to.Close()
	buffer := make([]byte, 1400)
	for skip := 7; ; {
		n, err := from.Read(buffer)
		// Not the CSM: tshark 4.0 takes its options for those of requests, and so for malformed.
		skipped := min(skip, n)
		skip -= skipped
		if n > skipped {
			r.mu.Lock()
			r.pieces = append(r.pieces, piece{toServer, append([]byte(nil), buffer[skipped:n]...)})
			r.mu.Unlock()
		}
		_, _ = to.Write(buffer[:n])
		if err != nil {
			return
		}
	}
}
