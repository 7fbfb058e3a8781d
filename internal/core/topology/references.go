package topology

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// BrokerReference is where an app names a broker that it is a client of.
type BrokerReference struct {
	Protocol v1alpha1.Protocol
	To       string
	// Path of the name, and Client of the field that has the client's settings.
	Path, Client *field.Path
	QoS          int
	Version      v1alpha1.MQTTVersion
}

// BrokerReferences are those of an app's clients, its gateway or its mediator. Bridges are not among them.
func BrokerReferences(app v1alpha1.App, path *field.Path) (all []BrokerReference) {
	add := func(r BrokerReference, failover []string) {
		r.Path = r.Client.Child("to")
		all = append(all, r)
		for i, to := range failover {
			r.To, r.Path = to, r.Client.Child("failover").Index(i)
			all = append(all, r)
		}
	}
	if p := app.Publisher; p != nil && !trafficconfig.ProtocolOf(p.Protocol).Broadcast {
		add(BrokerReference{Protocol: p.Protocol, To: p.To, Client: path.Child("publisher"), QoS: int(p.QoS), Version: p.Version}, p.Failover)
	}
	if s := app.Subscriber; s != nil && !trafficconfig.ProtocolOf(s.Protocol).Broadcast {
		add(BrokerReference{Protocol: s.Protocol, To: s.To, Client: path.Child("subscriber"), QoS: int(s.QoS), Version: s.Version}, s.Failover)
	}
	if s := app.Script; s != nil && !trafficconfig.ProtocolOf(v1alpha1.Protocol(s.Protocol)).Broadcast {
		add(BrokerReference{Protocol: v1alpha1.Protocol(s.Protocol), To: s.To, Client: path.Child("script"), QoS: int(s.QoS), Version: s.Version}, nil)
	}
	if g := app.MQTTSNGateway; g != nil {
		add(BrokerReference{Protocol: v1alpha1.ProtocolMQTT, To: g.To, Client: path.Child("mqttsnGateway")}, nil)
	}
	if m := app.Mediator; m != nil {
		for i, leg := range m.Legs {
			add(BrokerReference{Protocol: leg.Protocol, To: leg.To, Client: path.Child("mediator", "legs").Index(i), QoS: int(leg.QoS)}, nil)
		}
	}
	return all
}

// checkRabbitMQ refuses what RabbitMQ 3.10 has no MQTT for: QoS 2, which it turns into 1, and version 5.
func (t references) checkRabbitMQ(app v1alpha1.App, node Node, path *field.Path) (errs field.ErrorList) {
	said := map[string]bool{}
	refuse := func(at *field.Path, value any, words, broker string) {
		if !said[at.String()] {
			said[at.String()] = true
			errs = append(errs, field.Invalid(at, value, fmt.Sprintf(words+", or a broker mosquitto or vernemq", broker)))
		}
	}
	for _, r := range BrokerReferences(app, path) {
		broker := t.behindGateway(node, r.Protocol, r.To)
		if broker.RabbitMQ == nil {
			continue
		}
		if r.QoS > 1 {
			refuse(r.Client.Child("qos"), r.QoS, "broker %s is RabbitMQ, which has no QoS 2 and sends with 1: want 1", broker.Name)
		}
		if r.Protocol == v1alpha1.ProtocolMQTT && r.Version == "5" {
			refuse(r.Client.Child("version"), r.Version, "broker %s is RabbitMQ, which refuses MQTT 5: want 3.1.1", broker.Name)
		}
	}
	return errs
}

// behindGateway is the broker of a reference, or that of the gateway which it names. It is empty where another check finds an error.
func (t references) behindGateway(node Node, protocol v1alpha1.Protocol, to string) v1alpha1.App {
	on, err := t.Broker(node, protocol, to)
	if err != nil {
		return v1alpha1.App{}
	}
	app, _ := t.BrokerAppOn(on, protocol, to)
	if app.MQTTSNGateway != nil {
		return t.behindGateway(on, v1alpha1.ProtocolMQTT, app.MQTTSNGateway.To)
	}
	return app
}
