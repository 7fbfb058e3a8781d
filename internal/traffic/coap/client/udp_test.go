package client

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/quietio"
	limits "vignette.dev/vignette/internal/traffic/coap"
	"vignette.dev/vignette/internal/traffic/request"
)

var anyRequest = request.Request{Path: "/m", Body: []byte("hello"), ContentType: "text/plain"}

// decoded are the messages on the air so far.
func (a *air) decoded(t testing.TB) []message.Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []message.Message
	for _, d := range a.sent {
		m, err := parse(d.content)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// said writes messages as type and code.
func said(all []message.Message) string {
	var words []string
	for _, m := range all {
		words = append(words, []string{"CON", "NON", "ACK", "RST"}[m.Type]+" "+dotted(m.Code))
	}
	return strings.Join(words, ", ")
}

// raw is a socket of a test that speaks for itself.
type raw struct {
	*airSocket
	t testing.TB
}

func (a *air) raw(t testing.TB, at string) raw { return raw{a.socket(netip.MustParseAddrPort(at)), t} }

func (r raw) send(to string, m message.Message) {
	b, err := format(m)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = r.write(b, origin{remote: netip.MustParseAddrPort(to)})
}

// receive returns the next message, if it comes within a second.
func (r raw) receive() (message.Message, netip.AddrPort, bool) {
	select {
	case d := <-r.inbox:
		m, err := parse(d.content)
		if err != nil {
			r.t.Fatal(err)
		}
		return m, d.from, true
	case <-time.After(time.Second):
		return message.Message{}, netip.AddrPort{}, false
	}
}

func post(id int32, t message.Type, payload string) message.Message {
	m := message.Message{Type: t, Code: codes.POST, MessageID: id, Token: message.Token("tok"), Payload: []byte(payload)}
	add(&m, message.URIPath, []byte("m"))
	return m
}

func TestARepeatedConfirmableRequestIsHandledOnceAndAnsweredAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAir()
		var handled atomic.Int32
		a.peer(t, server, func(s *request.Setup) {
			s.Handler = func(time.Time, request.Request) request.Response {
				return request.Response{Status: 200, Body: []byte(fmt.Sprint(handled.Add(1))), ContentType: "text/plain"}
			}
		})
		client := a.raw(t, "10.0.0.1:999")
		for _, c := range []struct {
			wait     time.Duration
			id       int32
			kind     message.Type
			text     string
			response string
		}{
			{0, 7, message.Confirmable, "x", "1"},
			{time.Second, 7, message.Confirmable, "x", "1"},
			{200 * time.Second, 7, message.Confirmable, "x", "1"},
			{time.Second, 8, message.Confirmable, "x", "2"},
			{time.Second, 9, message.NonConfirmable, "x", "3"},
			{time.Second, 9, message.NonConfirmable, "x", ""},
			{time.Second, 8, message.Confirmable, "another, as the ids have all been used", "4"},
			{300 * time.Second, 7, message.Confirmable, "x", "5"},
		} {
			time.Sleep(c.wait)
			client.send(server, post(c.id, c.kind, c.text))
			m, _, ok := client.receive()
			if string(m.Payload) != c.response || ok != (c.response != "") {
				t.Errorf("message %d after %v: response %q; want %q", c.id, c.wait, m.Payload, c.response)
			}
			if ok && c.kind == message.Confirmable && (m.Type != message.Acknowledgement || m.MessageID != c.id) {
				t.Errorf("message %d: response by %v %d", c.id, m.Type, m.MessageID)
			}
		}
	})
}

func TestASlowServiceAcknowledgesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAir()
		a.peer(t, server, func(s *request.Setup) {
			s.Handler = func(at time.Time, r request.Request) request.Response {
				time.Sleep(30 * time.Second)
				return echo(at, r)
			}
		})
		client := a.peer(t, "", nil)
		again := 0
		got, _, err := client.Do(t.Context(), server, anyRequest, request.Events{Retransmitted: func(time.Time) { again++ }})
		synctest.Wait()
		if err != nil || string(got.Body) != "hello" || again != 0 {
			t.Errorf("%q, %v, %d retransmissions", got.Body, err, again)
		}
		if got, want := said(a.decoded(t)), "CON 0.02, ACK 0.00, CON 2.04, ACK 0.00"; got != want {
			t.Errorf("on the air: %s; want %s", got, want)
		}
	})
}

