//go:build e2e && vm

package e2e

import (
	"regexp"
	"testing"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// pgmInIP is an Ethernet frame's end of header, and the IPv4 header of PGM without UDP: protocol 113.
var pgmInIP = regexp.MustCompile(`(?s)\x08\x00\x45.{8}\x71`)

func TestVMsExchangeMessagesByPGMOverRawSockets(t *testing.T) {
	needsKubeVirt(t)
	b := zeromqExperiment(newNamespace(t), "pgm-raw", v1alpha1.ZeroMQPGMRaw).Duration("45s")
	for i := range b.Spec.Nodes {
		b.Spec.Nodes[i].Runtime = v1alpha1.RuntimeVM
	}
	e := b.Obj()
	mustCreate(t, e)
	waitForBoot(t, e)
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
	if m := resultsOf(t, done.UID).Messages; m.Sent < 60 || m.Lost != 0 || m.Received != 2*m.Sent {
		t.Errorf("messages: %+v; want 78 sent, and every one to arrive at both subscribers", m)
	}
	if !pgmInIP.MatchString(archivedText(t, done, "captures/run/wan/hq.pcapng")) {
		t.Error("the capture of the broker's node has no PGM in IP")
	}
	deleteAndExpectNoMachineLeft(t, done)
}
