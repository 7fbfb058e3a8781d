// Package messaging renders messaging services: apps that send and serve requests by HTTP, CoAP or SOAP.
package messaging

import (
	"cmp"
	"math"
	"net"
	"slices"
	"strconv"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/messagingconfig"
	"vignette.dev/vignette/internal/traffic/encoding"
	"vignette.dev/vignette/internal/traffic/request"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

// Kind renders messaging services, which the traffic program runs.
type Kind struct{}

// Name of the kind.
func (Kind) Name() string { return "traffic" }

// Topic is the topic of an app's messages to a node, or to a multicast group.
func Topic(app, to string) string { return "messaging/" + app + "/to/" + to }

// Render renders one service.
func (Kind) Render(site apps.Site) apps.Rendering {
	config, path := Config(site), apps.RunFile("messaging.json")
	r := apps.Rendering{
		Image: site.Images.Traffic, StopGraceSeconds: 2, DrainOnStop: site.App.Messaging.Sends(), Publishes: len(config.Messages) > 0 || config.Push != nil,
		Instances: []agentconfig.Instance{{Name: config.Instance, Command: []string{"/traffic", "messaging", "--config", path}}},
		Files:     []agentconfig.File{{Path: path, Content: apps.JSON(config)}},
		Topics:    map[string][]string{}, MetricsPorts: site.StatisticsPorts(),
	}
	if !config.ClientOnly {
		r.Subscriptions = [][]string{{config.Topic}}
	}
	for _, to := range config.Addressees {
		r.Topics[config.Instance] = append(r.Topics[config.Instance], to.Topic)
	}
	for _, g := range config.Groups {
		r.Subscriptions[0] = append(r.Subscriptions[0], g.Topic)
	}
	return r
}

// Port is the one at which a service is reached.
func Port(m *v1alpha1.Messaging) int {
	if m.Port != 0 {
		return int(m.Port)
	}
	return messagingconfig.TransportOf(m.Transport).Port
}

// Settings are the part of a service's configuration that is the same on all nodes.
func Settings(app v1alpha1.App) messagingconfig.Config {
	m := app.Messaging
	c := messagingconfig.Config{
		Transport: string(m.Transport), Port: Port(m), ClientOnly: m.Server != "", Path: m.Path, Encoding: string(m.Encoding), Compression: string(m.Compression), Model: cmp.Or(string(m.Model), encoding.Military),
		Receipt: m.WantsReceipt(), TimeoutSeconds: m.Timeout.Std().Seconds(), Reply: m.Reply, HTTP: httpOptions(m.HTTP), CoAP: coapOptions(m.CoAP),
	}
	if m.BySOAP() {
		c.SOAP, c.Compression = soapOptions(m), ""
	}
	return c
}

// soapOptions has the compression too: it is that of the whole envelope.
func soapOptions(m *v1alpha1.Messaging) (o request.SOAPOptions) {
	if m.Compression == v1alpha1.CompressionGzip {
		o.Envelope = request.EnvelopeGzip
	}
	if m.SOAP == nil {
		return o
	}
	if m.SOAP.Envelope == v1alpha1.EnvelopeEXI {
		o.Envelope = request.EnvelopeEXI
	}
	o.UnicastRepeat, o.MulticastRepeat = toInt(m.SOAP.UnicastRepeat), toInt(m.SOAP.MulticastRepeat)
	return o
}

func toInt(value *int32) *int {
	if value == nil {
		return nil
	}
	n := int(*value)
	return &n
}

func httpOptions(s *v1alpha1.HTTPSettings) request.HTTPOptions {
	return request.HTTPOptions{FreshConnections: s != nil && s.Connections == v1alpha1.ConnectionsFresh}
}

func coapOptions(s *v1alpha1.CoAPSettings) (o request.CoAPOptions) {
	if s == nil {
		return o
	}
	o = request.CoAPOptions{
		NonConfirmable: s.Confirmable != nil && !*s.Confirmable, ACKTimeoutSeconds: s.ACKTimeout.Std().Seconds(),
		NSTART: int(s.NSTART), BlockBytes: int(s.BlockBytes),
	}
	if s.ACKRandomPercent != nil {
		o.ACKRandomFactor = 1 + float64(*s.ACKRandomPercent)/100
	}
	o.MaxRetransmit = toInt(s.MaxRetransmit)
	return o
}

// Config is the configuration of a node's service.
func Config(site apps.Site) messagingconfig.Config {
	name := site.Instances[0]
	c := Settings(site.App)
	c.Instance, c.Topic = name, Topic(site.App.Name, site.Node)
	c.Seed, c.MetricsPort = apps.Seed(site.Seed, "instance", name), site.MetricsPorts[0]
	if len(site.Senders) > 0 {
		c.Country, c.Unit, c.Entity = site.Senders[0].Country, site.Senders[0].Unit, site.Senders[0].Entity
	}
	c.HTTP.Proxy = site.Proxy
	if site.App.Messaging.Multicast {
		c.Interface = site.Interface
		for _, g := range site.Multicast {
			if slices.Contains(g.Members, site.Node) {
				c.Groups = append(c.Groups, messagingconfig.Group{Name: g.Name, Address: g.Address, Topic: Topic(site.App.Name, g.Name)})
			}
		}
	}
	if site.Scripted != nil { // else there is none, or an invalid one, which a check reports
		for _, m := range site.Scripted.Messages {
			c.Messages = append(c.Messages, Message(m))
			c.AddDestination(m.To, addressees(site, m.To))
		}
	}
	if site.Push {
		c.Push = push(site)
		c.AddDestination(c.Push.To, addressees(site, c.Push.To))
	}
	return c
}

// Message is a message of a script.
func Message(m v1alpha1.ScriptedMessage) messagingconfig.Message {
	return messagingconfig.Message{
		AtSeconds: math.Round(m.Std().Seconds()*1e9) / 1e9, Type: cmp.Or(m.Type, defaultType), From: m.From, To: m.To, Text: m.Text, Bytes: int(m.Bytes),
	}
}

// defaultType of a message, as in the published experiments.
const defaultType = "TEXT"

// defaultPayload is that of a push.
const defaultPayload = encoding.GeoJSON

func push(site apps.Site) *messagingconfig.Push {
	p := site.App.Messaging.Push
	made := &messagingconfig.Push{
		To: p.To, PeriodSeconds: p.Period.Std().Seconds(), Payload: PayloadOf(p),
		FirstAfterSeconds: p.Lead.Std().Seconds() + apps.Phase(site, v1alpha1.Phase(p.Phase), p.Period.Std().Seconds(), 0),
	}
	return made
}

// PayloadOf a push.
func PayloadOf(p *v1alpha1.Push) string { return cmp.Or(p.Payload, defaultPayload) }

// addressees of a message from this node to a node, a group or all: each other node, or the multicast group.
func addressees(site apps.Site, to string) (all []messagingconfig.Addressee) {
	port := strconv.Itoa(Port(site.App.Messaging))
	for _, g := range site.Multicast {
		if g.Name == to {
			return []messagingconfig.Addressee{{Address: net.JoinHostPort(g.Address, port), Topic: Topic(site.App.Name, to), Group: to}}
		}
	}
	for _, m := range site.Addressed(to) {
		all = append(all, messagingconfig.Addressee{Address: net.JoinHostPort(m.Address, port), Topic: Topic(site.App.Name, m.Node)})
	}
	return all
}
