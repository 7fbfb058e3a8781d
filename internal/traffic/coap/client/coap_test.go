package client

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/traffic/request"
)

// real opens a peer on loopback with a server, and returns its address.
func real(t testing.TB, open request.Open, set func(*request.Setup)) (request.Peer, string) {
	t.Helper()
	at := fmt.Sprintf("127.0.0.1:%d", testport.Free(t))
	setup := request.Setup{Listen: at, Receipt: true, TimeoutSeconds: 20, Handler: echo, Warn: func(text string) { t.Log(text) }}
	if set != nil {
		set(&setup)
	}
	p, err := open(setup)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(context.Background()) })
	return p, at
}

func body(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7 / 5)
	}
	return b
}

func TestABodyOfAnySizeArrivesAndComesBackOverEitherTransport(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]request.Open{"UDP": Open, "TCP": OpenTCP} {
		t.Run(name, func(t *testing.T) {
			_, at := real(t, open, nil)
			client, _ := real(t, open, nil)
			for _, n := range []int{0, 1, 1023, 1024, 1025, 2048, 100_000, 3_000_000} {
				sent := 0
				want := request.Request{Path: "/messages?a=1&b=2", Body: body(n), ContentType: "application/cbor", ContentEncoding: "gzip"}
				got, _, err := client.Do(t.Context(), at, want, request.Events{Sent: func(time.Time) { sent++ }})
				if err != nil {
					t.Fatalf("%d bytes: %v", n, err)
				}
				if !bytes.Equal(got.Body, want.Body) || got.Status != 204 || sent != 1 {
					t.Errorf("%d bytes: got %d bytes, status %d; sent %d times", n, len(got.Body), got.Status, sent)
				}
				if n > 0 && (got.ContentType != want.ContentType || got.ContentEncoding != want.ContentEncoding) {
					t.Errorf("%d bytes: content type %q, encoding %q", n, got.ContentType, got.ContentEncoding)
				}
			}
			got, _, err := client.Do(t.Context(), at, request.Request{Path: "/a/b?c"}, request.Events{})
			if err != nil || string(got.Body) != "state of /a/b?c" || got.Status != 200 {
				t.Errorf("GET: %q, status %d, %v", got.Body, got.Status, err)
			}
		})
	}
}

func TestEveryBlockSizeCarriesBothDirections(t *testing.T) {
	t.Parallel()
	_, at := real(t, Open, nil)
	for blockBytes := 16; blockBytes <= 1024; blockBytes *= 2 {
		client, own := real(t, Open, func(s *request.Setup) { s.CoAP.BlockBytes = blockBytes })
		for _, to := range []string{at, own} {
			got, _, err := client.Do(t.Context(), to, request.Request{Path: "/", Body: body(5000)}, request.Events{})
			if err != nil || !bytes.Equal(got.Body, body(5000)) {
				t.Errorf("blocks of %d bytes: %d bytes, %v", blockBytes, len(got.Body), err)
			}
		}
		got, _, err := client.Do(t.Context(), at, request.Request{Path: "/" + string(bytes.Repeat([]byte("x"), 200))}, request.Events{})
		if err != nil || len(got.Body) != len("state of /")+200 {
			t.Errorf("GET in blocks of %d bytes: %d bytes, %v", blockBytes, len(got.Body), err)
		}
	}
}

func TestALostMessageIsRepeatedAndHandledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAir()
		var handled atomic.Int32
		a.peer(t, "10.0.0.2:5683", func(s *request.Setup) {
			s.Handler = func(at time.Time, r request.Request) request.Response {
				handled.Add(1)
				return echo(at, r)
			}
		})
		client := a.peer(t, "", nil)
		// The first request and the first two responses are lost.
		drop := 0
		a.losing(func([]byte, netip.AddrPort, netip.AddrPort) bool { drop++; return drop == 1 || drop == 3 || drop == 5 })
		var sent []time.Time
		again := 0
		got, at, err := client.Do(t.Context(), "10.0.0.2:5683", request.Request{Path: "/m", Body: []byte("hello")}, request.Events{
			Sent:          func(at time.Time) { sent = append(sent, at) },
			Retransmitted: func(time.Time) { again++ },
		})
		if err != nil || string(got.Body) != "hello" {
			t.Fatalf("%q, %v", got.Body, err)
		}
		// 1 + 2 + 4 times the first timeout, which is 2 to 3 s.
		if took := at.Sub(sent[0]); took < 14*time.Second || took > 21*time.Second {
			t.Errorf("the response came after %v", took)
		}
		if len(sent) != 1 || again != 3 || handled.Load() != 1 {
			t.Errorf("sent %d times, retransmitted %d times, handled %d times; want 1, 3, 1", len(sent), again, handled.Load())
		}
	})
}
