package topology

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/traffic/mqttudp"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Serves reports whether clients of a protocol may name the app as their broker. An image of the user may serve any.
func Serves(app v1alpha1.App, protocol v1alpha1.Protocol) bool {
	if app.Own() {
		return true
	}
	return slices.Contains(trafficconfig.ProtocolOf(protocol).Brokers, app.Kind())
}

// Broker resolves a node's reference to a broker of a protocol: node/app, else the app on that same node, else the only node
// that runs it. An empty reference means any broker of the protocol by the same rules. The two nodes must share a network
// or a routing domain, unless they are the same.
func (t *Topology) Broker(from Node, protocol v1alpha1.Protocol, reference string) (Node, error) {
	candidates, err := t.brokerCandidates(protocol, reference)
	if err != nil {
		return Node{}, err
	}
	broker, err := chooseHost(from, reference, candidates)
	if err != nil {
		return Node{}, err
	}
	if err := t.checkReach(from, broker); err != nil {
		return Node{}, err
	}
	return broker, nil
}

// checkReach returns an error for a node that does not reach the node of its broker.
func (t *Topology) checkReach(from, broker Node) error {
	if !t.Reaches(from, broker) {
		return fmt.Errorf("node %s has no network in common with the broker's node %s, and no routing domain joins them", from.Name, broker.Name)
	}
	return nil
}

// BrokerAppOn is the app of a reference, which may be empty, on the node that it resolved to.
func (t *Topology) BrokerAppOn(on Node, protocol v1alpha1.Protocol, reference string) (v1alpha1.App, bool) {
	if reference != "" {
		return t.App(reference[strings.LastIndexByte(reference, '/')+1:])
	}
	for _, name := range on.Apps {
		if app := t.apps[name]; Serves(app, protocol) && !app.Own() {
			return app, true
		}
	}
	return v1alpha1.App{}, false
}

func (t *Topology) brokerCandidates(protocol v1alpha1.Protocol, reference string) ([]Node, error) {
	if reference == "" {
		var all []Node
		for _, n := range t.Nodes {
			for _, a := range n.Apps {
				if app := t.apps[a]; Serves(app, protocol) && !app.Own() {
					all = append(all, n)
				}
			}
		}
		return all, nil
	}
	app, hosts, err := t.hostsOf(reference)
	if err == nil && !Serves(app, protocol) {
		use := "an image of your own"
		if kinds := trafficconfig.ProtocolOf(protocol).Brokers; len(kinds) > 0 {
			use = strings.Join(kinds, ", ") + ", or " + use
		}
		err = fmt.Errorf("app %q is no broker of protocol %s: use %s", app.Name, protocol, use)
	}
	return hosts, err
}

// hostsOf are the app of a reference, and the nodes that run it: the one of node/app, or all.
func (t *Topology) hostsOf(reference string) (v1alpha1.App, []Node, error) {
	node, name, qualified := strings.Cut(reference, "/")
	if !qualified {
		name = reference
	}
	app, found := t.apps[name]
	if !found {
		return app, nil, t.NoApp(name)
	}
	if !qualified {
		return app, t.NodesRunning(name), nil
	}
	host, found := t.Node(node)
	if !found {
		return app, nil, fmt.Errorf("there is no node %q", node)
	}
	if !host.Runs(name) {
		return app, nil, fmt.Errorf("node %q does not run app %q", node, name)
	}
	return app, []Node{host}, nil
}

func chooseHost(from Node, reference string, candidates []Node) (Node, error) {
	for _, c := range candidates {
		if c.Name == from.Name {
			return c, nil
		}
	}
	switch len(candidates) {
	case 1:
		return candidates[0], nil
	case 0:
		return Node{}, fmt.Errorf("no node runs app %q", reference)
	}
	names := make([]string, 0, 4)
	for _, c := range candidates[:min(len(candidates), 4)] {
		names = append(names, c.Name)
	}
	return Node{}, fmt.Errorf("node %s does not run app %q itself and %d others do (%s …): name one, such as %s/%s",
		from.Name, reference, len(candidates), strings.Join(names, ", "), candidates[0].Name, reference)
}

