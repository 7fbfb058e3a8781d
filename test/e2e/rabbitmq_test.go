//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// rabbitStart is when publishers start. On a busy host RabbitMQ takes 10 s of a processor, and 5 s more for its MQTT plugin.
const rabbitStart = "45s"

// overProtocol makes a client use a protocol, with acknowledgements.
func overProtocol(app *v1alpha1.App, protocol v1alpha1.Protocol) {
	if p := app.Publisher; p != nil {
		p.Protocol, p.QoS, p.Lead = protocol, 1, "2s"
	}
	if s := app.Subscriber; s != nil {
		s.Protocol, s.QoS = protocol, 1
	}
}

func TestAMQPSTOMPAndMQTTMeetInOneRabbitMQOnAnotherNode(t *testing.T) {
	t.Parallel()
	b := makeExperiment(newNamespace(t), "rabbit").Network("wan", "198.18.9.0/24", "baseline").Duration("66s")
	protocols := []v1alpha1.Protocol{v1alpha1.ProtocolAMQP, v1alpha1.ProtocolSTOMP, v1alpha1.ProtocolMQTT}
	var publishers, subscribers []string
	for _, protocol := range protocols {
		publisher, subscriber := "send-"+string(protocol), "hear-"+string(protocol)
		publishers, subscribers = append(publishers, publisher), append(subscribers, subscriber)
		b.Publisher(publisher, "broker", "500ms", 2).Subscriber(subscriber, "broker")
		for i := len(b.Spec.Apps) - 2; i < len(b.Spec.Apps); i++ {
			overProtocol(&b.Spec.Apps[i], protocol)
		}
	}
	b.Spec.Apps = append(b.Spec.Apps, v1alpha1.App{Name: "broker", RabbitMQ: &v1alpha1.RabbitMQ{}})
	b.Node("hq", "wan", "broker").Node("veh", "wan", publishers...).Node("uav", "wan", subscribers...)
	e := b.Start(rabbitStart, publishers...).Stop("62s", publishers...).Obj()
	mustCreate(t, e)
	waitForT0(t, e, 45*time.Second)
	expectMetrics(t, e, "hq", 9464, "rabbitmq_build_info")
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)

	results := resultsOf(t, done.UID)
	// Six instances send 30 messages each. Each of the three subscribers receives all of them.
	if m := results.Messages; m.Sent < 160 || m.Expected != 3*m.Sent || m.Received != m.Expected || m.Lost != 0 {
		t.Errorf("messages: %+v; want about 180 sent, and every one to arrive at three subscribers", m)
	}
	for _, p := range results.Publishers {
		if p.Messages.Lost != 0 || p.Messages.Received == 0 {
			t.Errorf("publisher %s: %+v; want all to arrive", p.Name, p.Messages)
		}
	}
}

// TestVerneMQWithoutItsImageFailsWithinSecondsInPlainWords runs where upstream's registry cannot be reached.
func TestVerneMQWithoutItsImageFailsWithinSecondsInPlainWords(t *testing.T) {
	t.Parallel()
	b := makeExperiment(newNamespace(t), "no-vernemq").Network("wan", "198.18.9.0/24", "baseline").
		Publisher("bft", "hub", "1s", 1).Subscriber("picture", "hub").
		Node("hq", "wan", "hub", "picture").Node("veh", "wan", "bft").Start("2s", "bft").Stop("10s", "bft")
	b.Spec.Apps = append(b.Spec.Apps, v1alpha1.App{Name: "hub", VerneMQ: &v1alpha1.VerneMQ{}})
	e := b.Obj()
	mustCreate(t, e)
	ended := waitFor(t, e, finishTimeout, v1alpha1.PhaseFailed, v1alpha1.PhaseRunning)
	if ended.Status.Phase == v1alpha1.PhaseRunning {
		t.Skip("this cluster has VerneMQ's image")
	}
	for _, want := range []string{"app hub", "vernemq/vernemq:"} {
		if !strings.Contains(ended.Status.Message, want) {
			t.Errorf("message %q does not name %q", ended.Status.Message, want)
		}
	}
}
