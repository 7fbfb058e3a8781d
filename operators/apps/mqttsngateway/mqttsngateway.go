// Package mqttsngateway renders MQTT-SN gateways: `traffic mqtt-sn-gateway`.
package mqttsngateway

import (
	"fmt"
	"math"
	"strconv"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/traffic/mqttsn"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
	"vignette.dev/vignette/operators/apps/traffic"
)

// Kind renders MQTT-SN gateways.
type Kind struct{}

// Name of the kind.
func (Kind) Name() string { return "mqttsngateway" }

// Render renders one process.
func (Kind) Render(site apps.Site) apps.Rendering {
	config, path := Config(site), apps.RunFile("mqtt-sn-gateway.json")
	return apps.Rendering{
		Image: site.Images.Traffic, StopGraceSeconds: 3,
		Instances: []agentconfig.Instance{{Name: site.Instances[0], Command: []string{"/traffic", "mqtt-sn-gateway", "--config", path}}},
		Files:     []agentconfig.File{{Path: path, Content: apps.JSON(config)}}, MetricsPorts: site.StatisticsPorts(),
	}
}

// ownNetwork is the pod's own network, which is none of the experiment's.
const ownNetwork = "eth0"

// Config is the gateway's configuration.
func Config(site apps.Site) mqttsn.GatewayConfig {
	spec, broker := site.App.MQTTSNGateway, site.Servers[0]
	c := mqttsn.GatewayConfig{
		// Like in the traffic generator there is no slash, which some brokers' access rules forbid.
		Name: site.Node + ":" + site.App.Name, Listen: fmt.Sprintf(":%d", apps.Port(v1alpha1.ProtocolMQTTSN, site.App)), Mode: string(spec.Mode),
		Broker: broker.Address, Security: traffic.Security(broker.App), MaxClients: int(spec.MaxClients), Seed: apps.Seed(site.Seed, "instance", site.Instances[0]),
		MetricsPort: site.MetricsPorts[0], AdvertiseNotOn: ownNetwork,
	}
	if spec.Advertise != nil {
		c.AdvertiseSeconds = min(max(int(math.Round(spec.Advertise.Std().Seconds())), 1), math.MaxUint16)
	}
	for topic, id := range site.PredefinedTopics {
		if c.PredefinedTopics == nil {
			c.PredefinedTopics = map[string]string{}
		}
		c.PredefinedTopics[strconv.Itoa(int(id))] = topic
	}
	return c
}
