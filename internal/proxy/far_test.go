package proxy

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/proxy/frame"
	"vignette.dev/vignette/internal/proxy/message"
	"vignette.dev/vignette/internal/proxy/store"
	"vignette.dev/vignette/internal/proxyconfig"
	"vignette.dev/vignette/internal/syncbuffer"
)

// openFarIn runs a far proxy in a folder of up to limit bytes, and returns it with its message log. end is its end by a kill.
func openFarIn(t *testing.T, folder string, limit int64) (f *far, log *syncbuffer.Buffer, end func()) {
	t.Helper()
	s, records, err := store.Open(folder, limit)
	if err != nil {
		t.Fatal(err)
	}
	log = &syncbuffer.Buffer{}
	ctx, cancel := context.WithCancel(context.Background())
	end = func() {
		cancel()
		s.Close()
	}
	t.Cleanup(end)
	config := proxyconfig.Config{Instance: "b/far"}.WithDefaults()
	recorder := &recorder{log: messagelog.NewWriter(log), instance: config.Instance, topic: "t", warn: func(text string) { t.Log(text) }}
	return openFar(ctx, config, s, records, newMetrics(config.Instance), recorder), log, end
}

// requestFrame returns a POST as a near proxy sends it.
func requestFrame(t *testing.T, url, body string) []byte {
	t.Helper()
	var content bytes.Buffer
	head := message.Head{Start: "POST " + url + "/ HTTP/1.1", Fields: []string{"Content-Length: 1"}}
	if _, err := frame.WriteContent(&content, head, strings.NewReader(body), func() []string { return nil }); err != nil {
		t.Fatal(err)
	}
	return frame.Frame{Kind: frame.Request, ID: frame.ID{1}, Deadline: time.Now().Add(20 * time.Second), Content: content.Bytes()}.Append(nil, proxyconfig.CompressionNone)
}

func kindOf(t *testing.T, b []byte) frame.Kind {
	t.Helper()
	answer, err := frame.Parse(b, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Kind
}

func TestARequestWhoseResponseTheFullDiskLacksIsNotRunAgainAfterAKill(t *testing.T) {
	t.Parallel()
	folder, service := t.TempDir(), newCounter(t)
	request := requestFrame(t, service.URL, "x")
	for i, want := range []frame.Kind{frame.Response, frame.Failure, frame.Failure} {
		f, _, end := openFarIn(t, folder, 10) // less than any response
		if got := kindOf(t, f.handle(context.Background(), request)); got != want {
			t.Errorf("process %d answers with a frame of kind %v; want %v", i, got, want)
		}
		f.wait()
		end()
	}
	if n := service.of("x"); n != 1 {
		t.Errorf("ran %d times; want once", n)
	}
}

func TestAnAcknowledgedResponseIsGoneAndItsRequestNeverRunsAgain(t *testing.T) {
	t.Parallel()
	folder, service := t.TempDir(), newCounter(t)
	f, _, end := openFarIn(t, folder, 1<<20)
	request := requestFrame(t, service.URL, "x")
	if got := kindOf(t, f.handle(context.Background(), request)); got != frame.Response {
		t.Fatalf("a frame of kind %v; want a response", got)
	}
	next := frame.Frame{Kind: frame.Query, ID: frame.ID{2}, Deadline: time.Now().Add(time.Minute), Acknowledged: []frame.ID{{1}, {9}}}.Append(nil, proxyconfig.CompressionNone)
	f.wait()
	if f.handle(context.Background(), next); f.store.Used() != 0 {
		t.Errorf("%d bytes are kept of an acknowledged response; want none", f.store.Used())
	}
	for range 2 {
		if got := kindOf(t, f.handle(context.Background(), request)); got != frame.Failure {
			t.Errorf("a late copy is answered by a frame of kind %v; want a failure", got)
		}
		end()
		f, _, end = openFarIn(t, folder, 1<<20)
	}
	if n := service.of("x"); n != 1 {
		t.Errorf("ran %d times; want once", n)
	}
}

func TestARequestThatIsPostponedIsLoggedAsReceivedOnce(t *testing.T) {
	t.Parallel()
	f, log, _ := openFarIn(t, t.TempDir(), 1<<20)
	request := requestFrame(t, newCounter(t).URL, "x")
	f.hold(heldLimit)
	for range 2 {
		if got := kindOf(t, f.handle(context.Background(), request)); got != frame.Busy {
			t.Fatalf("without room for a response a frame of kind %v; want busy", got)
		}
	}
	f.hold(-heldLimit)
	if got := kindOf(t, f.handle(context.Background(), request)); got != frame.Response {
		t.Fatalf("a frame of kind %v; want a response", got)
	}
	f.wait()
	if n := strings.Count(log.String(), `"received"`); n != 1 {
		t.Errorf("received %d times; want once, in\n%s", n, log.String())
	}
}