func TestALostSeparateResponseIsRepeatedAndDeliveredOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAir()
		a.peer(t, server, func(s *request.Setup) {
			s.Handler = func(at time.Time, r request.Request) request.Response {
				time.Sleep(5 * time.Second)
				return echo(at, r)
			}
		})
		n := 0
		a.losing(func([]byte, netip.AddrPort, netip.AddrPort) bool { n++; return n == 2 || n == 4 || n == 6 }) // ACK, response, ACK of response
		client := a.peer(t, "", nil)
		if got, _, err := client.Do(t.Context(), server, anyRequest, request.Events{}); err != nil || string(got.Body) != "hello" {
			t.Fatalf("%q, %v", got.Body, err)
		}
		time.Sleep(time.Minute)
		if got, want := said(a.decoded(t)), "CON 0.02, ACK 0.00, CON 0.02, ACK 0.00, CON 2.04, ACK 0.00, CON 2.04, ACK 0.00"; got != want {
			t.Errorf("on the air: %s; want %s", got, want)
		}
	})
}

func TestWithoutAReceiptOneDatagramIsAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAir()
		got := make(chan request.Request, 10)
		handler := func(_ time.Time, r request.Request) request.Response { got <- r; return request.Response{Status: 404} }
		a.peer(t, server, func(s *request.Setup) { s.Handler = handler })
		client := a.peer(t, "", func(s *request.Setup) { s.Receipt = false })
		sent := 0
		if r, _, err := client.Do(t.Context(), server, anyRequest, request.Events{Sent: func(time.Time) { sent++ }}); err != nil || r.Status != 0 || sent != 1 {
			t.Errorf("%+v, %v, sent %d times", r, err, sent)
		}
		time.Sleep(time.Minute)
		if r := <-got; string(r.Body) != "hello" || r.ContentType != "text/plain" || r.Path != "/m" {
			t.Errorf("received %+v", r)
		}
		if words := said(a.decoded(t)); words != "NON 0.02" {
			t.Errorf("on the air: %s", words)
		}
		// A longer body needs the responses to all blocks but the last.
		if _, _, err := client.Do(t.Context(), server, request.Request{Path: "/m", Body: body(3000)}, request.Events{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if r := <-got; !bytes.Equal(r.Body, body(3000)) {
			t.Errorf("received %d bytes", len(r.Body))
		}
		if words := said(a.decoded(t)[1:]); words != "CON 0.02, ACK 2.31, CON 0.02, ACK 2.31, NON 0.02" {
			t.Errorf("on the air: %s", words)
		}
	})
}

func TestNonConfirmableRequestsAreSentOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAir()
		a.peer(t, server, nil)
		client := a.peer(t, "", func(s *request.Setup) { s.CoAP.NonConfirmable, s.TimeoutSeconds = true, 60 })
		if got, _, err := client.Do(t.Context(), server, anyRequest, request.Events{}); err != nil || string(got.Body) != "hello" {
			t.Errorf("%q, %v", got.Body, err)
		}
		if words := said(a.decoded(t)); words != "NON 0.02, NON 2.04" {
			t.Errorf("on the air: %s", words)
		}
		a.losing(func([]byte, netip.AddrPort, netip.AddrPort) bool { return true })
		begun := time.Now()
		_, _, err := client.Do(t.Context(), server, anyRequest, request.Events{Retransmitted: func(time.Time) { t.Error("retransmitted") }})
		if request.ReasonOf(err) != request.Timeout || time.Since(begun) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

func TestNSTARTBoundsOutstandingRequestsToOneAddressee(t *testing.T) {
	t.Parallel()
	for _, nstart := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			a := newAir()
			a.delay = 100 * time.Millisecond
			client := a.peer(t, "", func(s *request.Setup) { s.CoAP.NSTART = nstart })
			other := "10.0.0.3:5683"
			for _, at := range []string{server, other} {
				a.peer(t, at, nil)
			}
			begun := time.Now()
			var wg sync.WaitGroup
			for _, at := range []string{server, other} {
				for range 6 {
					wg.Go(func() {
						if _, _, err := client.Do(t.Context(), at, anyRequest, request.Events{}); err != nil {
							t.Error(err)
						}
					})
				}
			}
			wg.Wait()
			if got, want := time.Since(begun), time.Duration(6/nstart)*200*time.Millisecond; got != want {
				t.Errorf("NSTART %d: six requests to each of two addressees took %v; want %v", nstart, got, want)
			}
		})
	}
}

func TestARequestFailsWithItsReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAir()
		a.peer(t, server, func(s *request.Setup) {
			s.Handler = func(_ time.Time, r request.Request) request.Response {
				status := 0
				fmt.Sscanf(r.Path, "/%d", &status)
				return request.Response{Status: status}
			}
		})
		client := a.peer(t, "", func(s *request.Setup) { s.TimeoutSeconds = 30 })
		do := func(ctx context.Context, at, path string) (request.Response, request.Reason, string) {
			r, _, err := client.Do(ctx, at, request.Request{Path: path, Body: []byte("x")}, request.Events{})
			if err == nil {
				return r, "", ""
			}
			return r, request.ReasonOf(err), err.Error()
		}
		for path, want := range map[string]string{"/404": "rejected: 4.04 NotFound", "/500": "rejected: 5.00 InternalServerError", "/413": "rejected: 4.13 RequestEntityTooLarge", "/429": "rejected: 4.29 TooManyRequests"} {
			r, _, detail := do(t.Context(), server, path)
			if detail != want || "/"+fmt.Sprint(r.Status) != path {
				t.Errorf("%s: status %d, %q; want %q", path, r.Status, detail, want)
			}
		}
		begun := time.Now()
		if _, reason, _ := do(t.Context(), "10.0.0.99:5683", "/204"); reason != request.Timeout || time.Since(begun) != 30*time.Second {
			t.Errorf("nobody there: %s after %v", reason, time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		time.AfterFunc(time.Second, cancel)
		if _, reason, _ := do(ctx, "10.0.0.98:5683", "/204"); reason != request.Cancelled {
			t.Errorf("cancelled: %s", reason)
		}
		rejecting := a.raw(t, "10.0.0.3:5683")
		go func() {
			m, from, _ := rejecting.receive()
			rejecting.send(from.String(), message.Message{Type: message.Reset, MessageID: m.MessageID})
		}()
		if _, reason, _ := do(t.Context(), "10.0.0.3:5683", "/204"); reason != request.Reset {
			t.Errorf("reset: %s", reason)
		}
		for path, r := range map[string]request.Request{
			"no slash":            {Path: "m"},
			"a long segment":      {Path: "/" + strings.Repeat("x", 256)},
			"a long body":         {Path: "/", Body: make([]byte, limits.MaxBytes+1)},
			"an unknown type":     {Path: "/", Body: []byte("x"), ContentType: "application/unheard-of"},
			"an unknown encoding": {Path: "/", Body: []byte("x"), ContentType: "application/json", ContentEncoding: "br"},
		} {
			if _, _, err := client.Do(t.Context(), server, r, request.Events{}); request.ReasonOf(err) != request.Invalid {
				t.Errorf("%s: %v", path, err)
			}
		}
	})
}

// TestARequestSurvivesTheLackOfARoute: where routes change, one may be missing for a moment, here from the first second on.
func TestARequestSurvivesTheLackOfARoute(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body            int
		answerLost      bool
		missing         time.Duration
		retransmissions int
		fails           request.Reason
	}{
		"as it is sent again":        {100, true, 10 * time.Second, 1, ""},
		"as its next block is sent":  {5000, false, 10 * time.Second, 0, ""},
		"for all of its repetitions": {100, true, time.Hour, 0, request.Timeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, begun, retransmissions := newAir(), time.Now(), 0
				a.delay = 600 * time.Millisecond
				a.lose = func(_ []byte, from, _ netip.AddrPort) bool {
					return c.answerLost && from.String() == server && time.Since(begun) < time.Second
				}
				a.noRoute = func() bool { return time.Since(begun) >= time.Second && time.Since(begun) < time.Second+c.missing }
				a.peer(t, server, nil)
				_, _, err := a.peer(t, "", nil).Do(t.Context(), server, request.Request{Path: "/m", Body: body(c.body)},
					request.Events{Retransmitted: func(time.Time) { retransmissions++ }})
				if request.ReasonOf(err) != c.fails || retransmissions != c.retransmissions {
					t.Errorf("%v after %v and %d retransmissions; want %q and %d", err, time.Since(begun), retransmissions, c.fails, c.retransmissions)
				}
			})
		})
	}
}

func TestAPortWithoutAServerRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open request.Open
		to   string
	}{"UDP": {Open, "127.0.0.1:9"}, "UDP over IPv6": {Open, "[::1]:9"}, "TCP": {OpenTCP, "127.0.0.1:9"}} {
		t.Run(name, func(t *testing.T) {
			if host, _, _ := net.SplitHostPort(c.to); host == "::1" {
				own, err := net.ListenPacket("udp6", "[::1]:0")
				if err != nil {
					t.Skipf("this machine has no IPv6: %v", err)
				}
				own.Close()
			}
			client, _ := real(t, c.open, nil)
			for range 2 {
				begun := time.Now()
				_, _, err := client.Do(t.Context(), c.to, anyRequest, request.Events{})
				if request.ReasonOf(err) != request.Refused || time.Since(begun) > 5*time.Second {
					t.Errorf("%v after %v; want it refused at once", err, time.Since(begun))
				}
			}
		})
	}
}

func TestARefusalFailsNoRequestThatWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAir()
		client := a.peer(t, "", nil)
		ask := func() <-chan error {
			failed := make(chan error, 1)
			go func() {
				_, _, err := client.Do(t.Context(), server, anyRequest, request.Events{})
				failed <- err
			}()
			synctest.Wait()
			return failed
		}
		sent, waits := ask(), ask()
		a.peer(t, server, nil)
		a.deliver(datagram{to: a.sent[0].from})
		if err := <-sent; request.ReasonOf(err) != request.Refused {
			t.Errorf("the request that was sent: %v; want it refused", err)
		}
		if err := <-waits; err != nil {
			t.Errorf("the request after it: %v; want its answer", err)
		}
	})
}

func TestALateRefusalFailsTheRequestThatItQuotesOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAir()
		client := a.peer(t, "", func(s *request.Setup) { s.CoAP.NSTART = 3 })
		var failed [3]chan error
		for i := range failed {
			failed[i] = make(chan error, 1)
			go func() {
				_, _, err := client.Do(t.Context(), server, anyRequest, request.Events{})
				failed[i] <- err
			}()
			synctest.Wait()
		}
		a.peer(t, server, nil)
		// The last one quotes an acknowledgement, whose id is the server's.
		for _, quote := range [][]byte{a.sent[1].content[:8], {0x60, 0, a.sent[2].content[2], a.sent[2].content[3]}} {
			a.deliver(datagram{to: a.sent[0].from, quote: quote})
		}
		for i, want := range []request.Reason{"", request.Refused, ""} {
			if err := <-failed[i]; request.ReasonOf(err) != want {
				t.Errorf("request %d: %v; want %q, as only the second was refused", i+1, err, want)
			}
		}
	})
}

func TestARefusalOfAnEarlierDatagramDoesNotFailTheNextOne(t *testing.T) {
	t.Parallel()
	server, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort(server.LocalAddr().String())
	server.Close()
	s, err := dialUDP(at)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	e := &endpoint{socket: s, outstanding: map[messageKey]*exchange{}} // nobody reads, so that writing gets the refusal
	var exchanges [2]*exchange
	write := func(id int32) {
		exchanges[id] = &exchange{to: origin{remote: at}, events: make(chan event, 4)}
		e.expect(exchanges[id], id)
		b, err := format(message.Message{Type: message.Confirmable, Code: codes.POST, MessageID: id, Payload: make([]byte, 40)})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.write(b, origin{remote: at}); err != nil {
			t.Fatal(err)
		}
	}
	write(0)
	awaitRefusal(t, s.(connectedSocket).conn)
	if server, err = net.ListenPacket("udp4", at.String()); err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	write(1)
	got := make([]byte, 100)
	_ = server.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, _, err := server.ReadFrom(got); err != nil || !quotes(got[:n], 1) {
		t.Errorf("the server received %x, %v; want the second datagram", got[:n], err)
	}
	for id, want := range []int{1, 0} {
		if n := len(exchanges[id].events); n != want {
			t.Errorf("request %d was told %d failures; want %d", id, n, want)
		}
	}
}

