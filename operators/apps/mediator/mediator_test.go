package mediator

import (
	"encoding/json"
	"testing"

	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

func rabbit(name string, security *v1alpha1.Security) v1alpha1.App {
	return v1alpha1.App{Name: name, RabbitMQ: &v1alpha1.RabbitMQ{}, Security: security}
}

// site of a mediator whose legs go to brokers on the node hub, each at its protocol's port.
func site(legs []v1alpha1.MediatorLeg, brokers ...v1alpha1.App) apps.Site {
	s := apps.Site{App: v1alpha1.App{Name: "mediator", Mediator: &v1alpha1.Mediator{Legs: legs}}, Node: "hub", Instances: []string{"hub/mediator"}, Seed: 7,
		MetricsPorts: []int{9466}, Images: apps.Images{Traffic: "traffic:1", ZeroMQ: "zeromq:1"}}
	for i, b := range brokers {
		s.Servers = append(s.Servers, apps.Server{Address: "hub:" + string(rune('1'+i)), Node: "hub", App: b})
	}
	return s
}

func TestRenderingsMatchTheirGoldenFiles(t *testing.T) {
	prosody := v1alpha1.App{Name: "xmpp", Prosody: &v1alpha1.Prosody{}}
	zeromq := v1alpha1.App{Name: "zmq", ZeroMQBroker: &v1alpha1.ZeroMQBroker{Transport: v1alpha1.ZeroMQTCP}}
	cxf := v1alpha1.App{Name: "wsn", WSNBroker: &v1alpha1.WSNBroker{Implementation: v1alpha1.WSNCXF}}
	for name, s := range map[string]apps.Site{
		"two": site([]v1alpha1.MediatorLeg{{Protocol: "amqp", To: "rabbit"}, {Protocol: "xmpp", To: "xmpp"}}, rabbit("rabbit", nil), prosody),
		"everything": site([]v1alpha1.MediatorLeg{
			{Protocol: "mqtt", To: "rabbit", QoS: 1, Topics: []string{"NOR/#", "PRT/+"}, Prefix: "e7/"}, {Protocol: "zeromq", To: "zmq", Topics: []string{"#"}},
			{Protocol: "ws-notification", To: "wsn", Topics: []string{"NOR/location"}},
		}, rabbit("rabbit", &v1alpha1.Security{TLS: true, Password: true}), zeromq, cxf),
	} {
		t.Run(name, func(t *testing.T) {
			rendering := Kind{}.Render(s)
			text, err := json.MarshalIndent(rendering, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, name+".json", string(text)+"\n")
			var config trafficconfig.Mediator
			if err := json.Unmarshal([]byte(rendering.Files[0].Content), &config); err != nil || config.Validate() != nil {
				t.Errorf("the mediator refuses its configuration: %v, %v", err, config.Validate())
			}
		})
	}
}
