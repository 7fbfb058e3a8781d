// Package mediator renders mediators between protocols: `traffic mediate`.
package mediator

import (
	"fmt"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
	"vignette.dev/vignette/operators/apps/traffic"
)

// Kind renders mediators between protocols.
type Kind struct{}

// Name of the kind.
func (Kind) Name() string { return "mediator" }

// Render renders one process.
func (Kind) Render(site apps.Site) apps.Rendering {
	config, path := Config(site), apps.RunFile("mediator.json")
	return apps.Rendering{
		Image: image(site), StopGraceSeconds: 3,
		Instances: []agentconfig.Instance{{Name: config.Instance, Command: []string{"/traffic", "mediate", "--config", path}}},
		Files:     []agentconfig.File{{Path: path, Content: apps.JSON(config)}}, MetricsPorts: site.StatisticsPorts(),
	}
}

// image of the program, which has the clients of all legs.
func image(site apps.Site) string {
	protocols := make([]v1alpha1.Protocol, len(site.App.Mediator.Legs))
	for i, leg := range site.App.Mediator.Legs {
		protocols[i] = leg.Protocol
	}
	return site.Images.OfClients(protocols...)
}

// Config is the mediator's configuration.
func Config(site apps.Site) trafficconfig.Mediator {
	m := trafficconfig.Mediator{
		Instance: site.Instances[0], Seed: apps.Seed(site.Seed, "instance", site.Instances[0]), MetricsPort: site.MetricsPorts[0],
	}
	for i, leg := range site.App.Mediator.Legs {
		server := site.Servers[i]
		l := trafficconfig.Leg{
			Name: fmt.Sprintf("%s@%s/%s", leg.Protocol, server.Node, server.App.Name), Protocol: string(leg.Protocol), Broker: server.Address,
			Version: traffic.Version(leg.Protocol, "3.1.1"), Security: traffic.Security(server.App), WSN: traffic.WSN(server.App),
			QoS: int(leg.QoS), Topics: leg.Topics, Prefix: leg.Prefix,
		}
		if z := server.App.ZeroMQBroker; z != nil {
			l.Transport = string(z.Transport)
		}
		if len(l.Topics) == 0 {
			l.Topics = []string{"#"}
		}
		m.Legs = append(m.Legs, l)
	}
	return m
}
