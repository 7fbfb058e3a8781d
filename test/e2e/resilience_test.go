//go:build e2e

package e2e

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// One network has two brokers, the first of which stops. On the other, two publishers exceed their radios' capacity, and one of them adapts.
func TestClientsFailOverAndAPublisherFollowsItsRadio(t *testing.T) {
	t.Parallel()
	rate := v1alpha1.DataRate("9.8kbit")
	b := makeExperiment(newNamespace(t), "resilience").Duration("40s").
		Network("lan", "198.18.8.0/24", "baseline").
		Network("wan", "198.18.9.0/24", "").Model(func(n *v1alpha1.Network) {
		n.Link = &v1alpha1.LinkModel{Rate: &rate, Delay: "100ms", Loss: "0%", Limit: 1000}
	}).
		Broker("first").Broker("second").Publisher("bft", "nor/first", "500ms", 1).Subscriber("picture", "nor/first").
		Publisher("fixed", "", "100ms", 1).Publisher("adapting", "", "100ms", 1).Subscriber("listener", "").
		Node("nor", "lan", "first").Node("prt", "lan", "second").Node("usa", "lan", "bft", "picture").
		Node("a", "wan", "fixed").Node("b", "wan", "adapting").Node("c", "wan", "listener").
		Start("2s", "bft", "fixed", "adapting").Stop("12s", "first").Stop("38s", "bft", "fixed", "adapting")
	for i := range b.Spec.Apps {
		switch app := &b.Spec.Apps[i]; app.Name {
		case "bft":
			app.Publisher.Failover, app.Publisher.QoS = []string{"prt/second"}, 1
		case "picture":
			app.Subscriber.Failover, app.Subscriber.QoS = []string{"prt/second"}, 1
		case "adapting":
			app.Publisher.AdaptRate = &v1alpha1.RateAdaptation{HighFrames: 8, LowFrames: ptr.To(int32(2)), MaxPeriod: "2s"}
		default:
		}
	}
	e := b.Obj()
	mustCreate(t, e)
	waitFor(t, e, finishTimeout, v1alpha1.PhaseRunning)
	expectMetrics(t, e, "prt", 9464, "vignette_mosquitto_clients_connected")
	results := resultsOf(t, waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded).UID)

	publishers := map[string]runapi.PublisherResult{}
	for _, p := range results.Publishers {
		publishers[p.Name] = p
	}
	fixed, adapting := publishers["a/fixed"], publishers["b/adapting"]
	if fixed.DelaySeconds == nil || adapting.DelaySeconds == nil || adapting.Messages.Sent*2 > fixed.Messages.Sent || adapting.Messages.Lost > 0 ||
		adapting.DelaySeconds.Max > 8 || adapting.DelaySeconds.Max > fixed.DelaySeconds.Max/2 {
		t.Errorf("fixed %+v, adapting %+v; want the adapting one to send less, to lose nothing, and to wait 8 s at most", fixed, adapting)
	}
	t.Logf("fixed: %+v %+v; adapting: %+v %+v", fixed.Messages, fixed.DelaySeconds, adapting.Messages, adapting.DelaySeconds)
	if m := publishers["usa/bft"].Messages; m.Sent < 65 || m.Lost > 2 {
		t.Errorf("through the brokers: %+v; want 72 messages, and at most 2 lost, which the first broker had acknowledged and not delivered", m)
	}
	for what, want := range map[string]string{
		"connection of usa/bft": "brokers: nor:1883, then prt:1883", "connection of usa/picture": "brokers: nor:1883, then prt:1883",
		"period of b/adapting": "adapted to the queue of the node's radio",
	} {
		found := ""
		for _, gap := range slices.Concat(results.Gaps, results.Notes) {
			if gap.What == what {
				found = gap.Reason
			}
		}
		if !strings.Contains(found, want) {
			t.Errorf("gap or note %q says %q; want %q", what, found, want)
		}
	}
}
