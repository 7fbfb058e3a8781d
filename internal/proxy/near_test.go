package proxy

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vignette.dev/vignette/internal/proxy/frame"
	"vignette.dev/vignette/internal/proxy/message"
	"vignette.dev/vignette/internal/proxy/store"
	"vignette.dev/vignette/internal/proxyconfig"
)

func TestTheNextRequestAcknowledgesAResponseHoweverSoonItComes(t *testing.T) {
	t.Parallel()
	s, records, err := store.Open(t.TempDir(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	config := proxyconfig.Config{Instance: "a/near", Near: &proxyconfig.Near{DeadlineSeconds: 60}}.WithDefaults()
	n := openNear(t.Context(), config, s, records, nil, newMetrics(config.Instance), &recorder{instance: config.Instance, warn: func(text string) { t.Log(text) }})
	for i := range 100 {
		e := n.newEntry(store.Record{ID: frame.ID{byte(i)}, Deadline: time.Now().Add(time.Minute)}, false)
		e.clients = 1
		n.enqueue(e)
		acknowledged := make(chan int)
		go func() {
			<-e.ended // the client has its response, and sends the next request
			acknowledged <- len(n.takeAcknowledged())
		}()
		if err := n.answered(e, frame.Frame{Kind: frame.Response, ID: e.request.ID, Content: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		if got := <-acknowledged; got != 1 {
			t.Fatalf("response %d: the next request acknowledges %d; want 1", i+1, got)
		}
	}
}

func TestARepetitionMayTakeLongWhileItMoves(t *testing.T) {
	for name, c := range map[string]struct {
		pause time.Duration
		want  int
	}{
		"moving":  {stallTimeout - time.Second, http.StatusGatewayTimeout},
		"stopped": {stallTimeout + time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := proxyconfig.Config{Instance: "a/near", Near: &proxyconfig.Near{DeadlineSeconds: 3600}}.WithDefaults()
				var writing sync.WaitGroup
				defer writing.Wait()
				conn, server := net.Pipe()
				defer conn.Close()
				n := &near{config: config, metrics: newMetrics(config.Instance), ctx: t.Context()}
				head := message.Head{Start: "POST http://b/ HTTP/1.1", Fields: []string{keyField + ": 1", "Content-Length: 5"}}
				request, err := message.ParseRequest(head.Start)
				if err != nil {
					t.Fatal(err)
				}
				id, _ := (&client{near: n, conn: server}).idOf(request, head)
				n.entries = map[frame.ID]*entry{id: {done: true, keyed: true, refusal: &refusal{http.StatusGatewayTimeout, errorLink, "late"}}}
				go n.serveClient(server)
				writing.Go(func() {
					_, err := conn.Write(head.Append(nil))
					for range 5 {
						if err == nil { // the proxy has not ended the connection
							time.Sleep(c.pause)
							_, err = conn.Write([]byte("x"))
						}
					}
				})
				response, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if c.want == 0 {
					if err == nil {
						t.Errorf("answered with status %d; want the end of the connection", response.StatusCode)
					}
					return
				}
				if err != nil {
					t.Fatalf("%v; want the first request's response", err)
				}
				if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != c.want {
					t.Errorf("status %d, %v; want %d", response.StatusCode, err, c.want)
				}
			})
		})
	}
}

func TestARequestWhoseDeadlinePassesWhileItIsReadIsToldSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, err := store.Open(t.TempDir(), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		config := proxyconfig.Config{Instance: "a/near", Near: &proxyconfig.Near{DeadlineSeconds: 3600}}.WithDefaults()
		var writing sync.WaitGroup
		defer writing.Wait()
		conn, server := net.Pipe()
		defer conn.Close()
		n := &near{config: config, store: s, metrics: newMetrics(config.Instance), ctx: t.Context(), entries: map[frame.ID]*entry{}}
		go n.serveClient(server)
		writing.Go(func() {
			_, err := conn.Write([]byte("POST http://b/ HTTP/1.1\r\n" + timeoutField + ": 90\r\nContent-Length: 5\r\n\r\n"))
			for err == nil {
				time.Sleep(stallTimeout - time.Second)
				_, err = conn.Write([]byte("x"))
			}
		})
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		if want := "The request is refused: its deadline passed before its end.\n"; err != nil || response.StatusCode != http.StatusRequestTimeout || string(text) != want {
			t.Errorf("status %d, %q, %v; want 408, %q", response.StatusCode, text, err, want)
		}
	})
}

func TestAClientGetsAResponseThatCameBeforeItsDeadlineHoweverLateItReadsIt(t *testing.T) {
	for name, room := range map[string]int64{"on the disk": 1 << 20, "held, as the disk is full": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				folder := t.TempDir()
				s, records, err := store.Open(folder, room)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				config := proxyconfig.Config{Instance: "a/near", Near: &proxyconfig.Near{DeadlineSeconds: 60}}.WithDefaults()
				n := openNear(t.Context(), config, s, records, nil, newMetrics(config.Instance), &recorder{instance: config.Instance, warn: func(text string) { t.Log(text) }})
				e := n.newEntry(store.Record{ID: frame.ID{1}, Deadline: time.Now().Add(time.Minute)}, false)
				e.keyed, e.clients = true, 1
				n.enqueue(e)
				var content bytes.Buffer
				if _, err := frame.WriteContent(&content, message.Head{Start: "HTTP/1.1 200 OK", Fields: []string{"Content-Length: 4"}}, strings.NewReader("late"), func() []string { return nil }); err != nil {
					t.Fatal(err)
				}
				if err := n.answered(e, frame.Frame{Kind: frame.Response, ID: e.request.ID, Content: content.Bytes()}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Minute)
				if again, err := n.reserve(e.request.ID); again != nil || err != nil {
					t.Errorf("a repetition after the deadline joins the old request, %v; want a new one", err)
				}
				response, answer, _, err := n.response(e, http.MethodGet)
				if err != nil {
					t.Fatalf("%v; want the response", err)
				}
				defer response.Close()
				if text, err := io.ReadAll(answer); err != nil || string(text) != "late" {
					t.Errorf("%q, %v; want the response's body", text, err)
				}
				n.left(nil, e, true)
				if files, _ := filepath.Glob(filepath.Join(folder, "*.response")); len(files) > 0 || e.held != nil {
					t.Errorf("%v on the disk, %d bytes held when the last client has left; want none", files, len(e.held))
				}
			})
		})
	}
}
