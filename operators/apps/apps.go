// Package apps renders the apps of an experiment. Each kind of app (a folder below) renders one app on one node for its
// agent. Rendering is pure, and its only randomness comes from the experiment's seed.
package apps

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/mgen"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Port is the port of a broker for a protocol. With TLS it is mostly another one.
func Port(protocol v1alpha1.Protocol, broker v1alpha1.App) int {
	described := trafficconfig.ProtocolOf(protocol)
	if described.SecurePort != 0 && broker.Security != nil && broker.Security.TLS {
		return described.SecurePort
	}
	return described.Port
}

// Images of the platform's own apps.
type Images struct {
	Traffic   string
	Mosquitto string
	MGEN      string
	VerneMQ   string
	// VerneMQAcceptEULA means that the platform's owner has accepted the licence agreement of VerneMQ's image.
	VerneMQAcceptEULA bool
	RabbitMQ          string
	Prosody           string
	// ZeroMQ is the traffic generator with libzmq.
	ZeroMQ string
	// WSNCXF is the WS-Notification broker of Apache CXF.
	WSNCXF string
}

// OfClients is the image of the traffic generator that has the clients of some protocols.
func (i Images) OfClients(protocols ...v1alpha1.Protocol) string {
	for _, protocol := range protocols {
		if trafficconfig.ProtocolOf(protocol).CLibrary {
			return i.ZeroMQ
		}
	}
	return i.Traffic
}

// Server is a broker as its clients see it.
type Server struct {
	// Address is host:port.
	Address string
	// Node and App of the broker.
	Node string
	App  v1alpha1.App
}

// Flows are the input of an mgen app on one node.
type Flows struct {
	// Script with addresses instead of names.
	Script *mgen.Script
	// Nodes are all nodes that run mgen apps, by address.
	Nodes map[string]string
	// Own are the node's addresses and the broadcast addresses of its networks.
	Own []netip.Addr
	// Topics are the destinations of all mgen flows of the experiment.
	Topics []string
}

// Scripted is one node's part of a script of messages.
type Scripted struct {
	// Messages that the node sends, in order of time.
	Messages []v1alpha1.ScriptedMessage
	// Names by which the node is addressed: its own, its group's, and all.
	Names []string
}

// ProxyPair is a near and a far proxy.
type ProxyPair struct {
	// Settings are those of the near proxy.
	Settings v1alpha1.Proxy
	Far      ProxyEnd
}

// ProxyEnd is the far proxy, with its address as seen from the near one.
type ProxyEnd struct{ Node, App, Address string }

// Member is a node that runs a messaging service, with its address as seen from the site's node.
type Member struct{ Node, Group, Address string }

// AddresseeAll is the addressee of messages to all nodes that run an app.
const AddresseeAll = "all"

// IsAddressed reports whether a message to a node, a group or all is for the member.
func (m Member) IsAddressed(to string) bool {
	return m.Node == to || m.Group == to || to == AddresseeAll
}

// MulticastGroup is a multicast group of a messaging service.
type MulticastGroup struct {
	// Name of the group of nodes, or all.
	Name    string
	Address string
	Members []string
}

// PGM is the multicast of a ZeroMQ client or broker on Site.Interface. Groups are address:port.
type PGM struct {
	// Publishers are the groups to which publishing instances send, in their order. A broker has those of all its publishers.
	Publishers []string
	// Subscribers is the group to which the broker sends.
	Subscribers string
	// RateKilobits is the maximum rate of each sender in kbit/s.
	RateKilobits int
	// Filters of all of a broker's subscribers.
	Filters []string
}

// Sender is the identity of a publishing instance in topics and payloads.
type Sender struct {
	Country, Unit, Entity string
}

// Site is one app on one node, with all of its surroundings that a kind may need.
type Site struct {
	App   v1alpha1.App
	Node  string
	Group string
	// Instances are the instances' names, node/app or node/app/i.
	Instances []string
	// Seed of the experiment.
	Seed int64
	// Broker that the app's clients connect to, for protocols that have one.
	Broker Server
	// Failover are the brokers to which they fail over.
	Failover []Server
	// Servers are the brokers of a gateway, or of a mediator's legs or a broker's bridges, in their order.
	Servers []Server
	// ClusterPeers are the host names of the other nodes of the broker's cluster.
	ClusterPeers []string
	// Broadcast is address:port, for brokerless protocols: the broadcast address of the network named Interface.
	Broadcast string
	Interface string
	// PGM is for ZeroMQ only; nil for other transports and protocols.
	PGM *PGM
	// PredefinedTopics of MQTT-SN with their ids. A publisher with QoS -1 has its own, a gateway all of the experiment.
	PredefinedTopics map[string]uint16
	// Senders of a publishing app, one for each instance.
	Senders []Sender
	// Platforms of a publishing app whose positions its instances report, in their order; nil for the node's own position.
	Platforms []int
	// Flows of an mgen app; nil for others.
	Flows *Flows
	// Scripted messages of a script app or a messaging service; nil for others, and for an invalid script.
	Scripted *Scripted
	// Push means that this node sends a messaging service's periodic messages.
	Push bool
	// Proxy is host:port of the HTTP proxy of a messaging service; empty for none.
	Proxy string
	// Proxies are a proxy app's pair.
	Proxies ProxyPair
	// Members are all nodes that run a messaging service, and Multicast its groups of them.
	Members   []Member
	Multicast []MulticastGroup
	// Pattern is a publisher's MGEN script, empty for one with a period.
	Pattern string
	// FirstIndex is the index of this node's first instance among the TotalInstances of the app in the experiment.
	FirstIndex, TotalInstances int
	// MetricsPorts of the instances; 0 for none.
	MetricsPorts []int
	// MemoryLimit is what the app's container or its virtual machine may use, in bytes; 0 for no limit.
	MemoryLimit int64
	// ScratchLimit is what each of the container's folders may have, in bytes; 0 for no limit.
	ScratchLimit int64
	Images       Images
}

