// Package messagescript renders apps that send and receive the messages of a script.
package messagescript

import (
	"cmp"
	"math"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
	"vignette.dev/vignette/operators/apps/traffic"
)

// Kind renders scripts, which the traffic generator runs.
type Kind struct{}

// Name of the kind.
func (Kind) Name() string { return "traffic" }

// Topic is the topic of an app's messages to an addressee. Only the addressee subscribes to it.
func Topic(app, to string) string { return "script/" + app + "/to/" + to }

// Render renders one client.
func (Kind) Render(site apps.Site) apps.Rendering {
	config, path := Config(site), apps.RunFile("traffic-1.json")
	r := apps.Rendering{
		Image: site.Images.Traffic, StopGraceSeconds: 2, DrainOnStop: true, Publishes: config.Publish != nil, Subscriptions: [][]string{config.Subscribe.Topics},
		Instances: []agentconfig.Instance{{Name: config.Instance, Command: []string{"/traffic", "--config", path}}},
		Files:     []agentconfig.File{{Path: path, Content: apps.JSON(config)}}, MetricsPorts: site.StatisticsPorts(),
	}
	if config.Publish != nil {
		r.Topics = map[string][]string{}
		for _, m := range config.Publish.Messages {
			r.Topics[config.Instance] = append(r.Topics[config.Instance], m.Topic)
		}
	}
	return r
}

// Config is the configuration of the client.
func Config(site apps.Site) trafficconfig.Config {
	name, s := site.Instances[0], site.App.Script
	c := trafficconfig.Config{
		Instance: name, Entity: name, Broker: site.Broker.Address, Broadcast: site.Broadcast, Interface: site.Interface,
		Protocol: string(s.Protocol), Version: traffic.Version(v1alpha1.Protocol(s.Protocol), s.Version), Security: traffic.Security(site.Broker.App),
		Seed: apps.Seed(site.Seed, "instance", name), MetricsPort: site.MetricsPorts[0],
		Subscribe: &trafficconfig.Subscribe{QoS: int(s.QoS), Topics: []string{Topic(site.App.Name, site.Node)}},
	}
	if site.Scripted == nil { // the script is invalid or not known yet, which a check reports
		return c
	}
	c.Subscribe.Topics = nil
	for _, addressed := range site.Scripted.Names {
		c.Subscribe.Topics = append(c.Subscribe.Topics, Topic(site.App.Name, addressed))
	}
	if len(site.Scripted.Messages) > 0 {
		c.Publish = &trafficconfig.Publish{QoS: int(s.QoS), Messages: messages(site)}
	}
	return c
}

func messages(site apps.Site) (all []trafficconfig.Message) {
	for _, m := range site.Scripted.Messages {
		all = append(all, trafficconfig.Message{
			AtSeconds: math.Round(m.Std().Seconds()*1e9) / 1e9, Topic: Topic(site.App.Name, m.To),
			Type: cmp.Or(m.Type, defaultType), From: m.From, To: m.To, Text: m.Text, Bytes: int(m.Bytes),
		})
	}
	return all
}

// defaultType of a message, as in the published experiments.
const defaultType = "TEXT"