// CheckReferences returns the references between apps that do not resolve on some node.
func (t *Topology) CheckReferences(spec *v1alpha1.ExperimentSpec) (errs field.ErrorList) {
	r := references{t}
	for i, app := range spec.Apps {
		path := field.NewPath("spec", "apps").Index(i)
		for _, node := range t.NodesRunning(app.Name) {
			if found := r.checkApp(app, node, path); len(found) > 0 {
				errs = append(errs, found...)
				break // one node's error is enough
			}
		}
	}
	if len(errs) == 0 {
		errs = append(r.checkMediatorRings(spec), r.checkBridgeRings(spec)...)
	}
	return errs
}

// references checks what apps refer to on other nodes.
type references struct{ *Topology }

func (t references) checkApp(app v1alpha1.App, node Node, path *field.Path) (errs field.ErrorList) {
	if p := app.Publisher; p != nil {
		errs = append(errs, t.checkClient(node, p.Protocol, p.To, p.Network, path.Child("publisher"))...)
		errs = append(errs, checkAdaptation(p, path.Child("publisher", "adaptRate"))...)
		errs = append(errs, checkVersion(p.Protocol, p.Version, path.Child("publisher", "version"))...)
		errs = append(errs, checkSignature(p.Protocol, p.SignatureKey, path.Child("publisher", "signatureKey"))...)
		errs = append(errs, checkRepetition(p, path.Child("publisher", "repeat"))...)
	}
	if s := app.Subscriber; s != nil {
		errs = append(errs, t.checkClient(node, s.Protocol, s.To, s.Network, path.Child("subscriber"))...)
		errs = append(errs, checkVersion(s.Protocol, s.Version, path.Child("subscriber", "version"))...)
		errs = append(errs, checkSignature(s.Protocol, s.SignatureKey, path.Child("subscriber", "signatureKey"))...)
	}
	if s := app.Script; s != nil {
		errs = append(errs, t.checkClient(node, v1alpha1.Protocol(s.Protocol), s.To, s.Network, path.Child("script"))...)
		errs = append(errs, checkVersion(v1alpha1.Protocol(s.Protocol), s.Version, path.Child("script", "version"))...)
	}
	if p, s := app.Publisher, app.Subscriber; p != nil && s != nil && (p.Protocol != s.Protocol || p.Version != s.Version || p.To != s.To || p.Network != s.Network || p.SignatureKey != s.SignatureKey) {
		errs = append(errs, field.Invalid(path, app.Name, "publisher and subscriber of one app are one client: protocol, version, to, network and signatureKey must be the same"))
	}
	errs = append(errs, checkRawSockets(app, node, path.Child("zeromqBroker", "transport"))...)
	errs = append(errs, t.checkServers(app, node, path)...)
	errs = append(errs, t.checkRabbitMQ(app, node, path)...)
	errs = append(errs, t.checkProxy(app, node, path.Child("proxy"))...)
	if app.Mosquitto == nil {
		return errs
	}
	return append(errs, t.checkBridges(app, node, path.Child("mosquitto", "bridges"))...)
}

// checkBridges finds bridges with which Mosquitto would not start.
func (t references) checkBridges(app v1alpha1.App, node Node, path *field.Path) (errs field.ErrorList) {
	others := map[string]string{}
	for j, bridge := range app.Mosquitto.Bridges {
		at := path.Index(j)
		peer, err := t.BridgePeer(node, bridge)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(at.Child("to"), bridge.To, err.Error()))
		case others[peer.Name] != "":
			errs = append(errs, field.Invalid(at.Child("to"), bridge.To, fmt.Sprintf("is the broker on node %s, to which the bridge to %s goes already: write one bridge with the topics of both",
				peer.Name, others[peer.Name])))
		}
		others[peer.Name] = bridge.To
		for k, topic := range bridge.Topics {
			if topic.Filter == `""` {
				errs = append(errs, field.Invalid(at.Child("topics").Index(k).Child("filter"), topic.Filter, "means no topic to Mosquitto: want a filter such as #, without the quotes"))
			}
		}
	}
	return errs
}

// checkAdaptation checks that a publisher with an adapted rate has a period.
func checkAdaptation(p *v1alpha1.Publisher, path *field.Path) field.ErrorList {
	switch a := p.AdaptRate; {
	case a == nil:
		return nil
	case p.Pattern != nil:
		return field.ErrorList{field.Invalid(path, "adaptRate", "adapts a period, and the publisher has a pattern: give it a period")}
	case a.MaxPeriod.Std() < p.Period.Std():
		return field.ErrorList{field.Invalid(path.Child("maxPeriod"), string(a.MaxPeriod), fmt.Sprintf("is shorter than the publisher's period, %s: use that or more", p.Period))}
	}
	return nil
}

