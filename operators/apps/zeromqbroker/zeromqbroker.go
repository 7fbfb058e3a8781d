// Package zeromqbroker renders brokers of ZeroMQ messages.
package zeromqbroker

import (
	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/traffic/zeromq"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

// Kind renders brokers of ZeroMQ messages.
type Kind struct{}

// Name of the kind.
func (Kind) Name() string { return "zeromqbroker" }

// Render renders one process.
func (Kind) Render(site apps.Site) apps.Rendering {
	path := apps.RunFile("zeromq-broker.json")
	return apps.Rendering{
		Image: site.Images.ZeroMQ, StopGraceSeconds: 3, MetricsPorts: site.MetricsPorts[:1],
		Instances: []agentconfig.Instance{{Name: site.Instances[0], Command: []string{"/traffic", "zeromq-broker", "--config", path}}},
		Files:     []agentconfig.File{{Path: path, Content: apps.JSON(Config(site))}},
	}
}

// Config is the broker's configuration.
func Config(site apps.Site) zeromq.BrokerConfig {
	c := zeromq.BrokerConfig{Instance: site.Instances[0], Transport: zeromq.TransportTCP, MetricsPort: site.MetricsPorts[0]}
	if site.PGM == nil {
		c.Address, c.Port = "*", apps.Port(v1alpha1.ProtocolZeroMQ, site.App)
		return c
	}
	c.Transport = string(site.App.ZeroMQBroker.Transport)
	c.PGM = &zeromq.BrokerPGM{Interface: site.Interface, Publishers: site.PGM.Publishers, Subscribers: site.PGM.Subscribers,
		RateKilobits: site.PGM.RateKilobits, Filters: site.PGM.Filters}
	return c
}
