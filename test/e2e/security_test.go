//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// unauthorisedConfig is for a Mosquitto without a password that tries to bridge to the broker on its node.
const unauthorisedConfig = `listener 1999 127.0.0.1
log_dest stderr
connection stranger
address 127.0.0.1:1883
topic # both 0
`

func TestBrokersWithSecurityServeTheirClientsOnlyAndNobodyReadsAlong(t *testing.T) {
	t.Parallel()
	b := makeExperiment(newNamespace(t), "secured").Network("wan", "198.18.9.0/24", "baseline").
		Broker("hub").Broker("spoke", "hub").Broker("gate").Publisher("bft", "spoke", "500ms", 2).Subscriber("picture", "hub").
		Image("stranger", mosquittoImage(t), "/usr/sbin/mosquitto", "-c", "/etc/stranger.conf").
		Node("nor", "wan", "hub", "picture").Node("prt", "wan", "spoke", "bft").Node("usa", "wan", "gate", "stranger").
		Duration("22s").Start("2s", "bft").Stop("20s", "bft")
	b.Spec.Apps[0].Security = &v1alpha1.Security{TLS: true, Password: true}
	b.Spec.Apps[1].Security = b.Spec.Apps[0].Security
	b.Spec.Apps[2].Security = &v1alpha1.Security{Password: true}
	b.Spec.Apps[3].Publisher.Lead = "10s" // the bridge is up by then, also if it had to try again
	b.Spec.Apps[5].Files = []v1alpha1.AppFile{{Path: "/etc/stranger.conf", Content: new(unauthorisedConfig)}}
	b.Spec.Collect = &v1alpha1.Collect{Captures: []string{"wan"}}
	e := b.Obj()
	mustCreate(t, e)
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)

	if m := resultsOf(t, done.UID).Messages; m.Sent < 30 || m.Lost != 0 || m.Received != m.Sent {
		t.Errorf("messages: %+v; want 32 sent, and every one to arrive", m)
	}
	capture := archivedText(t, done, "captures/run/wan/nor.pcapng")
	for _, clear := range []string{"PRT-UNIT001", "Feature"} {
		if strings.Contains(capture, clear) {
			t.Errorf("a topic or payload crosses in clear text: the capture has %q", clear)
		}
	}
	if len(capture) < 10_000 {
		t.Errorf("the capture has %d bytes; want some 60 messages and two handshakes", len(capture))
	}
	for log, want := range map[string]string{"logs/usa/stranger/stderr-1.log": "not authorised", "logs/usa/gate/stderr-1.log": "not authorised"} {
		if text := archivedText(t, done, log); !strings.Contains(text, want) {
			t.Errorf("%s: want %q\n%s", log, want, text)
		}
	}
}