// checkVersion refuses a version of MQTT for other protocols. Admission gives every client the default, 3.1.1, so
// that one is always taken.
func checkVersion(protocol v1alpha1.Protocol, version v1alpha1.MQTTVersion, path *field.Path) field.ErrorList {
	if version != "5" || trafficconfig.ProtocolOf(protocol).Versions {
		return nil
	}
	return field.ErrorList{field.Invalid(path, version, fmt.Sprintf("is a version of mqtt, and the protocol is %s: leave it out", protocol))}
}

// checkSignature checks that only MQTT/UDP has a key.
func checkSignature(protocol v1alpha1.Protocol, key string, path *field.Path) field.ErrorList {
	if key == "" || protocol == v1alpha1.ProtocolMQTTUDP {
		return nil
	}
	return field.ErrorList{field.Invalid(path, key, fmt.Sprintf("signs messages of mqtt-udp, and the protocol is %s: leave it out", protocol))}
}

// checkRepetition checks that only MQTT/UDP repeats messages, at an interval that its client takes, and while receivers know their numbers.
func checkRepetition(p *v1alpha1.Publisher, path *field.Path) field.ErrorList {
	if p.Repeat == nil {
		return nil
	}
	interval := v1alpha1.Duration(p.Repeat.Interval).Std()
	switch last := time.Duration(p.Repeat.Times) * interval; {
	case p.Protocol != v1alpha1.ProtocolMQTTUDP:
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("is for mqtt-udp, and the protocol is %s: leave it out", p.Protocol))}
	case interval < time.Millisecond || interval > time.Minute:
		return field.ErrorList{field.Invalid(path.Child("interval"), p.Repeat.Interval, "must be from 1ms to 60s")}
	case p.Pattern != nil:
		return field.ErrorList{field.Forbidden(path, "is for a publisher with a period, and this one has a pattern: give it a period, or leave repeat out")}
	case last/mqttudp.Remembered > p.Period.Std(): // a product might overflow
		return field.ErrorList{field.Invalid(path.Child("interval"), p.Repeat.Interval, fmt.Sprintf(
			"has the last repeat %s after its message, with over %d others in between at a period of %s. Receivers know only so many, and would count it again: use %s or less",
			wording.Time(last), mqttudp.Remembered, p.Period, wording.Time(mqttudp.Remembered*p.Period.Std()/time.Duration(p.Repeat.Times))))}
	}
	return nil
}

// checkServers checks the brokers of gateways and mediators, and those that clients fail over to.
func (t references) checkServers(app v1alpha1.App, node Node, path *field.Path) (errs field.ErrorList) {
	check := func(protocol v1alpha1.Protocol, to string, at *field.Path) {
		if _, err := t.Broker(node, protocol, to); err != nil {
			errs = append(errs, field.Invalid(at, to, err.Error()))
		}
	}
	if g := app.MQTTSNGateway; g != nil {
		check(v1alpha1.ProtocolMQTT, g.To, path.Child("mqttsnGateway", "to"))
	}
	if m := app.Mediator; m != nil {
		for i, leg := range m.Legs {
			at := path.Child("mediator", "legs").Index(i)
			check(leg.Protocol, leg.To, at.Child("to"))
			errs = append(errs, t.checkTCPOnly(node, leg.Protocol, leg.To, "mediators know only tcp", at.Child("to"))...)
			errs = append(errs, t.checkLegTopics(node, leg, at.Child("topics"))...)
		}
	}
	const connectionsEnd = "failover is for connections that end, which only tcp has"
	failover := func(protocol v1alpha1.Protocol, first string, further []string, path *field.Path) {
		if len(further) > 0 {
			errs = append(errs, t.checkTCPOnly(node, protocol, first, connectionsEnd, path.Child("to"))...)
		}
		want := t.securityOf(node, protocol, first)
		for i, to := range further {
			at := path.Child("failover").Index(i)
			check(protocol, to, at)
			errs = append(errs, t.checkTCPOnly(node, protocol, to, connectionsEnd, at)...)
			if got := t.securityOf(node, protocol, to); got != want {
				errs = append(errs, field.Invalid(at, to, fmt.Sprintf("has %s and %s has %s: all brokers of a client must have the same security", got, first, want)))
			}
		}
	}
	if p := app.Publisher; p != nil {
		failover(p.Protocol, p.To, p.Failover, path.Child("publisher"))
	}
	if s := app.Subscriber; s != nil {
		failover(s.Protocol, s.To, s.Failover, path.Child("subscriber"))
	}
	return errs
}

