//go:build e2e

package e2e

import (
	"testing"
	"time"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestMQTTSNPublishersOfEveryLevelReachMQTTSNAndMQTTSubscribersByTwoGateways(t *testing.T) {
	t.Parallel()
	b := makeExperiment(newNamespace(t), "mqtt-sn").Network("wan", "198.18.9.0/24", "baseline").Broker("broker").
		Publisher("bare", "transparent", "500ms", 1).Publisher("zero", "transparent", "500ms", 2).Publisher("one", "aggregating", "500ms", 2).
		Subscriber("hear-sn", "transparent").Subscriber("hear-sn-far", "aggregating").Subscriber("hear-mqtt", "broker")
	for i := range b.Spec.Apps {
		app := &b.Spec.Apps[i]
		if p := app.Publisher; p != nil {
			p.Protocol, p.Lead = v1alpha1.ProtocolMQTTSN, "2s"
			p.QoS = map[string]v1alpha1.PublishQoS{"bare": -1, "zero": 0, "one": 1}[app.Name]
		}
		if s := app.Subscriber; s != nil && app.Name != "hear-mqtt" {
			s.Protocol, s.QoS = v1alpha1.ProtocolMQTTSN, 1
		}
	}
	b.Spec.Apps = append(b.Spec.Apps,
		v1alpha1.App{Name: "transparent", MQTTSNGateway: &v1alpha1.MQTTSNGateway{To: "broker"}},
		v1alpha1.App{Name: "aggregating", MQTTSNGateway: &v1alpha1.MQTTSNGateway{To: "broker", Mode: v1alpha1.GatewayAggregating, Advertise: new(v1alpha1.Duration("5s"))}})
	e := b.Node("hq", "wan", "broker", "transparent", "hear-sn", "hear-mqtt").Node("relay", "wan", "aggregating").
		Node("veh", "wan", "bare", "zero", "one").Node("uav", "wan", "hear-sn-far").
		Duration("20s").Start("6s", "bare", "zero", "one").Stop("18s", "bare", "zero", "one").Obj()
	mustCreate(t, e)
	waitForT0(t, e, 15*time.Second)
	expectMetrics(t, e, "relay", 9464, "vignette_mqttsn_gateway_clients")
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)

	results := resultsOf(t, done.UID)
	if m := results.Messages; m.Sent < 90 || m.Expected != 3*m.Sent || m.Received != m.Expected || m.Lost != 0 {
		t.Errorf("messages: %+v; want about 100 sent, and every one to arrive at three subscribers", m)
	}
	if len(results.Publishers) != 5 {
		t.Errorf("%d publishers; want 5", len(results.Publishers))
	}
	for _, p := range results.Publishers {
		if m := p.Messages; m.Sent < 18 || m.Lost != 0 || m.Duplicates != 0 {
			t.Errorf("publisher %s: %+v; want about 20 messages, and all of them once", p.Name, m)
		}
	}
}