// awaitRefusal waits until the kernel has a refusal for a socket: a busy one delivers datagrams later, even to itself.
func awaitRefusal(t *testing.T, socket *net.UDPConn) {
	t.Helper()
	ready := []unix.PollFd{{}}
	for begun := time.Now(); ready[0].Revents&unix.POLLERR == 0; time.Sleep(time.Millisecond) {
		err := quietio.Control(socket, func(fd int) error {
			ready[0].Fd = int32(fd)
			_, err := unix.Poll(ready, 0)
			return err
		})
		if err != nil || time.Since(begun) > 10*time.Second {
			t.Fatalf("no refusal within 10 s, %v", err)
		}
	}
}

func TestAClosedPeerCancelsItsRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAir()
		client := a.peer(t, "", nil)
		time.AfterFunc(time.Second, func() { client.Close(context.Background()) })
		for range 2 {
			if _, _, err := client.Do(t.Context(), server, anyRequest, request.Events{}); request.ReasonOf(err) != request.Cancelled {
				t.Errorf("%v; want it cancelled", err)
			}
		}
	})
}

func TestAGroupsMembersRespondWithinTheLeisure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAir()
		var handled atomic.Int32
		const members, group = 50, group + ":5683"
		for i := range members {
			a.peer(t, fmt.Sprintf("10.0.1.%d:5683", i), func(s *request.Setup) {
				s.Seed, s.CoAP.LeisureSeconds = int64(i), 10
				s.Handler = func(at time.Time, r request.Request) request.Response {
					if n := handled.Add(1); n%2 == 0 && r.Path == "/half" {
						return request.Response{Status: 404}
					}
					return echo(at, r)
				}
			})
		}
		client := a.peer(t, "", nil)
		addGroup(client, a)
		ask := func(from, path string) (after []time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			begun := time.Now()
			err := gather(ctx, a.socket(netip.MustParseAddrPort(from)), group, path, func(at time.Time, r request.Response) {
				if string(r.Body) != "state of "+path {
					t.Errorf("response %q", r.Body)
				}
				after = append(after, at.Sub(begun))
			})
			if err != nil {
				t.Fatal(err)
			}
			return after
		}
		after := ask("10.0.0.2:30000", "/all")
		if len(after) != members || slices.Min(after) > 2*time.Second || slices.Max(after) > 10*time.Second || slices.Max(after) < 8*time.Second {
			t.Errorf("%d responses from %v to %v; want %d over 10 s", len(after), slices.Min(after), slices.Max(after), members)
		}
		if after := ask("10.0.0.2:30001", "/half"); len(after) != members/2 {
			t.Errorf("%d responses; want only those of the %d that succeeded", len(after), members/2)
		}
		before := a.count()
		if r, _, err := client.Do(t.Context(), group, anyRequest, request.Events{}); err != nil || r.Status != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		time.Sleep(time.Minute)
		if got := a.count() - before; got != 1 || handled.Load() != 3*members {
			t.Errorf("a message to the group was %d datagrams and handled %d times; want 1, %d", got, handled.Load()-2*members, members)
		}
	})
}

// addGroup gives a peer on the network a socket for multicast.
func addGroup(p *Peer, a *air) {
	u := p.transport.(*udpTransport)
	u.group = newEndpoint(p.core, a.socket(netip.MustParseAddrPort("10.0.0.1:30000")))
}

