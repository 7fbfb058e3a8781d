package client

import (
	"context"
	"fmt"
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

	"vignette.dev/vignette/internal/traffic/request"
)

// counter is a resource that changes.
type counter struct{ value atomic.Int32 }

func (c *counter) handle(_ time.Time, r request.Request) request.Response {
	return request.Response{Status: 200, Body: fmt.Appendf(nil, "%d %s", c.value.Load(), r.Path), ContentType: "text/plain"}
}

// watched collects states.
type watched struct {
	mu     sync.Mutex
	states []string
}

func (w *watched) each(_ time.Time, r request.Response) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.states = append(w.states, string(r.Body))
}

func (w *watched) got() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.states)
}

func TestAnObserverGetsEveryStateUntilItStops(t *testing.T) {
	t.Parallel()
	for _, nonConfirmable := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a, resource := newAir(), &counter{}
			service := a.peer(t, server, func(s *request.Setup) { s.Handler, s.CoAP.NonConfirmable = resource.handle, nonConfirmable })
			client := a.peer(t, "", nil)
			ctx, stop := context.WithCancel(t.Context())
			var w watched
			done := make(chan error, 1)
			go func() { done <- Observe(ctx, client, server, "/n", w.each) }()
			for range 3 {
				time.Sleep(10 * time.Second)
				resource.value.Add(1)
				Changed(service, "/n")
				Changed(service, "/another")
			}
			time.Sleep(10 * time.Second)
			if got, want := w.got(), []string{"0 /n", "1 /n", "2 /n", "3 /n"}; !slices.Equal(got, want) {
				t.Errorf("states %q; want %q", got, want)
			}
			// Without changes it asks again after Max-Age.
			time.Sleep(2 * time.Minute)
			if n := len(w.got()); n < 5 || n > 6 {
				t.Errorf("%d states after two minutes without a change", n)
			}
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
			before := a.count()
			Changed(service, "/n")
			time.Sleep(time.Minute)
			if a.count() != before {
				t.Error("a notification after the end")
			}
		})
	}
}

func TestALostNotificationIsRepeatedAndASilentObserverForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, resource := newAir(), &counter{}
		service := a.peer(t, server, func(s *request.Setup) { s.Handler = resource.handle })
		client := a.peer(t, "", nil)
		ctx, stop := context.WithCancel(t.Context())
		var w watched
		go func() { _ = Observe(ctx, client, server, "/n", w.each) }()
		time.Sleep(time.Second)
		var lose atomic.Int32
		a.losing(func([]byte, netip.AddrPort, netip.AddrPort) bool { return lose.Add(-1) >= 0 })
		lose.Store(2)
		for range 5 { // while the first is repeated, only the newest state counts
			resource.value.Add(1)
			Changed(service, "/n")
			time.Sleep(time.Second)
		}
		time.Sleep(30 * time.Second)
		if got := w.got(); got[len(got)-1] != "5 /n" || len(got) > 4 {
			t.Errorf("states %q", got)
		}
		lose.Store(1 << 20)
		stop()
		time.Sleep(time.Hour)
		Changed(service, "/n")
		time.Sleep(time.Hour)
		before := a.count()
		Changed(service, "/n")
		time.Sleep(time.Minute)
		if a.count() != before {
			t.Error("a notification for a client that acknowledged none")
		}
	})
}

func TestALongStateIsObservedInBlocks(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]request.Open{"UDP": Open, "TCP": OpenTCP} {
		var version atomic.Int32
		service, at := real(t, open, func(s *request.Setup) {
			s.Handler = func(time.Time, request.Request) request.Response {
				return request.Response{Status: 200, Body: append(body(5000), byte(version.Load()))}
			}
		})
		client, _ := real(t, open, nil)
		states := make(chan []byte, 10)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- Observe(ctx, client, at, "/long", func(_ time.Time, r request.Response) { states <- r.Body })
		}()
		for i := range 3 {
			select {
			case got := <-states:
				if len(got) != 5001 || got[5000] != byte(i) {
					t.Errorf("%s: state %d has %d bytes", name, i, len(got))
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("%s: no state %d", name, i)
			}
			version.Add(1)
			Changed(service, "/long")
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestWhatIsNotThereCannotBeObserved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAir()
		a.peer(t, server, func(s *request.Setup) {
			s.Handler = func(time.Time, request.Request) request.Response { return request.Response{Status: 404} }
		})
		client := a.peer(t, "", nil)
		err := Observe(t.Context(), client, server, "/gone", func(time.Time, request.Response) { t.Error("a state") })
		if request.ReasonOf(err) != request.Rejected {
			t.Errorf("%v; want it rejected", err)
		}
	})
}

func TestAChangeDuringTheRegistrationIsNotLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, resource := newAir(), &counter{}
		const work = 200 * time.Millisecond
		service := a.peer(t, server, func(s *request.Setup) {
			s.Handler = func(at time.Time, r request.Request) request.Response {
				state := resource.handle(at, r)
				time.Sleep(work)
				return state
			}
		})
		client := a.peer(t, "", nil)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var w watched
		go func() { _ = Observe(ctx, client, server, "/n", w.each) }()
		time.Sleep(work / 2)
		resource.value.Add(1)
		Changed(service, "/n")
		time.Sleep(time.Second)
		resource.value.Add(1)
		Changed(service, "/n")
		time.Sleep(time.Second)
		if got, want := w.got(), []string{"0 /n", "1 /n", "2 /n"}; !slices.Equal(got, want) {
			t.Errorf("states %q; want %q", got, want)
		}
	})
}

func TestOverTCPNotificationsFollowTheFirstResponse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		resource := &counter{}
		var p *Peer
		p, err := open(request.Setup{TimeoutSeconds: 10, Handler: func(at time.Time, r request.Request) request.Response {
			state := resource.handle(at, r)
			if resource.value.CompareAndSwap(0, 1) {
				Changed(p, "/n")
			}
			return state
		}}, func(c *core, _ request.Setup) (transport, error) { return newTCP(c), nil })
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close(context.Background())
		s := p.transport.(*tcpTransport).start(near, "")
		register := message.Message{Code: codes.GET, Token: message.Token("tok")}
		addUint(&register, message.Observe, 0)
		add(&register, message.URIPath, []byte("n"))
		s.handlers <- struct{}{}
		written := make(chan struct{})
		if response, _ := s.respond(register, 0, time.Now(), written); string(response.Payload) != "0 /n" {
			t.Errorf("response %q; want the state before the change", response.Payload)
		}
		if got := strings.Join(codesFrom(far), ", "); got != "7.01" {
			t.Errorf("before the response: %s; want the CSM only", got)
		}
		close(written)
		if got := strings.Join(codesFrom(far), ", "); got != "2.05" {
			t.Errorf("after the response: %s; want the notification", got)
		}
	})
}
