//go:build e2e

package e2e

import (
	"path/filepath"
	"testing"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// TestTheShortFormOfE7BringsEveryProtocolToEveryOther sends a burst by each of six protocols to subscribers of all six. A missing
// message was lost between a client, a broker, the gateway or the mediator. Each pair has the time of its burst.
func TestTheShortFormOfE7BringsEveryProtocolToEveryOther(t *testing.T) {
	t.Parallel()
	e := scenario(t, filepath.Join("e7", "short", "all-at-once.yaml"))
	e.Namespace = newNamespace(t)
	mustCreate(t, e)
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
	results := resultsOf(t, done.UID)
	const protocols, burst = 6, 100
	if len(results.Publishers) != protocols {
		t.Errorf("%d publishers; want %d", len(results.Publishers), protocols)
	}
	for _, p := range results.Publishers {
		t.Logf("%s: %+v, delays %+v", p.Name, p.Messages, p.DelaySeconds)
		if m := p.Messages; m.Sent != burst || m.Expected != protocols*burst || m.Lost != 0 || m.Duplicates != 0 {
			t.Errorf("%s: %+v; want %d messages, each received once by all %d subscribers", p.Name, m, burst, protocols)
		}
	}
	if len(results.Bursts) != protocols*protocols {
		t.Errorf("times of %d pairs of protocols; want %d", len(results.Bursts), protocols*protocols)
	}
	for _, b := range results.Bursts {
		if b.Messages != burst || b.Seconds == nil || b.ConnectedSeconds == nil || *b.Seconds <= *b.ConnectedSeconds {
			t.Errorf("%s to %s: %+v; want the time of %d messages, longer than connecting took", b.PublisherProtocol, b.SubscriberProtocol, b, burst)
		}
	}
	for _, g := range results.Gaps {
		t.Logf("gap: %s: %s", g.What, g.Reason)
	}
}
