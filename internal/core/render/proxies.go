package render

import (
	"net"
	"strconv"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
	"vignette.dev/vignette/operators/apps/proxy"
)

// proxies resolves the pair of a proxy.
func (m *siteMaker) proxies(site *apps.Site, node topology.Node, app v1alpha1.App) {
	p := app.Proxy
	if p == nil {
		return
	}
	if p.Peer == "" {
		site.Proxies.Far = apps.ProxyEnd{Node: node.Name, App: app.Name}
		if _, near := m.in.Topology.NearProxies(node, app.Name); len(near) > 0 {
			site.Proxies.Settings = *near[0].Proxy
		}
	} else {
		far, farApp, _ := m.in.Topology.FarProxy(node, p)
		address, _ := m.in.Topology.ReachedAt(far, node)
		site.Proxies = apps.ProxyPair{Settings: *p, Far: apps.ProxyEnd{Node: far.Name, App: farApp.Name, Address: address.String()}}
	}
	if site.Proxies.Settings.Protocol == v1alpha1.ProxyAMQP {
		site.Broker = m.server(node, v1alpha1.ProtocolAMQP, site.Proxies.Settings.Broker)
	}
}

// proxyAddress is host:port of a proxy for a node's clients.
func (m *siteMaker) proxyAddress(node topology.Node, reference string) string {
	on, app, err := m.in.Topology.Proxy(node, reference)
	if err != nil {
		return ""
	}
	host := "127.0.0.1"
	if on.Name != node.Name {
		address, _ := m.in.Topology.ReachedAt(on, node)
		host = address.String()
	}
	return net.JoinHostPort(host, strconv.Itoa(proxy.Port(app.Proxy)))
}
