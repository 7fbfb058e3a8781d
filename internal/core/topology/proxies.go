package topology

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// longestDeadline of a request over a proxy pair.
const longestDeadline = 240 * time.Hour

// Proxy resolves a node's reference to a proxy: node/app, else the app on that same node, else the only node that runs it.
func (t *Topology) Proxy(from Node, reference string) (Node, v1alpha1.App, error) {
	app, hosts, err := t.hostsOf(reference)
	if err != nil {
		return Node{}, app, err
	}
	if app.Proxy == nil {
		return Node{}, app, noProxy(app)
	}
	on, err := chooseHost(from, reference, hosts)
	if err == nil && len(on.Attachments) == 0 && on.Name != from.Name {
		err = fmt.Errorf("node %s is on no network", on.Name)
	}
	return on, app, err
}

// CheckNear returns an error for a reference that names no near proxy, whoever refers to it.
func (t *Topology) CheckNear(reference string) error {
	app, _, err := t.hostsOf(reference)
	switch {
	case err != nil:
		return err
	case app.Proxy == nil:
		return noProxy(app)
	case app.Proxy.Peer == "":
		return fmt.Errorf("app %q is the far proxy of its pair: name the near one, which has a peer", app.Name)
	}
	return nil
}

func noProxy(app v1alpha1.App) error {
	return fmt.Errorf("app %q is no proxy: name an app with proxy", app.Name)
}

// FarProxy resolves a near proxy's peer, which must be on another node and have no peer of its own.
func (t *Topology) FarProxy(near Node, p *v1alpha1.Proxy) (Node, v1alpha1.App, error) {
	on, app, err := t.Proxy(near, p.Peer)
	switch {
	case err != nil:
	case app.Proxy.Peer != "":
		err = fmt.Errorf("app %q has a peer too: the far proxy of a pair has none, and takes its settings from the near one", app.Name)
	case on.Name == near.Name:
		err = fmt.Errorf("is on the same node, %s: the far proxy is on the other side of the link", on.Name)
	}
	return on, app, err
}

// NearProxies are the proxies whose peer is a far one, as nodes and their apps.
func (t *Topology) NearProxies(far Node, app string) (nodes []Node, apps []v1alpha1.App) {
	for _, node := range t.Nodes {
		for _, name := range node.Apps {
			near := t.apps[name]
			if near.Proxy == nil || near.Proxy.Peer == "" {
				continue
			}
			if on, peer, err := t.FarProxy(node, near.Proxy); err == nil && on.Name == far.Name && peer.Name == app {
				nodes, apps = append(nodes, node), append(apps, near)
			}
		}
	}
	return nodes, apps
}

// checkProxy finds a proxy without its pair, and pairs that do not agree.
func (t references) checkProxy(app v1alpha1.App, node Node, path *field.Path) (errs field.ErrorList) {
	p := app.Proxy
	if p == nil {
		return nil
	}
	if p.Peer == "" {
		return t.checkFarProxy(app, node, path)
	}
	if _, _, err := t.FarProxy(node, p); err != nil {
		errs = append(errs, field.Invalid(path.Child("peer"), p.Peer, err.Error()))
	}
	byBroker := p.Protocol == v1alpha1.ProxyAMQP
	switch {
	case !byBroker && p.Broker != "":
		errs = append(errs, field.Forbidden(path.Child("broker"), "broker is for protocol amqp"))
	case byBroker && p.Broker == "":
		errs = append(errs, field.Required(path.Child("broker"), "protocol amqp needs a broker: the name of a rabbitmq app"))
	case byBroker:
		if _, err := t.Broker(node, v1alpha1.ProtocolAMQP, p.Broker); err != nil {
			errs = append(errs, field.Invalid(path.Child("broker"), p.Broker, err.Error()))
		}
	}
	if p.Deadline != "" && (p.Deadline.Std() <= 0 || p.Deadline.Std() > longestDeadline) {
		errs = append(errs, field.Invalid(path.Child("deadline"), p.Deadline, fmt.Sprintf("must be above zero, and %s at most", wording.Time(longestDeadline))))
	}
	return errs
}

// checkFarProxy finds a far proxy that no near one names, or that near ones name with different settings.
func (t references) checkFarProxy(app v1alpha1.App, node Node, path *field.Path) (errs field.ErrorList) {
	p := app.Proxy
	if *p != (v1alpha1.Proxy{}) {
		errs = append(errs, field.Forbidden(path, "a proxy without peer is the far one of its pair, and takes its settings from the near one: leave them out, or name a peer"))
	}
	nodes, near := t.NearProxies(node, app.Name)
	if len(near) == 0 {
		return append(errs, field.Invalid(path, app.Name, fmt.Sprintf("no near proxy has it on node %s as its peer: give this one a peer, or name it as the peer of another", node.Name)))
	}
	for i, other := range near[1:] {
		if *withoutPort(other.Proxy) != *withoutPort(near[0].Proxy) {
			errs = append(errs, field.Invalid(path, app.Name, fmt.Sprintf("its near proxies %s/%s and %s/%s have different settings: give both the same",
				nodes[0].Name, near[0].Name, nodes[i+1].Name, other.Name)))
			break
		}
	}
	if near[0].Proxy.Protocol == v1alpha1.ProxyAMQP {
		errs = append(errs, t.checkSameBroker(node, nodes[0], near[0], path)...)
	}
	return errs
}

func withoutPort(p *v1alpha1.Proxy) *v1alpha1.Proxy {
	settings := *p
	settings.Port, settings.Peer = 0, ""
	return &settings
}

// checkSameBroker finds a pair whose proxies resolve the broker differently.
func (t references) checkSameBroker(far, near Node, app v1alpha1.App, path *field.Path) field.ErrorList {
	there, err := t.Broker(near, v1alpha1.ProtocolAMQP, app.Proxy.Broker)
	if err != nil {
		return nil // it is said of the near one
	}
	here, err := t.Broker(far, v1alpha1.ProtocolAMQP, app.Proxy.Broker)
	if err != nil {
		return field.ErrorList{field.Invalid(path, app.Proxy.Broker, "broker of the near proxy: "+err.Error())}
	}
	if there.Name != here.Name {
		return field.ErrorList{field.Invalid(path, app.Proxy.Broker, fmt.Sprintf("broker %s of the near proxy is the one on %s, and here the one on %s: name one, such as %s/%[1]s",
			app.Proxy.Broker, there.Name, here.Name, here.Name))}
	}
	return nil
}
