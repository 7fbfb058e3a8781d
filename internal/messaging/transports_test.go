package messaging

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/messagingconfig"
	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/traffic/encoding"
)

func TestEveryTransportCarriesEveryEncodingThatItCanWithReceipts(t *testing.T) {
	for _, transport := range messagingconfig.Transports {
		for _, coded := range encoding.Encodings(encoding.Military) {
			if transport.SOAP && (coded == encoding.JSON || coded == encoding.CBOR) {
				continue
			}
			t.Run(transport.Name+" "+coded, func(t *testing.T) {
				t.Parallel()
				sent := exchange(t, transport.Name, coded)
				for _, status := range []messagelog.Status{messagelog.Sent, messagelog.Received, messagelog.Processed, messagelog.Receipt} {
					if sent[status] != 3 {
						t.Errorf("%d events %s of 3 messages; all: %v", sent[status], status, sent)
					}
				}
			})
		}
	}
}

func TestAClientCallsAServerOfTheUsersOwnAtItsPathAndServesNobody(t *testing.T) {
	asked := make(chan string, 9)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.Header.Get("Content-Type"), " ", strings.Contains(string(body), "a/chat_1"))
	}))
	defer server.Close()
	config := configOf("a")
	config.Transport, config.Port, config.ClientOnly, config.Path = "http", server.Listener.Addr().(*net.TCPAddr).Port, true, "/api/tracks?all=1"
	config.Push = &messagingconfig.Push{To: addressed(&config, "b", "b"), PeriodSeconds: 3600, Payload: "geojson"}
	config.Addressees[0].Address = server.Listener.Addr().String()
	var written syncbuffer.Buffer
	s, schedule, err := newService(config, messagelog.NewWriter(&written), func(text string) { t.Log(text) })
	if err != nil {
		t.Fatal(err)
	}
	if s.peer, err = s.open(Transports["http"]); err != nil { // the port is the server's
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.run(ctx, schedule, time.Now(), make(chan struct{})) })
	if got, want := <-asked, "POST /api/tracks?all=1 application/geo+json true"; got != want {
		t.Errorf("the server was asked %q; want %q", got, want)
	}
	stop()
	running.Wait()
	if err := s.log.Flush(); err != nil || strings.Count(written.String(), `"receipt"`) != 1 {
		t.Errorf("%v, log %s; want one receipt", err, written.String())
	}
}

// exchange lets a service send three messages to another one, and returns how often each event was logged.
func exchange(t *testing.T, transport, coded string) map[messagelog.Status]int {
	t.Helper()
	base := func(node string, port int) messagingconfig.Config {
		c := configOf(node)
		c.Transport, c.Port, c.Encoding = transport, port, coded
		return c
	}
	from, to := base("a", testport.Free(t)), base("b", testport.Free(t))
	from.AddDestination("b", []messagingconfig.Addressee{{Address: fmt.Sprintf("127.0.0.1:%d", to.Port), Topic: to.Topic}})
	for i := range 3 {
		from.Messages = append(from.Messages, messagingconfig.Message{AtSeconds: float64(i) / 20, Type: "TEXT", From: "a", To: "b", Text: "hello"})
	}
	var written syncbuffer.Buffer
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	services, schedules := make([]*service, 2), make([]schedule, 2)
	for i, config := range []messagingconfig.Config{to, from} { // the server listens before its client sends
		var err error
		if services[i], schedules[i], err = newService(config, messagelog.NewWriter(&written), func(text string) { t.Log(text) }); err != nil {
			t.Fatal(err)
		}
		if services[i].peer, err = services[i].open(Transports[transport]); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range services {
		running.Go(func() {
			s.run(ctx, schedules[i], time.Now(), make(chan struct{}))
			if err := s.log.Flush(); err != nil {
				t.Error(err)
			}
		})
	}
	for deadline := time.Now().Add(10 * time.Second); strings.Count(written.String(), `"receipt"`) < 3 && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	stop()
	running.Wait()
	counted, ids := map[messagelog.Status]int{}, []string{"a/chat_1", "a/chat_2", "a/chat_3"}
	if bad, err := messagelog.Read(strings.NewReader(written.String()), func(r messagelog.Record) {
		counted[r.Status]++
		if !slices.Contains(ids, r.ID) || r.Topic != to.Topic {
			t.Errorf("id %s, topic %s; want one of %v, %s", r.ID, r.Topic, ids, to.Topic)
		}
	}); err != nil || bad > 0 {
		t.Errorf("%d bad lines, %v", bad, err)
	}
	return counted
}