// Addressed returns the other members that a message to a node, a group or all is for.
func (s Site) Addressed(to string) (members []Member) {
	for _, m := range s.Members {
		if m.Node != s.Node && m.IsAddressed(to) {
			members = append(members, m)
		}
	}
	return members
}

// StatisticsPorts has the metrics port of an app with one instance, if any.
func (s Site) StatisticsPorts() []int {
	if len(s.MetricsPorts) == 0 || s.MetricsPorts[0] == 0 {
		return nil
	}
	return s.MetricsPorts[:1]
}

// ErlangCookie is the shared secret of the brokers of an app's cluster.
func ErlangCookie(site Site) string {
	sum := sha256.Sum256([]byte("vignette:erlang-cookie:" + strconv.FormatInt(site.Seed, 10) + ":" + site.App.Name))
	return hex.EncodeToString(sum[:16])
}

// Rendering is the result of rendering a site.
type Rendering struct {
	Image     string
	Instances []agentconfig.Instance
	Files     []agentconfig.File
	// Env of the container.
	Env []v1alpha1.EnvVar
	// StopGraceSeconds is the time from SIGTERM to SIGKILL.
	StopGraceSeconds float64
	// DrainOnStop means that a stop ends only sending. The app receives until the run finishes.
	DrainOnStop bool
	// MetricsPorts that are served.
	MetricsPorts []int
	// Topics to which instances and Senders send, by their names; more than once does no harm.
	Topics map[string][]string
	// Subscriptions of each instance, in order; null if the app subscribes to nothing.
	Subscriptions [][]string
	// Senders are further names under which the first instance logs its messages.
	Senders []string
	// Publishes means that the instances send messages.
	Publishes bool
}

// Kind of app.
type Kind interface {
	// Name of the kind in the plan and the results, such as mosquitto, traffic, mgen or image.
	Name() string
	// Render renders one app on one node.
	Render(Site) Rendering
}

// Phase is the time of the first message of the i-th instance, from 0, after its start and lead, in seconds. It is less than the period.
func Phase(site Site, phase v1alpha1.Phase, periodSeconds float64, i int) float64 {
	switch phase {
	case v1alpha1.PhaseAligned, v1alpha1.PhaseConnected:
		return 0
	case v1alpha1.PhaseSpread:
		// In the middle of its share, because at the start itself no client is connected yet.
		return periodSeconds * (float64(site.FirstIndex+i) + 0.5) / float64(site.TotalInstances)
	default:
		return periodSeconds * Fraction(site.Seed, "phase", site.Instances[i])
	}
}

// Seed derives the seed of a stream from the experiment's seed: the first 63 bits of
// SHA-256("vignette:" + purpose + ":" + seed in decimal + ":" + name). It depends on nothing else, so a new node does not
// change the streams of others.
func Seed(experiment int64, purpose, name string) int64 {
	sum := sha256.Sum256([]byte("vignette:" + purpose + ":" + strconv.FormatInt(experiment, 10) + ":" + name))
	return int64(binary.BigEndian.Uint64(sum[:8]) >> 1)
}

// Fraction is Seed scaled to 0 ≤ f < 1.
func Fraction(experiment int64, purpose, name string) float64 {
	return float64(Seed(experiment, purpose, name)>>10) / (1 << 53)
}

// PayloadFile is the path of the file with the content of a publisher's messages, in its container.
const PayloadFile = "/vignette/payload"

// RunFile is a path in the container's own run directory.
func RunFile(format string, args ...any) string {
	return agentconfig.RunDir + "/" + fmt.Sprintf(format, args...)
}

// JSON encodes the configuration of a program of the platform.
func JSON(config any) string {
	text, err := json.Marshal(config)
	if err != nil {
		panic(fmt.Sprintf("configuration %+v: %v", config, err)) // plain strings and numbers always encode
	}
	return string(text)
}
