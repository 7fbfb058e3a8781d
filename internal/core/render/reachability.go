package render

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

// requestWarnings are about messaging services and proxies whose requests cannot arrive, or whose clients do not wait long enough.
func requestWarnings(in Input) (warnings field.ErrorList) {
	r := newReachability(in)
	for i, app := range in.Experiment.Spec.Apps {
		path := field.NewPath("spec", "apps").Index(i)
		switch {
		case app.Messaging != nil:
			c := r.service(app, path.Child("messaging"))
			warnings = append(warnings, c.messages(in)...)
			warnings = append(warnings, c.proxied(in)...)
		case app.Proxy != nil && app.Proxy.Peer != "":
			warnings = append(warnings, r.pair(app, path.Child("proxy"))...)
		}
	}
	return warnings
}

// brokerWarnings are about clients and bridges without a static route to their broker, or back. Other networks are checked with the references.
func brokerWarnings(in Input) (warnings field.ErrorList) {
	r := newReachability(in)
	if len(r.static) == 0 {
		return nil
	}
	for i, app := range in.Experiment.Spec.Apps {
		path := field.NewPath("spec", "apps").Index(i)
		for _, reference := range topology.BrokerReferences(app, path) {
			warnings = append(warnings, r.toBroker(app, reference.Path, reference.To, func(from topology.Node) (topology.Node, error) {
				return r.t.Broker(from, reference.Protocol, reference.To)
			})...)
		}
		if app.Mosquitto == nil {
			continue
		}
		for j, bridge := range app.Mosquitto.Bridges {
			warnings = append(warnings, r.toBroker(app, path.Child("mosquitto", "bridges").Index(j).Child("to"), bridge.To, func(from topology.Node) (topology.Node, error) {
				return r.t.BridgePeer(from, bridge)
			})...)
		}
	}
	return warnings
}

// toBroker warns of the first node of an app that does not reach its broker.
func (r *reachability) toBroker(app v1alpha1.App, path *field.Path, name string, brokerOf func(topology.Node) (topology.Node, error)) field.ErrorList {
	for _, node := range r.t.NodesRunning(app.Name) {
		broker, err := brokerOf(node)
		if err != nil {
			continue // another check reports it
		}
		if words := r.cut(node, broker); words != "" {
			return field.ErrorList{field.Invalid(path, name, words)}
		}
	}
	return nil
}

// reachability knows which nodes have routes to each other.
type reachability struct {
	t *topology.Topology
	// static has the routes by node of each network with static ones.
	static map[string]map[string][]v1alpha1.MemberRoute
	// unknown: guests of virtual machines on several networks may forward too.
	unknown bool
}

func newReachability(in Input) *reachability {
	t := in.Topology
	r := &reachability{t: t, static: map[string]map[string][]v1alpha1.MemberRoute{}}
	for _, network := range in.Experiment.Spec.Networks {
		if network.Routing != nil && network.Routing.Protocol == v1alpha1.RoutingStatic {
			r.static[network.Name] = staticRoutes(t, network)
		}
	}
	r.unknown = slices.ContainsFunc(t.Nodes, func(n topology.Node) bool { return n.IsVM() && len(n.Attachments) > 1 })
	return r
}

// reaches reports whether a node can send to another one: over a network of both, a routing domain of both, or a static route.
func (r *reachability) reaches(from, to topology.Node) bool {
	if _, shared := to.AddressFor(from); shared || from.Name == to.Name || r.unknown {
		return true
	}
	address, _ := r.t.ReachedAt(to, from)
	for _, a := range from.Attachments {
		_, static := r.static[a.Network]
		if static && r.hasRoute(a.Network, from.Name, address) || !static && r.t.InRoutingDomain(to, a.Network) {
			return true
		}
	}
	return false
}

func (r *reachability) hasRoute(network, node string, to netip.Addr) bool {
	return slices.ContainsFunc(r.static[network][node], func(route v1alpha1.MemberRoute) bool {
		prefix, err := netip.ParsePrefix(route.To)
		return err == nil && prefix.Contains(to)
	})
}

