//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// zeromqExperiment has three publishers on a node, and subscribers on it and on another one. Their broker is on a third.
func zeromqExperiment(namespace, name string, transport v1alpha1.ZeroMQTransport) *experimentBuilder {
	b := makeExperiment(namespace, name).
		Publisher("bft", "broker", "500ms", 3).Subscriber("picture", "broker").Subscriber("watch", "broker").
		Node("hq", "wan", "broker").Node("veh", "wan", "bft", "picture").Node("uav", "wan", "watch").
		Duration("30s").Start("2s", "bft").Stop("27s", "bft")
	rate := v1alpha1.DataRate("500kbit")
	b.Spec.Networks = []v1alpha1.Network{{Name: "wan", Subnet: "198.18.9.0/24", Link: &v1alpha1.LinkModel{Rate: &rate, Delay: "20ms", Loss: "2%"}}}
	for i := range b.Spec.Apps {
		if p := b.Spec.Apps[i].Publisher; p != nil {
			// PGM receivers learn of a silent sender every 8 s, and request repetitions only after that.
			p.Protocol, p.Lead = v1alpha1.ProtocolZeroMQ, "12s"
		}
		if s := b.Spec.Apps[i].Subscriber; s != nil {
			s.Protocol = v1alpha1.ProtocolZeroMQ
		}
	}
	b.Spec.Apps[2].Subscriber.Topics = []string{"/VEH/+/+/location"}
	b.Spec.Apps = append(b.Spec.Apps, v1alpha1.App{Name: "broker", ZeroMQBroker: &v1alpha1.ZeroMQBroker{Transport: transport}})
	b.Spec.Drain = v1alpha1.Drain{Max: "15s", QuietFor: "3s"}
	b.Spec.Collect = &v1alpha1.Collect{Captures: []string{"wan"}}
	return b
}

func TestZeroMQReachesSubscribersThroughABrokerOverTheRadio(t *testing.T) {
	t.Parallel()
	for name, transport := range map[string]v1alpha1.ZeroMQTransport{"tcp": v1alpha1.ZeroMQTCP, "pgm": v1alpha1.ZeroMQPGM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := zeromqExperiment(newNamespace(t), "zeromq-"+name, transport).Obj()
			mustCreate(t, e)
			done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)

			// Both subscribers, on the publishers' node and on another one. TCP and PGM repeat the link's losses.
			if m := resultsOf(t, done.UID).Messages; m.Sent < 60 || m.Lost != 0 || m.Received != 2*m.Sent {
				t.Errorf("messages: %+v; want 78 sent, and every one to arrive at both subscribers", m)
			}
			capture := archivedText(t, done, "captures/run/wan/hq.pcapng")
			if !strings.Contains(capture, "VEH-UNIT001") {
				t.Error("no topic is in the capture of the broker's node")
			}
		})
	}
}
