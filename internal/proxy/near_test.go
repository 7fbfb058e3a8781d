package proxy

import (
	"testing"
	"time"

	"vignette.dev/vignette/internal/proxy/frame"
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
