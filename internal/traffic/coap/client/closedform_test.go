package client

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"vignette.dev/vignette/internal/traffic/request"
)

const server = "10.0.0.2:5683"

// An exchange is complete if one of its transmissions and the answer to it arrive. So its number of transmissions is geometric.
func TestTransmissionsAtALossMatchTheBinomial(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		loss          float64
		maxRetransmit int
	}{{0.1, 4}, {0.4, 4}, {0.3, 0}} {
		synctest.Test(t, func(t *testing.T) {
			const exchanges = 20_000
			random := rand.New(rand.NewPCG(uint64(c.loss*100), uint64(c.maxRetransmit)))
			a := newAir()
			a.losing(func([]byte, netip.AddrPort, netip.AddrPort) bool { return random.Float64() < c.loss })
			a.peer(t, server, nil)
			client := a.peer(t, "", func(s *request.Setup) { s.CoAP.MaxRetransmit = &c.maxRetransmit })
			needed, failed := make([]int, c.maxRetransmit+2), 0
			for range exchanges {
				transmissions := 0
				count := func(time.Time) { transmissions++ }
				_, _, err := client.Do(t.Context(), server, request.Request{Path: "/m", Body: []byte("x")}, request.Events{Sent: count, Retransmitted: count})
				switch request.ReasonOf(err) {
				case "":
					needed[transmissions]++
				case request.Timeout:
					failed++
					if transmissions != c.maxRetransmit+1 {
						t.Fatalf("failed after %d transmissions", transmissions)
					}
				default:
					t.Fatal(err)
				}
			}
			answered := (1 - c.loss) * (1 - c.loss)
			check := func(what string, got int, want float64) {
				share := float64(got) / exchanges
				t.Logf("loss %v, at most %d retransmissions: %s: %.2f %%, binomial %.2f %%", c.loss, c.maxRetransmit, what, 100*share, 100*want)
				if math.Abs(share-want) > 0.01 {
					t.Errorf("%s: %.4f of all exchanges; want %.4f", what, share, want)
				}
			}
			for k := 1; k <= c.maxRetransmit+1; k++ {
				check("answered after "+string(rune('0'+k))+" transmissions", needed[k], answered*math.Pow(1-answered, float64(k-1)))
			}
			check("failed", failed, math.Pow(1-answered, float64(c.maxRetransmit+1)))
		})
	}
}

func TestTheResponseTimeOverALosslessLinkIsTheSumOfItsFramesTimes(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 100, 1024, 1025, 10_000} {
		synctest.Test(t, func(t *testing.T) {
			a := newAir()
			a.perByte, a.delay = 100*time.Microsecond, 7*time.Millisecond
			a.peer(t, server, nil)
			client := a.peer(t, "", nil)
			var sent time.Time
			_, at, err := client.Do(t.Context(), server, request.Request{Path: "/m", Body: body(n)}, request.Events{Sent: func(at time.Time) { sent = at }})
			if err != nil {
				t.Fatal(err)
			}
			want := time.Duration(0)
			for _, d := range a.sent {
				want += time.Duration(len(d.content))*a.perByte + a.delay
			}
			if blocks := (n + 1023) / 1024; len(a.sent) != max(2, 4*blocks-2) {
				t.Errorf("%d bytes: %d datagrams", n, len(a.sent))
			}
			if got := at.Sub(sent); got != want {
				t.Errorf("%d bytes: the response time is %v; the frames' times sum up to %v", n, got, want)
			}
		})
	}
}

// RFC 7252, section 4.2: the first timeout is from ACK_TIMEOUT to ACK_TIMEOUT times ACK_RANDOM_FACTOR, and doubles each time.
func TestRetransmissionsBackOffAsTheStandardSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAir()
		client := a.peer(t, "", func(s *request.Setup) { s.CoAP.ACKTimeoutSeconds, s.CoAP.ACKRandomFactor = 3, 2 })
		shortest, longest := time.Hour, time.Duration(0)
		for range 500 {
			var at []time.Time
			note := func(when time.Time) { at = append(at, when) }
			_, _, err := client.Do(t.Context(), server, request.Request{Path: "/m", Body: []byte("x")}, request.Events{Sent: note, Retransmitted: note})
			if request.ReasonOf(err) != request.Timeout || len(at) != 5 {
				t.Fatalf("%v after %d transmissions", err, len(at))
			}
			first := at[1].Sub(at[0])
			shortest, longest = min(shortest, first), max(longest, first)
			for i := 2; i < len(at); i++ {
				if got, want := at[i].Sub(at[i-1]), first<<(i-1); got != want {
					t.Fatalf("pause %d is %v; want %v", i, got, want)
				}
			}
			if got := time.Since(at[4]); got != first<<4 {
				t.Fatalf("gave up %v after the last transmission; want %v", got, first<<4)
			}
		}
		if shortest < 3*time.Second || shortest > 3100*time.Millisecond || longest > 6*time.Second || longest < 5900*time.Millisecond {
			t.Errorf("first timeouts from %v to %v; want 3s to 6s", shortest, longest)
		}
	})
}

func TestTheLifetimeOfMessagesIsThatOfTheStandard(t *testing.T) {
	t.Parallel()
	if o, err := optionsOf(request.CoAPOptions{}); err != nil || o.lifetime() != 247*time.Second {
		t.Errorf("%v, %v; want 247 s", o.lifetime(), err)
	}
	most := 20
	if o, err := optionsOf(request.CoAPOptions{ACKTimeoutSeconds: 3600, MaxRetransmit: &most}); err != nil || o.lifetime() != maxLifetime {
		t.Errorf("%v, %v; want %v", o.lifetime(), err, maxLifetime)
	}
}

func TestTheBytesOfARequestAreThoseOfTheReference(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAir()
		a.peer(t, server, func(s *request.Setup) {
			s.Handler = func(time.Time, request.Request) request.Response { return request.Response{Status: 204} }
		})
		client := a.peer(t, "", nil)
		if _, _, err := client.Do(t.Context(), server, request.Request{Path: "/messages", Body: body(100), ContentType: "application/cbor"}, request.Events{}); err != nil {
			t.Fatal(err)
		}
		if ask, answer := len(a.sent[0].content), len(a.sent[1].content); ask != 120 || answer != 8 {
			t.Errorf("%d and %d bytes; docs/reference/protocols.md says 120 and 8", ask, answer)
		}
	})
}