func TestBodiesInBlocksSurviveLossAndRepetition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(7, 7))
		a := newAir()
		a.delay = 20 * time.Millisecond
		a.losing(func(b []byte, from, to netip.AddrPort) bool {
			if random.Float64() < 0.1 { // it arrives a second time, later
				d := datagram{from: from, to: to, content: append([]byte(nil), b...)}
				time.AfterFunc(time.Duration(random.Float64()*float64(5*time.Second)), func() { a.deliver(d) })
			}
			return random.Float64() < 0.15
		})
		var handled atomic.Int32
		a.peer(t, server, func(s *request.Setup) {
			s.Handler = func(at time.Time, r request.Request) request.Response {
				handled.Add(1)
				return echo(at, r)
			}
		})
		most, transfers := 12, 60
		client := a.peer(t, "", func(s *request.Setup) { s.TimeoutSeconds, s.CoAP.MaxRetransmit, s.CoAP.BlockBytes = 1e6, &most, 256 })
		for i := range transfers {
			want := body(2000 + i)
			got, _, err := client.Do(t.Context(), server, request.Request{Path: "/m", Body: want}, request.Events{})
			if err != nil || !bytes.Equal(got.Body, want) {
				t.Fatalf("transfer %d: %d bytes, %v", i, len(got.Body), err)
			}
		}
		if int(handled.Load()) != transfers {
			t.Errorf("%d requests were handled %d times", transfers, handled.Load())
		}
	})
}

func TestEachBlockIsProgressAndItsRetransmissionIsNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAir()
		a.peer(t, server, func(s *request.Setup) { s.Handler = echo })
		client := a.peer(t, "", nil)
		datagrams, progress, again := 0, 0, 0
		a.losing(func([]byte, netip.AddrPort, netip.AddrPort) bool {
			datagrams++
			return datagrams == 1 || datagrams == 6
		})
		_, _, err := client.Do(t.Context(), server, request.Request{Path: "/m", Body: body(3000)},
			request.Events{Progress: func() { progress++ }, Retransmitted: func(time.Time) { again++ }})
		// Three blocks each way. The first one back comes with the answer to the last one there.
		if err != nil || progress != 5 || again != 2 {
			t.Errorf("progress %d times, %d retransmissions, %v; want 5, 2 and no error", progress, again, err)
		}
	})
}

func TestResponsesOfARestartedServerAreNoRepetitions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAir()
		service := a.raw(t, server)
		client := a.peer(t, "", func(s *request.Setup) { s.TimeoutSeconds = 10 })
		for _, kind := range []message.Type{message.Confirmable, message.NonConfirmable} {
			for i := range 2 {
				done := make(chan error, 1)
				go func() {
					_, _, err := client.Do(t.Context(), server, anyRequest, request.Events{})
					done <- err
				}()
				m, from, _ := service.receive()
				service.send(from.String(), message.Message{Type: message.Acknowledgement, MessageID: m.MessageID})
				// After each start the server counts its ids from the same one on.
				service.send(from.String(), message.Message{Type: kind, Code: codes.Changed, MessageID: 7, Token: m.Token})
				if err := <-done; err != nil {
					t.Errorf("response %d, %v: %v", i, kind, err)
				}
				if kind == message.Confirmable {
					service.receive() // the acknowledgement
				}
			}
		}
	})
}

func TestAResponseIsRememberedForTheLifetimeOfMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAir()
		e := newEndpoint(a.peer(t, "", nil).core, a.socket(netip.MustParseAddrPort(server)))
		key := responseKey{messageKey{netip.MustParseAddrPort("10.0.0.3:5683"), 7}, "tok"}
		begin := time.Now()
		for _, c := range []struct {
			after    time.Duration
			repeated bool
		}{{0, false}, {e.options.lifetime(), true}, {e.options.lifetime() + 1, false}, {e.options.lifetime() + 2, true}} {
			if got := e.remember(key, true, begin.Add(c.after)); got != c.repeated {
				t.Errorf("after %v: repeated %t; want %t", c.after, got, c.repeated)
			}
		}
		_ = e.socket.close()
	})
}

func TestRequestsThatTheKernelDropsAreWarnedOf(t *testing.T) {
	var warnings []string
	server, err := listenUDP(request.Setup{Listen: "127.0.0.1:0"}, nil, func(format string, values ...any) { warnings = append(warnings, fmt.Sprintf(format, values...)) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.close() })
	client, err := net.Dial("udp", server.(*serverSocket).conn.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	send := func(text []byte) {
		if _, err := client.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 * receiveBuffer / 1024 {
		send(make([]byte, 1024))
	}
	b := make([]byte, maxDatagram)
	for n := 1024; n == 1024; {
		if n, _, err = server.read(b); err != nil {
			t.Fatal(err)
		}
		send([]byte("end"))
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "faster than they can be read") {
		t.Errorf("warned %q; want once of what was dropped", warnings)
	}
}
