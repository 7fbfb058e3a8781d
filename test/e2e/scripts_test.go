//go:build e2e

package e2e

import (
	"testing"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// scripted has two nodes over a link that loses a tenth: MGEN's flows, a publisher with a pattern, and a script of messages.
func scripted(namespace string) *v1alpha1.Experiment {
	b := makeExperiment(namespace, "scripts").Duration("24s")
	b.Spec.Networks = []v1alpha1.Network{{Name: "wan", Subnet: "198.18.9.0/24", Link: &v1alpha1.LinkModel{Rate: new(v1alpha1.DataRate("2Mbit")), Delay: "20ms", Loss: "10%"}}}
	b.Spec.Apps = []v1alpha1.App{
		{Name: "flows", MGEN: &v1alpha1.MGEN{Script: "2.0 ON 1 UDP DST b/5000 PERIODIC [20 200] COUNT 300\n2.0 ON 2 TCP DST b/5001 PERIODIC [1 3000] COUNT 8\n" +
			"2.0 ON 3 UDP DST 239.1.2.3/5000 PERIODIC [10 100] COUNT 100\n"}},
		{Name: "sink", MGEN: &v1alpha1.MGEN{Script: "0.0 LISTEN UDP 5000\n0.0 LISTEN TCP 5001\n0.0 JOIN 239.1.2.3\n"}},
		{Name: "tracks", Publisher: &v1alpha1.Publisher{Protocol: v1alpha1.ProtocolMQTTUDP, Lead: "2s",
			Pattern: &v1alpha1.Pattern{MGEN: "0.0 ON 1 PERIODIC [40 100]\n2.5 MOD 1 POISSON [20 300] COUNT 200\n"}}},
		{Name: "picture", Subscriber: &v1alpha1.Subscriber{Protocol: v1alpha1.ProtocolMQTTUDP, Topics: []string{"/#"}}},
		{Name: "chat", Script: &v1alpha1.MessageScript{Protocol: "mqtt-udp", Messages: []v1alpha1.ScriptedMessage{
			{At: "3s", From: "a", To: "b", Text: "move"}, {At: "4s", From: "b", To: "all", Text: "moving"}, {At: "4.5s", From: "c", To: "b", Text: "seen"}}}},
	}
	b.Node("a", "wan", "flows", "tracks", "chat").Node("b", "wan", "sink", "picture").Node("c", "wan", "chat")
	b.Spec.Nodes[1].Apps = append(b.Spec.Nodes[1].Apps, "chat")
	return b.Obj()
}

func publisherOf(t *testing.T, results runapi.Results, name string) runapi.PublisherResult {
	t.Helper()
	for _, p := range results.Publishers {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("there is no publisher %s in %+v", name, results.Publishers)
	return runapi.PublisherResult{}
}

func TestScriptsDriveRawFlowsAndPublishersAndTheirLossIsTheLinks(t *testing.T) {
	t.Parallel()
	e := scripted(newNamespace(t))
	mustCreate(t, e)
	results := resultsOf(t, waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded).UID)
	// A tenth is lost: n·0.9 ± 5·sqrt(n·0.9·0.1) arrive.
	for name, want := range map[string]struct{ sent, least, most int64 }{
		"a/flows/1": {300, 244, 296},
		"a/flows/2": {8, 8, 8}, // TCP repeats what is lost
		"a/flows/3": {100, 75, 100},
		"a/tracks":  {300, 244, 296},
	} {
		m := publisherOf(t, results, name).Messages
		if m.Sent != want.sent || m.Expected != want.sent || m.Received < want.least || m.Received > want.most || m.Duplicates != 0 {
			t.Errorf("%s: %+v; want %d sent and expected once each, %d to %d received", name, m, want.sent, want.least, want.most)
		}
	}
	for name, expected := range map[string]int64{"a/chat": 1, "b/chat": 2, "c/chat": 1} {
		if m := publisherOf(t, results, name).Messages; m.Sent != 1 || m.Expected != expected {
			t.Errorf("%s: %+v; want 1 message, expected by the %d whom it is to", name, m, expected)
		}
	}
	if d := publisherOf(t, results, "a/flows/1").DelaySeconds; d == nil || d.Min < 0.020 || d.Median > 0.060 {
		t.Errorf("delays of flow 1: %+v; want those of the link, 20 ms and a little", d)
	}
}