// cut says that there is no way between two nodes, in one direction or the other; empty if there is.
func (r *reachability) cut(from, to topology.Node) string {
	const words = "node %s has no route to node %s: they have no network in common, and no routing domain or static route joins them"
	switch {
	case !r.reaches(from, to):
		return fmt.Sprintf(words, from.Name, to.Name)
	case !r.reaches(to, from):
		return fmt.Sprintf(words, to.Name, from.Name) + ", so that no response comes back"
	}
	return ""
}

// pair warns of a near proxy that does not reach its far one. By AMQP both have to reach the broker.
func (r *reachability) pair(app v1alpha1.App, path *field.Path) field.ErrorList {
	p := app.Proxy
	for _, near := range r.t.NodesRunning(app.Name) {
		far, _, err := r.t.FarProxy(near, p)
		if err != nil {
			continue // another check reports it
		}
		if p.Protocol != v1alpha1.ProxyAMQP {
			if words := r.cut(near, far); words != "" {
				return field.ErrorList{field.Invalid(path.Child("peer"), p.Peer, words)}
			}
			continue
		}
		broker, err := r.t.Broker(near, v1alpha1.ProtocolAMQP, p.Broker)
		if err != nil {
			continue
		}
		if words := cmp.Or(r.cut(near, broker), r.cut(far, broker)); words != "" {
			return field.ErrorList{field.Invalid(path.Child("broker"), p.Broker, words)}
		}
	}
	return nil
}

// CheckVia finds services whose via is no near proxy, or not a certain one for a node that sends. The topology must be valid.
func CheckVia(in Input) (errs field.ErrorList) {
	r := newReachability(in)
	for i, app := range in.Experiment.Spec.Apps {
		if app.Messaging == nil || app.Messaging.Via == "" {
			continue
		}
		c := r.service(app, field.NewPath("spec", "apps").Index(i).Child("messaging"))
		if err := c.checkVia(in); err != nil {
			errs = append(errs, field.Invalid(c.path.Child("via"), app.Messaging.Via, err.Error()))
		}
	}
	return errs
}

