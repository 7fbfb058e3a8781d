package topology

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// checkMediatorRings finds legs of mediators to a broker that the mediator reaches already by another leg. Bridges,
// clusters, gateways and brokers that translate protocols join brokers too. Messages would circulate for ever, or arrive
// twice. References must be valid.
func (t references) checkMediatorRings(spec *v1alpha1.ExperimentSpec) (errs field.ErrorList) {
	joined := brokerGroups{}
	for _, app := range spec.Apps {
		for _, node := range t.NodesRunning(app.Name) {
			t.joinBrokers(joined, node, app)
		}
	}
	for i, app := range spec.Apps {
		if app.Mediator == nil {
			continue
		}
		path := field.NewPath("spec", "apps").Index(i).Child("mediator", "legs")
		for _, node := range t.NodesRunning(app.Name) {
			errs = append(errs, t.joinLegs(joined, node, app, path)...)
		}
	}
	return errs
}

// joinBrokers joins the brokers that a broker or gateway on a node is connected to.
func (t references) joinBrokers(joined brokerGroups, node Node, app v1alpha1.App) {
	here := brokerName(node.Name, app.Name)
	if app.Mosquitto != nil {
		for _, bridge := range app.Mosquitto.Bridges {
			if peer, err := t.BridgePeer(node, bridge); err == nil {
				joined.join(here, brokerName(peer.Name, bridge.To))
			}
		}
	}
	if g := app.MQTTSNGateway; g != nil {
		if broker, err := t.Broker(node, v1alpha1.ProtocolMQTT, g.To); err == nil {
			joined.join(here, brokerName(broker.Name, g.To))
		}
	}
	if app.VerneMQ != nil && app.VerneMQ.Cluster || app.RabbitMQ != nil && app.RabbitMQ.Cluster {
		joined.join(here, brokerName(t.NodesRunning(app.Name)[0].Name, app.Name)) // all members join the first
	}
}

func (t references) joinLegs(joined brokerGroups, node Node, app v1alpha1.App, path *field.Path) (errs field.ErrorList) {
	here := brokerName(node.Name, app.Name)
	for i, leg := range app.Mediator.Legs {
		broker, err := t.Broker(node, leg.Protocol, leg.To)
		if err != nil {
			continue // CheckReferences reports it
		}
		there := brokerName(broker.Name, leg.To)
		if joined.root(here) == joined.root(there) {
			errs = append(errs, field.Invalid(path.Index(i).Child("to"), leg.To, fmt.Sprintf("the mediator on node %s reaches %s by another leg already, over a broker "+
				"that translates protocols, a bridge, a cluster, a gateway or another mediator: messages would circulate or arrive twice; leave out one of the legs", node.Name, there)))
		}
		joined.join(here, there)
	}
	return errs
}

// brokerName is node/app. The reference may name a node too.
func brokerName(node, reference string) string {
	return node + "/" + reference[strings.LastIndexByte(reference, '/')+1:]
}

// brokerGroups are groups of joined brokers, as a forest: each name's parent on the way to its group's root.
type brokerGroups map[string]string

func (g brokerGroups) root(name string) string {
	for g[name] != "" {
		name = g[name]
	}
	return name
}

func (g brokerGroups) join(a, b string) {
	if a, b = g.root(a), g.root(b); a != b {
		g[a] = b
	}
}
