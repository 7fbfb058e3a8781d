package client

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vignette.dev/vignette/internal/soap"
	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/traffic/wsn"
	"vignette.dev/vignette/internal/traffic/wsn/wire"
	"vignette.dev/vignette/internal/trafficconfig"
)

func TestASubscriptionThatIsRefusedIsToldAndTriedAgain(t *testing.T) {
	broker := address(t)
	startBroker(t, broker, wsn.BrokerConfig{})
	var refused atomic.Bool
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: broker})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(wire.ActionSubscribe)) && refused.CompareAndSwap(false, true) {
			http.Error(w, "", http.StatusForbidden)
			return
		}
		r.Host, r.Body = broker, io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	_, l := startClient(t, subscriber(strings.TrimPrefix(front.URL, "http://"), "/PRT/#"))
	if told := l.told(); !slices.Equal(told, []string{"/PRT/# status 403 Forbidden", "/PRT/# made"}) {
		t.Errorf("told %q; want the refusal, and that it is made then", told)
	}
}

func TestAMessageThatTheBrokerCallsWrongIsNotRepeated(t *testing.T) {
	var asked atomic.Int32
	broker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write(wire.FaultEnvelope(soap.SOAP11, "", &wire.Fault{Reason: "want one Body"}, time.Now()))
	}))
	t.Cleanup(broker.Close)
	c, _ := startClient(t, publisher(strings.TrimPrefix(broker.URL, "http://"), 1))
	publish(t, c, "/PRT/x", "text")
	eventually(t, "end of the message", func() bool { _, more := c.first(); return !more })
	if n := asked.Load(); n != 1 {
		t.Errorf("sent %d times; want once", n)
	}
}

func TestAMessageThatTheBrokerFindsTooLargeIsLostWithAWarningAndTheNextGoesOn(t *testing.T) {
	for name, read := range map[string]bool{"read": true, "not read": false} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			broker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.ContentLength < 1<<20 {
					w.WriteHeader(http.StatusAccepted)
					return
				}
				asked.Add(1)
				if read {
					_, _ = io.Copy(io.Discard, r.Body)
				}
				http.Error(w, "", http.StatusRequestEntityTooLarge)
			}))
			t.Cleanup(broker.Close)
			var warned syncbuffer.Buffer
			config := publisher(strings.TrimPrefix(broker.URL, "http://"), 1)
			config.Protocol, config.Instance = "ws-notification", "prt/bft"
			l := &journal{}
			c, err := open(transport.Setup{Config: config, ClientID: "x", Warn: func(text string) { fmt.Fprintln(&warned, text) }}, l.events(), time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close(t.Context()) })
			publish(t, c, "/PRT/x", strings.Repeat("x", 4<<20))
			publish(t, c, "/PRT/x", "text")
			eventually(t, "end of both messages", func() bool { _, more := c.first(); return !more })
			if n := asked.Load(); n != 1 {
				t.Errorf("sent %d times; want once", n)
			}
			if want := "did not accept a message to /PRT/x, which is lost: status 413 Request Entity Too Large"; !strings.Contains(warned.String(), want) {
				t.Errorf("warned %q; want %q", warned.String(), want)
			}
		})
	}
}

func TestABacklogDoesNotKeepASubscriptionFromBeingRenewed(t *testing.T) {
	broker := address(t)
	startBroker(t, broker, wsn.BrokerConfig{})
	var renewed atomic.Bool
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: broker})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(wire.ActionNotify)) {
			time.Sleep(20 * time.Millisecond) // a round trip
		}
		if bytes.Contains(body, []byte(wire.ActionRenew)) {
			renewed.Store(true)
		}
		r.Host, r.Body = broker, io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	config := subscriber(strings.TrimPrefix(front.URL, "http://"), "/NOR/#")
	config.Publish = &trafficconfig.Publish{QoS: 1}
	c, _ := startClient(t, config)
	for range 200 {
		publish(t, c, "/PRT/x", "text")
	}
	eventually(t, "renewal", renewed.Load)
	if _, more := c.first(); !more {
		t.Error("the subscription is renewed after the backlog; want it during the backlog")
	}
}

