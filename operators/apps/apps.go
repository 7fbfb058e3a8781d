// Package apps renders the apps of an experiment: each kind of app (a folder below) turns one app
// on one node into what its agent runs. Rendering is pure: no clock, no cluster, no randomness but
// the experiment's seed.
package apps

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/mgen"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// BrokerPort is the port of every MQTT broker and of MQTT/UDP.
const BrokerPort = 1883

// Port at which a broker is reached by a protocol. With TLS most have another one.
func Port(protocol v1alpha1.Protocol, broker v1alpha1.App) int {
	if secure, ok := securePorts[protocol]; ok && broker.Security != nil && broker.Security.TLS {
		return secure
	}
	return ports[protocol]
}

// ports are the registered ones (IANA); those of MQTT-SN, ZeroMQ and WS-Notification, which have none, are what others use too.
// Subscribers of ZeroMQ use the port above.
var ports = map[v1alpha1.Protocol]int{
	v1alpha1.ProtocolMQTT: BrokerPort, v1alpha1.ProtocolMQTTUDP: BrokerPort, v1alpha1.ProtocolMQTTSN: 1884, v1alpha1.ProtocolAMQP: 5672,
	v1alpha1.ProtocolSTOMP: 61613, v1alpha1.ProtocolXMPP: 5222, v1alpha1.ProtocolZeroMQ: 5555, v1alpha1.ProtocolWSN: 8080,
}

// securePorts are the registered ones; XMPP begins TLS on its only port.
var securePorts = map[v1alpha1.Protocol]int{
	v1alpha1.ProtocolMQTT: 8883, v1alpha1.ProtocolAMQP: 5671, v1alpha1.ProtocolSTOMP: 61614, v1alpha1.ProtocolWSN: 8443,
}

// Images of the platform's own apps.
type Images struct {
	Traffic   string
	Mosquitto string
	MGEN      string
	VerneMQ   string
	// VerneMQAcceptEULA tells that the platform's owner has accepted the agreement under which VerneMQ's makers publish their image.
	VerneMQAcceptEULA bool
	RabbitMQ          string
	Prosody           string
	// ZeroMQ is the traffic generator with libzmq.
	ZeroMQ string
	// WSNCXF is the WS-Notification broker of Apache CXF.
	WSNCXF string
}

// Server is a broker as its clients see it.
type Server struct {
	// Address is host:port.
	Address string
	// Node and App of the broker.
	Node string
	App  v1alpha1.App
}

// Flows are what an mgen app on one node is to know.
type Flows struct {
	// Script with addresses in the place of names.
	Script *mgen.Script
	// Nodes by their addresses: all that run mgen apps.
	Nodes map[string]string
	// Own addresses of the node, and those of broadcast on its networks.
	Own []netip.Addr
	// Topics that the flows of all the experiment's mgen apps go to.
	Topics []string
}

// Scripted is the part of a script of messages that one node has.
type Scripted struct {
	// Messages that the node sends, in the order of their times.
	Messages []v1alpha1.ScriptedMessage
	// Names by which the node is addressed: its own, its group's, and all.
	Names []string
}

// PGM is how a ZeroMQ client or broker uses multicast on Site.Interface; groups are address:port.
type PGM struct {
	// Publishers are the groups that publishing instances send to, in their order; a broker has those of all its publishers.
	Publishers []string
	// Subscribers is the group that the broker sends to.
	Subscribers string
	// RateKilobits per second that each sender may use.
	RateKilobits int
	// Filters of all of a broker's subscribers.
	Filters []string
}

// Sender is how a publishing instance calls itself in topics and payloads.
type Sender struct {
	Country, Unit, Entity string
}