// checkLegTopics refuses wildcards of a leg to Apache CXF's broker, which sends the filter in place of a message's topic.
func (t references) checkLegTopics(node Node, leg v1alpha1.MediatorLeg, path *field.Path) (errs field.ErrorList) {
	on, _ := t.Broker(node, leg.Protocol, leg.To)
	broker, _ := t.BrokerAppOn(on, leg.Protocol, leg.To)
	if broker.WSNBroker == nil || broker.WSNBroker.Implementation != v1alpha1.WSNCXF {
		return nil
	}
	topics := leg.Topics
	if len(topics) == 0 {
		topics = []string{"#"}
	}
	for i, topic := range topics {
		if strings.ContainsAny(topic, "+#") {
			errs = append(errs, field.Invalid(path.Index(i), topic, "Apache CXF's broker does not send the topics of messages that match a filter with wildcards: name whole topics"))
		}
	}
	return errs
}

// securityOf describes a broker's security. The broker must exist.
func (t *Topology) securityOf(from Node, protocol v1alpha1.Protocol, to string) string {
	on, _ := t.Broker(from, protocol, to)
	app, _ := t.BrokerAppOn(on, protocol, to)
	switch s := app.Security; {
	case s == nil || !s.TLS && !s.Password:
		return "no security"
	case s.TLS && s.Password:
		return "tls and password"
	case s.TLS:
		return "tls"
	}
	return "a password"
}

// BridgePeer resolves the other end of a bridge, which must not be its own broker, nor one that echoes.
func (t *Topology) BridgePeer(node Node, bridge v1alpha1.Bridge) (Node, error) {
	candidates, err := t.brokerCandidates(v1alpha1.ProtocolMQTT, bridge.To)
	if err != nil {
		return Node{}, err
	}
	if app, _ := t.BrokerAppOn(node, v1alpha1.ProtocolMQTT, bridge.To); app.RabbitMQ != nil {
		return Node{}, fmt.Errorf("app %q is RabbitMQ, which sends a bridge its own messages back: join the two by a mediator", app.Name)
	}
	var others []Node
	for _, c := range candidates {
		if c.Name != node.Name {
			others = append(others, c)
		}
	}
	if len(others) == 0 && len(candidates) > 0 {
		return Node{}, fmt.Errorf("is a bridge of the broker on node %s to itself", node.Name)
	}
	peer, err := chooseHost(node, bridge.To, others)
	if err != nil {
		return Node{}, err
	}
	if err := t.checkReach(node, peer); err != nil {
		return Node{}, err
	}
	return peer, nil
}

func (t references) checkClient(node Node, protocol v1alpha1.Protocol, to, network string, path *field.Path) field.ErrorList {
	if !trafficconfig.ProtocolOf(protocol).Broadcast {
		broker, err := t.Broker(node, protocol, to)
		if err == nil {
			err = t.checkMulticast(node, broker, protocol, to)
		}
		if err != nil {
			return field.ErrorList{field.Invalid(path.Child("to"), to, err.Error())}
		}
		return nil
	}
	if _, err := t.BroadcastNetwork(node, network); err != nil {
		return field.ErrorList{field.Invalid(path.Child("network"), network, err.Error())}
	}
	return nil
}

// BroadcastNetwork is the network that a brokerless client on a node uses: the named one, else the node's first.
func (t *Topology) BroadcastNetwork(node Node, network string) (string, error) {
	if len(node.Attachments) == 0 {
		return "", fmt.Errorf("node %s is on no network", node.Name)
	}
	if network == "" {
		return node.Attachments[0].Network, nil
	}
	if _, ok := node.Address(network); !ok {
		return "", fmt.Errorf("node %s is not on network %q", node.Name, network)
	}
	return network, nil
}