func TestABrokerThatIsRestartedDuringABacklogIsSubscribedToAgain(t *testing.T) {
	t.Parallel()
	var behind atomic.Value // the broker's address
	restart := func() {
		at := address(t)
		startBroker(t, at, wsn.BrokerConfig{})
		behind.Store(at)
	}
	restart()
	var restarting atomic.Bool
	front := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: behind.Load().(string)}) },
		ModifyResponse: func(r *http.Response) error {
			if r.StatusCode == http.StatusAccepted && restarting.CompareAndSwap(true, false) {
				restart()
				r.Header.Set("Connection", "close")
			}
			return nil
		},
	})
	t.Cleanup(front.Close)
	config := subscriber(strings.TrimPrefix(front.URL, "http://"), "/NOR/#")
	config.Protocol, config.Instance, config.Publish = "ws-notification", "prt/bft", &trafficconfig.Publish{}
	l := &journal{}
	c, err := open(transport.Setup{Config: config, ClientID: "x", Warn: func(text string) { t.Log(text) }}, l.events(), time.Hour) // no renewal in time
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(t.Context()) })
	eventually(t, "connection", l.isUp)
	for i := range 6 {
		time.Sleep(shortest + 100*time.Millisecond)
		restarting.Store(true)
		for range 10 {
			publish(t, c, "/PRT/x", "text")
		}
		eventually(t, "the backlog's end", func() bool { _, more := c.first(); return !more })
		p, _ := startClient(t, publisher(behind.Load().(string), 1))
		eventually(t, fmt.Sprintf("a message after restart %d", i+1), func() bool {
			publish(t, p, "/NOR/x", fmt.Sprint(i))
			return slices.Contains(l.got(), fmt.Sprintf("/NOR/x %d", i))
		})
	}
}

func TestAMessageThatCannotBeReadTakesNoOthersWithIt(t *testing.T) {
	l := &journal{}
	c := &client{setup: transport.Setup{Config: subscriber("nor:8080", "#")}, events: l.events()}
	var messages []wire.NotificationMessage
	for _, content := range []string{"<a/>", `<v:Base64 xmlns:v="https://vignette.dev/wsn">?</v:Base64>`, "<b/>"} {
		messages = append(messages, wire.NotificationMessage{Topic: wire.TopicOf("t").Expression(), Message: []byte(content)})
	}
	if err := c.received(time.Now(), messages); err == nil {
		t.Error("nothing is refused")
	}
	if got := l.got(); !slices.Equal(got, []string{"t <a/>", "t <b/>"}) {
		t.Errorf("got %q; want the first and the last", got)
	}
}

func TestANotifyThatIsTooLargeOrCutIsRefusedInPlainWords(t *testing.T) {
	for name, c := range map[string]struct {
		announced, sent int
		want            string
	}{
		"too large": {wire.MaxBytes + 1, wire.MaxBytes + 1, "413 the Notify is too large: want at most 8388608 bytes\n"},
		"cut":       {100, 10, "400 the Notify ended before it was whole\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var warnings []string
			e := &consumer{client: &client{setup: transport.Setup{Warn: func(text string) { warnings = append(warnings, text) }}}}
			server := httptest.NewServer(e)
			t.Cleanup(server.Close)
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "POST %s0 HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", consumerPath, c.announced, strings.Repeat("x", c.sent))
			_ = conn.(*net.TCPConn).CloseWrite()
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			text, _ := io.ReadAll(answer.Body)
			if got := fmt.Sprintf("%d %s", answer.StatusCode, text); got != c.want {
				t.Errorf("answer %q; want %q", got, c.want)
			}
			if (len(warnings) == 1) != (answer.StatusCode == http.StatusRequestEntityTooLarge) {
				t.Errorf("warnings %q; want one of a message that is lost for its size", warnings)
			}
		})
	}
}
