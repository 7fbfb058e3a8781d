// Package proxy renders the two HTTP proxies on either side of a constrained link.
package proxy

import (
	"cmp"
	"fmt"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/proxyconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
	"vignette.dev/vignette/operators/apps/traffic"
)

const (
	// defaultPort is that of most HTTP proxies.
	defaultPort = 3128
	// LinkPort is where a far proxy expects its near ones, by TCP and UDP.
	LinkPort = 3129
)

// Kind renders proxies.
type Kind struct{}

// Name of the kind.
func (Kind) Name() string { return "proxy" }

// Topic is the topic of what near proxies carry to a far one.
func Topic(far apps.ProxyEnd) string { return "proxy/" + far.App + "/to/" + far.Node }

// Port is the one for HTTP clients.
func Port(p *v1alpha1.Proxy) int {
	if p.Port != 0 {
		return int(p.Port)
	}
	return defaultPort
}

// Render renders one proxy.
func (Kind) Render(site apps.Site) apps.Rendering {
	config, path := Config(site), apps.RunFile("proxy.json")
	r := apps.Rendering{
		Image: site.Images.Traffic, StopGraceSeconds: 3, Publishes: config.Near != nil && config.Topic != "",
		Instances: []agentconfig.Instance{{Name: config.Instance, Command: []string{"/traffic", "proxy", "--config", path}}},
		Files:     []agentconfig.File{{Path: path, Content: apps.JSON(config)}}, MetricsPorts: site.StatisticsPorts(),
	}
	switch {
	case r.Publishes:
		r.Topics = map[string][]string{config.Instance: {config.Topic}}
	case config.Topic != "":
		r.Subscriptions = [][]string{{config.Topic}}
	}
	return r
}

// diskMiB is the most of a folder with a limit that a proxy fills, as its pod would be evicted beyond; 0 for the default.
func diskMiB(limit int64) int {
	if limit == 0 || limit >= 1<<30 {
		return 0
	}
	return max(1, int(limit>>20)*2/5)
}

// Config is the configuration of a node's proxy. The near proxy's settings are those of both.
func Config(site apps.Site) proxyconfig.Config {
	near := site.Proxies.Settings
	c := proxyconfig.Config{
		Instance: site.Instances[0], Protocol: cmp.Or(string(near.Protocol), proxyconfig.ProtocolHTTP), Compression: string(near.Compression),
		Folder: apps.RunFile("queue"), MetricsPort: site.MetricsPorts[0],
		Limits: proxyconfig.Limits{Requests: int(near.MaxQueue), DiskMiB: diskMiB(site.ScratchLimit)},
	}
	if near.LogMessages {
		c.Topic = Topic(site.Proxies.Far)
	}
	queue := ""
	if c.Protocol == proxyconfig.ProtocolAMQP {
		queue = "proxy/" + site.Proxies.Far.Node + "/" + site.Proxies.Far.App
		c.AMQP = &proxyconfig.AMQP{Broker: site.Broker.Address}
		if s := traffic.Security(site.Broker.App); s != nil {
			c.AMQP.CAFile, c.AMQP.UsernameFile, c.AMQP.PasswordFile = s.CAFile, s.UsernameFile, s.PasswordFile
		}
	}
	if site.App.Proxy.Peer != "" {
		c.Near = &proxyconfig.Near{Listen: fmt.Sprintf(":%d", Port(site.App.Proxy)), Queue: queue, DeadlineSeconds: near.Deadline.Std().Seconds()}
		if queue == "" {
			c.Near.Peer = fmt.Sprintf("%s:%d", site.Proxies.Far.Address, LinkPort)
		}
		return c
	}
	c.Far = &proxyconfig.Far{Queue: queue}
	if queue == "" {
		c.Far.Listen = fmt.Sprintf(":%d", LinkPort)
	}
	return c
}