// Site is one app on one node, with all that a kind may ask of its surroundings.
type Site struct {
	App   v1alpha1.App
	Node  string
	Group string
	// Instances' names: node/app or node/app/i.
	Instances []string
	// Seed of the experiment.
	Seed int64
	// Broker that the app's clients connect to, for protocols that have one.
	Broker Server
	// Failover are the brokers that they go on to.
	Failover []Server
	// Servers that a gateway, mediator or broker is a client of: its broker, or those of its legs or bridges in their order.
	Servers []Server
	// ClusterPeers are the host names of the other nodes of the broker's cluster.
	ClusterPeers []string
	// Broadcast is the broadcast address of the network named Interface, for brokerless protocols.
	Broadcast string
	Interface string
	// PGM of ZeroMQ; nil for other transports and protocols.
	PGM *PGM
	// PredefinedTopics of MQTT-SN with their ids: those of a publisher with QoS -1, and all of the experiment's for a gateway.
	PredefinedTopics map[string]uint16
	// Senders of a publishing app, one for each instance.
	Senders []Sender
	// Flows of an mgen app; nil for others.
	Flows *Flows
	// Scripted messages of a script app; nil for others.
	Scripted *Scripted
	// Pattern is the MGEN script by which a publisher sends; empty for one with a period.
	Pattern string
	// FirstIndex is the place of the first instance here among all AllOfApp instances of the app in the experiment.
	FirstIndex, TotalInstances int
	// MetricsPorts of the instances; 0 for none.
	MetricsPorts []int
	Images       Images
}

// StatisticsPorts has the port of a broker's own statistics, if there is one.
func (s Site) StatisticsPorts() []int {
	if len(s.MetricsPorts) == 0 || s.MetricsPorts[0] == 0 {
		return nil
	}
	return s.MetricsPorts[:1]
}

// ErlangCookie by which the brokers of an app's cluster know each other.
func ErlangCookie(site Site) string {
	sum := sha256.Sum256([]byte("vignette:erlang-cookie:" + strconv.FormatInt(site.Seed, 10) + ":" + site.App.Name))
	return hex.EncodeToString(sum[:16])
}

// Rendering is what a kind makes of a site.
type Rendering struct {
	Image     string
	Instances []agentconfig.Instance
	Files     []agentconfig.File
	// Env of the container.
	Env []v1alpha1.EnvVar
	// StopGraceSeconds from SIGTERM to SIGKILL.
	StopGraceSeconds float64
	// DrainOnStop: a stop ends the sending only; the app receives on until the run finishes.
	DrainOnStop bool
	// MetricsPorts that are served.
	MetricsPorts []int
	// PublishTopics of the instances; null where the app publishes nothing.
	PublishTopics []string
	// Subscriptions of every instance; null where the app subscribes to nothing, or each instance to topics of its own.
	Subscriptions []string
	// InstanceSubscriptions in the order of the instances, where they differ.
	InstanceSubscriptions [][]string
	// Senders are further names by which the first instance logs what it sends.
	Senders []string
	// Publishes tells that the instances send messages.
	Publishes bool
}

// Kind of app.
type Kind interface {
	// Name of the kind as the plan and the results have it: mosquitto, traffic, mgen or image.
	Name() string
	// Render one app on one node.
	Render(Site) Rendering
}

// Seed derives the seed of a stream from the experiment's seed: the first 63 bits of
// SHA-256("vignette:" + purpose + ":" + seed in decimal + ":" + name). It depends on nothing else,
// so an added node leaves every other node's streams as they were.
func Seed(experiment int64, purpose, name string) int64 {
	sum := sha256.Sum256([]byte("vignette:" + purpose + ":" + strconv.FormatInt(experiment, 10) + ":" + name))
	return int64(binary.BigEndian.Uint64(sum[:8]) >> 1)
}

// Fraction of a stream: Seed scaled to 0 ≤ f < 1.
func Fraction(experiment int64, purpose, name string) float64 {
	return float64(Seed(experiment, purpose, name)>>10) / (1 << 53)
}

// PayloadFile is where a publisher's container has the file that its messages are made of.
const PayloadFile = "/vignette/payload"

// RunFile is a path in the container's own run directory.
func RunFile(format string, args ...any) string {
	return agentconfig.RunDir + "/" + fmt.Sprintf(format, args...)
}
