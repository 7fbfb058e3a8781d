//go:build e2e && long

package e2e

import (
	"strings"
	"testing"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// The brokers of a cluster take most of a minute to start side by side on a busy host.
func TestLongRabbitMQsOfTwoNodesAreOneMQTTMeshOverTheRadio(t *testing.T) {
	t.Parallel()
	b := makeExperiment(newNamespace(t), "mesh").Duration("112s").
		Publisher("bft", "mesh", "1s", 2).Subscriber("picture", "mesh").
		Node("nor", "wan", "mesh", "bft", "picture").Node("prt", "wan", "mesh", "bft", "picture")
	rate := v1alpha1.DataRate("2Mbit")
	b.Spec.Networks = []v1alpha1.Network{{Name: "wan", Subnet: "198.18.9.0/24", Link: &v1alpha1.LinkModel{Rate: &rate, Delay: "20ms", Loss: "1%"}}}
	for i := range b.Spec.Apps {
		overProtocol(&b.Spec.Apps[i], v1alpha1.ProtocolMQTT)
	}
	b.Spec.Apps = append(b.Spec.Apps, v1alpha1.App{Name: "mesh", RabbitMQ: &v1alpha1.RabbitMQ{Cluster: true}})
	b.Spec.Collect = &v1alpha1.Collect{Captures: []string{"wan"}}
	e := b.Start("90s", "bft").Stop("107s", "bft").Obj()
	mustCreate(t, e)
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)

	// Four instances send 15 messages each, and the pictures of both nodes have all of them.
	if m := resultsOf(t, done.UID).Messages; m.Sent < 50 || m.Expected != 2*m.Sent || m.Received != m.Expected || m.Lost != 0 {
		t.Errorf("messages: %+v; want about 60 sent, and every one to arrive on both nodes", m)
	}
	if capture := archivedText(t, done, "captures/run/wan/nor.pcapng"); !strings.Contains(capture, "PRT-UNIT001") {
		t.Error("no topic of the other node is in the capture of the radio")
	}
}
