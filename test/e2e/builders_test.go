//go:build e2e

package e2e

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// experimentBuilder builds experiments so that tests read as sentences.
type experimentBuilder struct{ v1alpha1.Experiment }

func makeExperiment(namespace, name string) *experimentBuilder {
	b := &experimentBuilder{}
	b.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: name}
	b.Spec = v1alpha1.ExperimentSpec{Duration: "12s", Seed: 7, Drain: v1alpha1.Drain{Max: "8s", QuietFor: "2s"}}
	return b
}

// seconds is a duration as experiments have it.
func seconds(d time.Duration) v1alpha1.Duration { return v1alpha1.Duration(d.String()) }

func (b *experimentBuilder) Duration(d v1alpha1.Duration) *experimentBuilder {
	b.Spec.Duration = d
	return b
}

func (b *experimentBuilder) Network(name, subnet, waveform string) *experimentBuilder {
	b.Spec.Networks = append(b.Spec.Networks, v1alpha1.Network{Name: name, Subnet: subnet, Waveform: waveform})
	return b
}

func (b *experimentBuilder) Broker(name string, bridges ...string) *experimentBuilder {
	m := &v1alpha1.Mosquitto{}
	for _, to := range bridges {
		m.Bridges = append(m.Bridges, v1alpha1.Bridge{To: to})
	}
	b.Spec.Apps = append(b.Spec.Apps, v1alpha1.App{Name: name, Mosquitto: m})
	return b
}

func (b *experimentBuilder) Publisher(name, broker string, period v1alpha1.Duration, instances int32) *experimentBuilder {
	p := &v1alpha1.Publisher{Protocol: v1alpha1.ProtocolMQTT, To: broker, Period: period}
	if broker == "" {
		p.Protocol = v1alpha1.ProtocolMQTTUDP
	}
	b.Spec.Apps = append(b.Spec.Apps, v1alpha1.App{Name: name, Instances: instances, Publisher: p})
	return b
}

// Payload sets the payload of the last publisher.
func (b *experimentBuilder) Payload(payload string) *experimentBuilder {
	b.Spec.Apps[len(b.Spec.Apps)-1].Publisher.Payload = payload
	return b
}

func (b *experimentBuilder) Subscriber(name, broker string) *experimentBuilder {
	s := &v1alpha1.Subscriber{Protocol: v1alpha1.ProtocolMQTT, To: broker, Topics: []string{"#"}}
	if broker == "" {
		s.Protocol = v1alpha1.ProtocolMQTTUDP
	}
	b.Spec.Apps = append(b.Spec.Apps, v1alpha1.App{Name: name, Subscriber: s})
	return b
}

func (b *experimentBuilder) Image(name, image string, command ...string) *experimentBuilder {
	b.Spec.Apps = append(b.Spec.Apps, v1alpha1.App{Name: name, Image: image, Command: command})
	return b
}

func (b *experimentBuilder) Node(name string, network string, apps ...string) *experimentBuilder {
	b.Spec.Nodes = append(b.Spec.Nodes, v1alpha1.Node{Name: name, Networks: []string{network}, Apps: apps})
	return b
}

func (b *experimentBuilder) Start(at v1alpha1.Duration, apps ...string) *experimentBuilder {
	b.Spec.Timeline = append(b.Spec.Timeline, v1alpha1.TimelineEntry{At: at, Start: apps})
	return b
}

func (b *experimentBuilder) Stop(at v1alpha1.Duration, apps ...string) *experimentBuilder {
	b.Spec.Timeline = append(b.Spec.Timeline, v1alpha1.TimelineEntry{At: at, Stop: apps})
	return b
}

func (b *experimentBuilder) Obj() *v1alpha1.Experiment { return b.Experiment.DeepCopy() }

// pair is the smallest complete experiment: a publisher on one node, broker and subscriber on another.
func pair(namespace, name string) *experimentBuilder {
	return makeExperiment(namespace, name).
		Network("wan", "198.18.9.0/24", "baseline").
		Broker("broker").
		Subscriber("picture", "broker").
		Publisher("bft", "broker", "500ms", 1).
		Node("hq", "wan", "broker", "picture").
		Node("veh", "wan", "bft").
		Start("3s", "bft").Stop("10s", "bft")
}

// broadcasters is a brokerless experiment: n nodes that all publish to all by UDP broadcast.
func broadcasters(namespace, name string, n int, period v1alpha1.Duration, payload string) *experimentBuilder {
	b := makeExperiment(namespace, name).
		Network("wan", "198.18.9.0/24", "baseline").
		Publisher("bft", "", period, 1).Payload(payload).
		Subscriber("picture", "")
	for i := 1; i <= n; i++ {
		b.Node(fmt.Sprintf("unit%d", i), "wan", "bft", "picture")
	}
	return b.Start("3s", "bft").Stop("10s", "bft")
}
