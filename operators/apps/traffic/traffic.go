// Package traffic renders publishers, subscribers and clients that are both, all run by the traffic generator.
package traffic

import (
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/traffic/protocol"
	"vignette.dev/vignette/internal/traffic/wsn"
	"vignette.dev/vignette/internal/traffic/zeromq"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

// Kind renders traffic.
type Kind struct{}

// Name of the kind.
func (Kind) Name() string { return "traffic" }

// Render renders one process and one configuration file for each instance.
func (Kind) Render(site apps.Site) apps.Rendering {
	// A client that does both receives until the end of the drain, or messages in transit would count as lost.
	both := site.App.Publisher != nil && site.App.Subscriber != nil
	r := apps.Rendering{Image: image(site), StopGraceSeconds: 2, DrainOnStop: both, Publishes: site.App.Publisher != nil, Topics: map[string][]string{}}
	for i, name := range site.Instances {
		config := Config(site, i)
		path := apps.RunFile("traffic-%d.json", i+1)
		instance := agentconfig.Instance{Name: name, Command: []string{"/traffic", "--config", path}}
		if i < len(site.Platforms) {
			instance.Platform = site.Platforms[i]
		}
		r.Instances = append(r.Instances, instance)
		r.Files = append(r.Files, agentconfig.File{Path: path, Content: apps.JSON(config)})
		if config.Publish != nil {
			r.Topics[name] = []string{config.Publish.Topic}
		}
		if config.Subscribe != nil {
			r.Subscriptions = append(r.Subscriptions, config.Subscribe.Topics)
		}
		if config.MetricsPort != 0 {
			r.MetricsPorts = append(r.MetricsPorts, config.MetricsPort)
		}
	}
	return r
}

// image is the image of the traffic generator.
func image(site apps.Site) string {
	if p := site.App.Publisher; p != nil {
		return site.Images.OfClients(p.Protocol)
	}
	return site.Images.OfClients(site.App.Subscriber.Protocol)
}

// Config is the configuration of the i-th instance, from 0.
func Config(site apps.Site, i int) trafficconfig.Config {
	name := site.Instances[i]
	c := trafficconfig.Config{
		Instance: name, Broker: site.Broker.Address, Broadcast: site.Broadcast, Interface: site.Interface,
		Seed: apps.Seed(site.Seed, "instance", name), MetricsPort: site.MetricsPorts[i],
	}
	for _, further := range site.Failover {
		c.Failover = append(c.Failover, further.Address)
	}
	c.Security = Security(site.Broker.App)
	c.WSN = WSN(site.Broker.App)
	if z := site.Broker.App.ZeroMQBroker; z != nil {
		c.Transport = string(z.Transport)
	}
	if site.PGM != nil {
		c.PGM = &zeromq.PGM{RateKilobits: site.PGM.RateKilobits}
		if site.App.Subscriber != nil {
			c.PGM.Subscribe = site.PGM.Subscribers
		}
		if site.App.Publisher != nil {
			c.PGM.Publish = site.PGM.Publishers[i]
		}
	}
	if s := site.App.Subscriber; s != nil {
		c.Protocol, c.Version, c.Session = string(s.Protocol), Version(s.Protocol, s.Version), session(s.Session)
		c.Subscribe = &trafficconfig.Subscribe{Topics: Subscriptions(site.App, site.Node, i), QoS: int(s.QoS)}
		if s.Sleep != nil {
			c.Subscribe.SleepSeconds = s.Sleep.Std().Seconds()
		}
		c.SignatureKey = s.SignatureKey
	}
	if p := site.App.Publisher; p != nil {
		sender := site.Senders[i]
		c.Protocol, c.Version, c.Session = string(p.Protocol), Version(p.Protocol, p.Version), session(p.Session)
		c.Country, c.Unit, c.Entity = sender.Country, sender.Unit, sender.Entity
		c.Publish = publish(site, i)
		c.SignatureKey = p.SignatureKey
	}
	return c
}

func publish(site apps.Site, i int) *trafficconfig.Publish {
	p := site.App.Publisher
	config := &trafficconfig.Publish{Topic: Topic(site, i), QoS: int(p.QoS), Retain: p.Retain, FirstAfterSeconds: p.Lead.Std().Seconds(),
		AfterConnection: p.Phase == v1alpha1.PhaseConnected}
	if a := p.AdaptRate; a != nil {
		config.AdaptRate = &trafficconfig.AdaptRate{HighFrames: int(a.HighFrames), LowFrames: int(ptr.Deref(a.LowFrames, 0)), MaxPeriodSeconds: a.MaxPeriod.Std().Seconds()}
	}
	if r := p.Repeat; r != nil {
		config.Repeat = &trafficconfig.Repeat{Times: int(r.Times), IntervalSeconds: v1alpha1.Duration(r.Interval).Std().Seconds()}
	}
	if id, ok := site.PredefinedTopics[config.Topic]; ok {
		config.PredefinedTopics = map[string]uint16{config.Topic: id}
	}
	if p.Pattern != nil {
		config.Pattern = site.Pattern
		return config
	}
	if config.Payload = p.Payload; config.Payload == "" {
		config.Payload = defaultPayload
	}
	if strings.HasPrefix(config.Payload, filePayload) {
		config.Payload = filePayload + apps.PayloadFile
	}
	config.Encoding, config.Compression = string(p.Encoding), string(p.Compression)
	config.PeriodSeconds = p.Period.Std().Seconds()
	config.FirstAfterSeconds += apps.Phase(site, p.Phase, config.PeriodSeconds, i)
	return config
}

// Security is that of the connections to a broker, nil for none.
func Security(broker v1alpha1.App) *protocol.Security {
	if broker.Security == nil {
		return nil
	}
	s := &protocol.Security{}
	if broker.Security.TLS {
		s.CAFile = agentconfig.SecurityDir + "/ca.crt"
	}
	if broker.Security.Password {
		s.UsernameFile, s.PasswordFile = agentconfig.SecurityDir+"/username", agentconfig.SecurityDir+"/password"
	}
	return s
}

// WSN has the settings of clients of a WS-Notification broker, nil for the defaults.
func WSN(broker v1alpha1.App) *wsn.Options {
	if w := broker.WSNBroker; w != nil && w.Implementation == v1alpha1.WSNCXF {
		return &wsn.Options{Dialect: wsn.DialectSimple}
	}
	return nil
}

// session converts a session to the traffic generator's configuration.
func session(s v1alpha1.Session) string {
	if s == v1alpha1.SessionAuto {
		return trafficconfig.SessionAuto
	}
	return string(s)
}

const (
	// defaultPayload is that of publishers with a period.
	defaultPayload = "geojson"
	// filePayload is the prefix of a payload from a file: a ConfigMap in the spec, a path in the container.
	filePayload = "file:"
)

// Version is a client's version of MQTT, empty for other protocols.
func Version(protocol v1alpha1.Protocol, v v1alpha1.MQTTVersion) string {
	if !trafficconfig.ProtocolOf(protocol).Versions {
		return ""
	}
	return string(v)
}

// Subscriptions are the filters of the i-th instance of a subscriber on a node, from 0.
func Subscriptions(app v1alpha1.App, node string, i int) []string {
	if len(app.Subscriber.Topics) == 0 {
		return []string{"#"}
	}
	own := make([]string, len(app.Subscriber.Topics))
	for j, filter := range app.Subscriber.Topics {
		own[j] = strings.NewReplacer("{node}", node, "{app}", app.Name, "{instance}", strconv.Itoa(i+1)).Replace(filter)
	}
	return own
}

// Topic is the topic of the i-th instance, from 0, without placeholders. {instance} is its number on the node, from 1.
func Topic(site apps.Site, i int) string {
	sender := site.Senders[i]
	return strings.NewReplacer(
		"{country}", sender.Country, "{unit}", sender.Unit, "{entity}", sender.Entity,
		"{node}", site.Node, "{app}", site.App.Name, "{instance}", strconv.Itoa(i+1),
	).Replace(site.App.Publisher.Topic)
}