func (c *serviceReach) checkVia(in Input) error {
	via := c.app.Messaging.Via
	if err := c.t.CheckNear(via); err != nil {
		return err
	}
	for _, client := range c.clients(in) {
		_, _, err := c.t.Proxy(client, via)
		if err != nil && len(c.t.NodesRunning(via)) > 1 {
			return fmt.Errorf("%w to carry the requests of all nodes, or run %s on node %s too", err, via, client.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clients are the nodes that send requests, as far as they are known.
func (c *serviceReach) clients(in Input) (clients []topology.Node) {
	sent := c.sent(in)
	for _, host := range c.hosts {
		if slices.ContainsFunc(sent, func(m sentMessage) bool { return m.from(member(host)) }) {
			clients = append(clients, host)
		}
	}
	return clients
}

// serviceReach is about the messages of one messaging service.
type serviceReach struct {
	*reachability
	app   v1alpha1.App
	hosts []topology.Node
	path  *field.Path
}

func (r *reachability) service(app v1alpha1.App, path *field.Path) *serviceReach {
	return &serviceReach{r, app, r.t.NodesRunning(app.Name), path}
}

// messages warns of the first message that does not arrive.
func (c *serviceReach) messages(in Input) field.ErrorList {
	for _, m := range c.sent(in) {
		addressed := c.distinct(c.t.NodesRunning(servingApp(c.app)), false, func(n topology.Node) bool { return member(n).IsAddressed(m.to) })
		for _, from := range c.distinct(c.hosts, c.app.Messaging.Via != "", func(n topology.Node) bool { return m.from(member(n)) }) {
			for _, to := range addressed {
				if words := c.lost(from, to); words != "" { // nodes that are left out are on the same networks as another, and reach it
					return field.ErrorList{field.Invalid(m.at, m.value, words)}
				}
			}
		}
	}
	return nil
}

// distinct returns one node for each combination of networks, of those that are chosen. By name, or with static routes, which are for single nodes,
// it returns all. So many nodes take little time.
func (r *reachability) distinct(nodes []topology.Node, byName bool, chosen func(topology.Node) bool) (some []topology.Node) {
	known := map[string]bool{}
	for _, n := range nodes {
		if !chosen(n) {
			continue
		}
		key := n.Name
		if !byName && len(r.static) == 0 {
			key = ""
			for _, a := range n.Attachments {
				key += a.Network + " "
			}
		}
		if !known[key] {
			known[key] = true
			some = append(some, n)
		}
	}
	return some
}

func member(n topology.Node) apps.Member { return apps.Member{Node: n.Name, Group: n.Group} }

// sentMessage is what some nodes send to others.
type sentMessage struct {
	from  func(apps.Member) bool
	to    string
	at    *field.Path
	value string
}

// sent returns a service's messages, as far as they are known. Those with the same sender and addressee are there once.
func (c *serviceReach) sent(in Input) (all []sentMessage) {
	if p := c.app.Messaging.Push; p != nil {
		from := func(m apps.Member) bool { return len(p.From) == 0 || slices.ContainsFunc(p.From, m.IsAddressed) }
		return []sentMessage{{from, p.To, c.path.Child("push", "to"), p.To}}
	}
	type pair struct{ from, to string }
	known := map[pair]bool{}
	messages, err := (&scripts{in: in}).read(c.app)
	if err != nil {
		return nil // another check reports it
	}
	for _, m := range messages {
		if known[pair{m.From, m.To}] {
			continue
		}
		known[pair{m.From, m.To}] = true
		at := c.path.Child("configMap")
		if i := slices.Index(c.app.Messaging.Messages, m); i >= 0 {
			at = c.path.Child("messages").Index(i)
		}
		all = append(all, sentMessage{func(n apps.Member) bool { return n.Node == m.From }, m.To, at, fmt.Sprintf("at %s from %s to %s", m.At, m.From, m.To)})
	}
	return all
}

// lost says why a message does not arrive; empty if it may. A proxy pair calls the addressee from its far side.
func (c *serviceReach) lost(from, to topology.Node) string {
	m := c.app.Messaging
	if m.Multicast {
		there, _ := c.t.BroadcastNetwork(from, m.Network)
		if here, _ := c.t.BroadcastNetwork(to, m.Network); here != there {
			return fmt.Sprintf("node %s sends it by multicast on network %s, which goes one hop, and node %s receives on network %s", from.Name, there, to.Name, here)
		}
		return ""
	}
	if m.Via != "" {
		near, proxy, err := c.t.Proxy(from, m.Via)
		if err != nil {
			return "" // another check reports it
		}
		if from, _, err = c.t.FarProxy(near, proxy.Proxy); err != nil {
			return ""
		}
	}
	return c.cut(from, to)
}

// defaultProxyDeadline is that of a request over a proxy pair.
const defaultProxyDeadline = 5 * time.Minute

// proxied warns of a client that does not reach its proxy, or does not wait for its answer.
func (c *serviceReach) proxied(in Input) (warnings field.ErrorList) {
	m := c.app.Messaging
	if m.Via == "" {
		return nil
	}
	for _, client := range c.clients(in) {
		near, proxy, err := c.t.Proxy(client, m.Via)
		if err != nil {
			continue
		}
		if words := c.cut(client, near); words != "" {
			warnings = append(warnings, field.Invalid(c.path.Child("via"), m.Via, words))
		}
		if deadline := cmp.Or(proxy.Proxy.Deadline.Std(), defaultProxyDeadline); m.Timeout.Std() < deadline {
			warnings = append(warnings, field.Invalid(c.path.Child("timeout"), m.Timeout, fmt.Sprintf(
				"proxy %s has the deadline %s: a client that gives up before does not see what came of its request. Want at least that", proxy.Name, wording.Time(deadline))))
		}
		if len(warnings) > 0 {
			break
		}
	}
	return warnings
}
