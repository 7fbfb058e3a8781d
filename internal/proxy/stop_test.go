package proxy

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"vignette.dev/vignette/internal/proxyconfig"
)

func TestARequestThatTheFarProxyHadNotRunWhenItWasStoppedIsRunByItsNextProcess(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolHTTP, func(_, far *proxyconfig.Config) { far.Limits.Concurrent = 1 })
	stopFar := p.run(p.far)
	p.run(p.near)
	slow, release := newHeldCounter(t)
	fast, client := newCounter(t), p.client()
	var done sync.WaitGroup
	done.Go(func() {
		status, answer, err := post(client, slow.URL, "slow")
		if err != nil || status != 502 || !strings.Contains(answer, "was stopped while it called the service") {
			t.Errorf("the request under way is answered %d %q, %v; want 502 and that the proxy was stopped", status, answer, err)
		}
	})
	eventually(t, "the slow run", func() bool { return slow.of("slow") == 1 })
	done.Go(func() {
		if status, answer, err := post(client, fast.URL, "fast"); err != nil || status != 200 {
			t.Errorf("the waiting request is answered %d %q, %v; want the service's response", status, answer, err)
		}
	})
	eventually(t, "the far proxy has the waiting request", func() bool { return strings.Count(p.log.String(), `"sent"`) == 2 })
	stopFar()
	release()
	if recorded, _ := filepath.Glob(filepath.Join(p.far.Folder, "far", "*.response")); len(recorded) != 1 {
		t.Errorf("the far proxy recorded responses to %d requests; want to the one that ran", len(recorded))
	}
	p.run(p.far)
	done.Wait()
	if n, m := slow.of("slow"), fast.of("fast"); n != 1 || m != 1 {
		t.Errorf("ran %d and %d times; want once each", n, m)
	}
}
