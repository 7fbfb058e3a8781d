package v1alpha1

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Network is one radio network of an experiment. Its name is also the interface's name inside
// every node attached to it. It has either the name of a waveform or an inline model.
//
// +kubebuilder:validation:XValidation:rule="[has(self.waveform), has(self.link), has(self.rfpipe), has(self.tdma)].filter(model, model).size() == 1",message="a network needs one of waveform (the name of a Waveform), link, rfpipe or tdma (a model in place)"
// +kubebuilder:validation:XValidation:rule="self.engine != 'emane' || !has(self.link)",message="engine emane is for radio models; the link model is radiod's own",fieldPath=".engine"
// +kubebuilder:validation:XValidation:rule="!has(self.links) || !has(self.rfpipe) && !has(self.tdma)",message="links are for the link model",fieldPath=".links",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.radios) || !has(self.link)",message="radios are for rfpipe and tdma: the link model knows no transmit power",fieldPath=".radios",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="self.engine != 'emane' || !has(self.rfpipe) || !(has(self.rfpipe.halfDuplex) && self.rfpipe.halfDuplex) && self.rfpipe.interference != 'All'",message="EMANE's RF Pipe is full duplex and knows no interference of its own waveform: leave out halfDuplex and interference All, or take engine native",fieldPath=".engine"
// +kubebuilder:validation:XValidation:rule="!has(self.base) || has(self.waveform)",message="base is for a waveform with a downlink; beside a link in place write links from the base to *",fieldPath=".base",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.links) || self.links.all(a, self.links.exists_one(b, a.from == b.from && a.to == b.to))",message="two links go from the same group to the same group",fieldPath=".links"
type Network struct {
	// name of the network and of the nodes' interface on it.
	// +kubebuilder:validation:MaxLength=12
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([a-z0-9-]*[a-z0-9])?$')",message="must be lower-case letters, digits and hyphens, with a letter first and no hyphen last"
	// +kubebuilder:validation:XValidation:rule="!(self in ['lo', 'eth0', 'all', 'default'])",message="lo and eth0 are other interfaces of the node, and the kernel keeps all and default for itself: take another name"
	Name string `json:"name"`

	// waveform names a Waveform object. Give either waveform or an inline model, such as link.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Waveform string `json:"waveform,omitempty"`

	// link is an inline link model, instead of a named waveform.
	// +optional
	Link *LinkModel `json:"link,omitempty"`

	// rfpipe is an inline radio model without channel access, instead of a named waveform.
	// +optional
	RFPipe *RFPipeModel `json:"rfpipe,omitempty"`

	// tdma is an inline radio model with time slots, instead of a named waveform.
	// +optional
	TDMA *TDMAModel `json:"tdma,omitempty"`

	// engine that emulates rfpipe and tdma: native is radiod itself; emane is EMANE, if it is installed.
	// +kubebuilder:default=native
	// +optional
	Engine Engine `json:"engine,omitempty"`

	// spectrum is a name that networks with radio models share to interfere with each other. A transmission in one is noise in the others, where
	// the bands overlap and their interference is not None. Without a spectrum no other network disturbs.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Spectrum string `json:"spectrum,omitempty"`

	// radios are the different settings of some nodes' radios, for rfpipe and tdma. Of two that set the same for a node the later counts.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Radios []Radio `json:"radios,omitempty"`

	// routing sets the routes of the nodes.
	// +optional
	Routing *Routing `json:"routing,omitempty"`

	// base names the nodes or groups at the base of an asymmetric network, such as a cellular base station. Their frames
	// use the waveform's downlink, those of all others its link.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=24
	// +listType=atomic
	// +optional
	Base []string `json:"base,omitempty"`

	// subnet of the network in CIDR form, IPv4, prefix length 8 to 30. A node's address is the subnet's base plus its
	// NEM id. Use a part of 198.18.0.0/15. A subnet that overlaps the cluster's own ranges is refused.
	// +kubebuilder:validation:MaxLength=18
	// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self).ip().family() == 4",message="must be an IPv4 subnet in CIDR form, such as 198.18.0.0/24"
	// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || cidr(self) == cidr(self).masked()",message="must be the base address of a subnet, not an address within it: for 198.18.0.7/24 write 198.18.0.0/24"
	// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || cidr(self).prefixLength() >= 8 && cidr(self).prefixLength() <= 30",message="the prefix length must be from 8 to 30"
	// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || cidr(self).ip().family() != 4 || cidr(self).ip().isGlobalUnicast() && !cidr('240.0.0.0/4').containsCIDR(cidr(self))",message="must hold ordinary unicast addresses: loopback, link-local, multicast and reserved ranges do not work"
	Subnet string `json:"subnet"`

	// mtu of the radio interfaces, bytes.
	// +kubebuilder:default=1500
	// +kubebuilder:validation:Minimum=68
	// +kubebuilder:validation:Maximum=9000
	// +optional
	MTU int32 `json:"mtu,omitempty"`

	// commEffects gives each pair of nodes the latency, jitter, loss, duplicates and rates of the scenario's comm effects (EMANE's) for their
	// platforms, as they change over time; only for the link model and EMANE's commeffect. Pairs without comm effects have the network's own link.
	// +optional
	CommEffects bool `json:"commEffects,omitempty"`

	// links replace the network's own model for frames from one group of nodes to another; one direction each.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Links []GroupLink `json:"links,omitempty"`
}

// Bridge joins a broker to another one.
type Bridge struct {
	// to is the other broker: an app's name, or node/app if several nodes run it.
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9-]*(/[a-z][a-z0-9-]*)?$')",message="must be the name of an app, or node/app"
	To string `json:"to"`

	// topics that cross the bridge. Without any, everything crosses it in both directions, at QoS 0.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Topics []BridgeTopic `json:"topics,omitempty"`

	// session of the bridge at both brokers. Persistent: they keep messages of QoS 1 and 2 while the bridge is away, 1000 at most, and Auto does
	// so if a topic has QoS 1 or 2. Clean (the default): messages that come meanwhile are lost.
	// +kubebuilder:default=Clean
	// +optional
	Session Session `json:"session,omitempty"`
}

// AllTopics that cross the bridge, with the default.
func (b *Bridge) AllTopics() []BridgeTopic {
	if len(b.Topics) == 0 {
		return []BridgeTopic{{Filter: "#"}}
	}
	return b.Topics
}

// KeepsSession reports whether the brokers keep messages of QoS 1 and 2 between the bridge's connections.
func (b *Bridge) KeepsSession() bool {
	acknowledges := func(t BridgeTopic) bool { return t.QoS > 0 }
	return b.Session == SessionPersistent || b.Session == SessionAuto && slices.ContainsFunc(b.Topics, acknowledges)
}

// BridgeTopic is one topic filter that crosses a bridge.
type BridgeTopic struct {
	// filter is an MQTT topic filter, such as # or NOR/#. # stands for all levels from there on, + for one level.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(#|([^#+/\s]*|[+])(/([^#+/\s]*|[+]))*(/#)?)$`
	Filter string `json:"filter"`

	// direction seen from the broker that has the bridge: in, out or both.
	// +kubebuilder:default=both
	// +optional
	Direction BridgeDirection `json:"direction,omitempty"`

	// qos with which messages cross.
	// +kubebuilder:default=0
	// +optional
	QoS QoS `json:"qos,omitempty"`

	// localPrefix of the topics at the broker that has the bridge; filter is without it. It is removed from the topic of a message that leaves,
	// and added to that of one that comes in. It includes its slash, such as nor/.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[^#+\s"]*$`
	// +optional
	LocalPrefix string `json:"localPrefix,omitempty"`

	// remotePrefix of the topics at the other broker, likewise.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[^#+\s"]*$`
	// +optional
	RemotePrefix string `json:"remotePrefix,omitempty"`
}

// BridgeDirection is the direction in which messages cross a bridge.
//
// +kubebuilder:validation:Enum=in;out;both
type BridgeDirection string

// QoS is MQTT's quality of service: 0 at most once, 1 at least once, 2 exactly once.
//
// +kubebuilder:validation:Minimum=0
// +kubebuilder:validation:Maximum=2
type QoS int32

// PublishQoS is QoS, and -1: an MQTT-SN message that is sent without a connection.
//
// +kubebuilder:validation:Minimum=-1
// +kubebuilder:validation:Maximum=2
type PublishQoS int32

// Mosquitto is an Eclipse Mosquitto MQTT broker on port 1883.
//
// +kubebuilder:validation:XValidation:rule="!has(self.bridges) || self.bridges.all(a, self.bridges.exists_one(b, a.to == b.to))",message="two bridges go to the same broker: write one bridge with the topics of both",fieldPath=".bridges"
type Mosquitto struct {
	// bridges to other brokers. Bridge each pair of brokers once, from either side.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Bridges []Bridge `json:"bridges,omitempty"`
}

// Protocol is a messaging protocol of the traffic generator.
//
// +kubebuilder:validation:Enum=mqtt;mqtt-sn;mqtt-udp;amqp;stomp;xmpp;zeromq;ws-notification
// +kubebuilder:validation:MaxLength=16
type Protocol string

// The protocols of the traffic generator. All but mqtt-udp have a broker.
const (
	ProtocolMQTT    Protocol = "mqtt"
	ProtocolMQTTSN  Protocol = "mqtt-sn"
	ProtocolMQTTUDP Protocol = "mqtt-udp"
	ProtocolAMQP    Protocol = "amqp"
	ProtocolSTOMP   Protocol = "stomp"
	ProtocolXMPP    Protocol = "xmpp"
	ProtocolZeroMQ  Protocol = "zeromq"
	ProtocolWSN     Protocol = "ws-notification"
)

// MQTTVersion is the version of MQTT that a client speaks.
//
// +kubebuilder:validation:Enum="3.1.1";"5"
type MQTTVersion string

// Phase places the first message of a publisher within its period.
//
// +kubebuilder:validation:Enum=random;spread;aligned;connected
type Phase string

// The phases of publishers: drawn from the experiment's seed, spread evenly over all publishers
// of the app, all together at the start, or each when it has connected.
const (
	PhaseRandom    Phase = "random"
	PhaseSpread    Phase = "spread"
	PhaseAligned   Phase = "aligned"
	PhaseConnected Phase = "connected"
)

// Publisher sends a message every period, or by a pattern, while its app runs.
//
// +kubebuilder:validation:XValidation:rule="has(self.period) != has(self.pattern)",message="a publisher needs either period or pattern"
// +kubebuilder:validation:XValidation:rule="!has(self.pattern) || !has(self.payload)",message="with a pattern messages have the sizes that it says: leave out payload",fieldPath=".payload",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.pattern) || self.phase in ['random', 'connected']",message="phases but connected are for period: a pattern says itself when the first message is due",fieldPath=".phase",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="self.protocol == 'mqtt-udp' || has(self.to)",message="a publisher needs to, its broker; only mqtt-udp has none",fieldPath=".to",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="self.protocol != 'mqtt-udp' || !has(self.to)",message="mqtt-udp has no broker: leave out to",fieldPath=".to",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="self.protocol == 'mqtt-udp' || !has(self.network)",message="network is for mqtt-udp, which has no broker; else the broker's address decides",fieldPath=".network",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="self.qos <= (self.protocol in ['mqtt', 'mqtt-sn'] ? 2 : self.protocol in ['amqp', 'stomp', 'ws-notification'] ? 1 : 0)",message="mqtt and mqtt-sn have QoS up to 2, amqp, stomp and ws-notification up to 1, the others 0",fieldPath=".qos"
// +kubebuilder:validation:XValidation:rule="self.qos >= 0 || self.protocol == 'mqtt-sn'",message="only mqtt-sn has QoS -1",fieldPath=".qos"
// +kubebuilder:validation:XValidation:rule="!has(self.retain) || !self.retain || self.protocol in ['mqtt', 'mqtt-sn']",message="retain is for mqtt and mqtt-sn",fieldPath=".retain",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="self.session == 'Auto' || self.protocol in ['mqtt', 'mqtt-sn']",message="session is for mqtt and mqtt-sn",fieldPath=".session",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.failover) || self.protocol != 'mqtt-udp'",message="mqtt-udp has no broker: leave out failover",fieldPath=".failover",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.period) || !self.period.matches('^([0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)|[0-9]{1,5}([.][0-9]{1,9})?(m|h))+$') || duration(self.period) >= duration('1ms')",message="period must be 1ms or more",fieldPath=".period"
// +kubebuilder:validation:XValidation:rule="!(self.protocol in ['mqtt-udp', 'mqtt-sn']) || !has(self.payload) || !self.payload.matches('^(bytes|image):[1-9][0-9]{0,8}$') || int(self.payload.substring(6)) <= 65000",message="with mqtt-udp and mqtt-sn a message is one datagram: bytes:N and image:N take N up to 65000",fieldPath=".payload"
type Publisher struct {
	// protocol to publish with.
	Protocol Protocol `json:"protocol"`

	// version of MQTT; for protocol mqtt.
	// +kubebuilder:default="3.1.1"
	// +optional
	Version MQTTVersion `json:"version,omitempty"`

	// to is the broker: an app's name (the one on the same node, else the only one in the
	// experiment) or node/app.
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9-]*(/[a-z][a-z0-9-]*)?$')",message="must be the name of an app, or node/app"
	// +optional
	To string `json:"to,omitempty"`

	// network that brokerless protocols broadcast on; by default the node's first.
	// +kubebuilder:validation:MaxLength=12
	// +optional
	Network string `json:"network,omitempty"`

	// failover are further brokers, named as in to. If one cannot be reached or is lost the client tries the next, and
	// after the last the first.
	// +kubebuilder:validation:MaxItems=7
	// +kubebuilder:validation:items:MaxLength=48
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z][a-z0-9-]*(/[a-z][a-z0-9-]*)?$')",message="must be the name of an app, or node/app"
	// +listType=atomic
	// +optional
	Failover []string `json:"failover,omitempty"`

	// qos of the messages. With amqp, stomp and ws-notification 1 waits for the broker's confirmation, and 2 is refused. mqtt-sn also has -1:
	// without a connection.
	// +kubebuilder:default=0
	// +optional
	QoS PublishQoS `json:"qos,omitempty"`

	// retain makes the broker keep the last message of each topic for later subscribers; for mqtt and mqtt-sn.
	// +optional
	Retain bool `json:"retain,omitempty"`

	// signatureKey signs the messages; for mqtt-udp. It is no secret. Without it messages are not signed.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	SignatureKey string `json:"signatureKey,omitempty"`

	// session of the client at the broker; for mqtt and mqtt-sn.
	// +kubebuilder:default=Auto
	// +optional
	Session Session `json:"session,omitempty"`

	// adaptRate slows the publisher down while the radio has frames waiting. By default it does not.
	// +optional
	AdaptRate *RateAdaptation `json:"adaptRate,omitempty"`

	// repeat sends each message again, whether it arrived or not; for mqtt-udp. By default each is sent once.
	// +optional
	Repeat *Repetition `json:"repeat,omitempty"`

	// topic of the messages; {country}, {unit}, {entity}, {node}, {app} and {instance} are replaced.
	// +kubebuilder:default="/{country}/{unit}/{entity}/location"
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^([^#+{}[:cntrl:]]|[{](country|unit|entity|node|app|instance)[}])+$')",message="must be an MQTT topic without # and +; in braces country, unit, entity, node, app or instance"
	// +optional
	Topic string `json:"topic,omitempty"`

	// payload of the messages. Positions: geojson (Blue Force Tracking, about 225 bytes; the default), or geojson-ids (with
	// properties country-Id, unit-Id, entity-Id). Tracks: nffi (NFFI XML, 880 to 885 bytes), or nffi-long (909 bytes).
	// Others: gps (a small position record), image:N (an incompressible image of N bytes), bytes:N (N arbitrary bytes, 32 at
	// least), file:CONFIGMAP/KEY (a file from a ConfigMap). With a pattern, arbitrary bytes of its sizes.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^(geojson(-ids)?|nffi(-long)?|gps|image:[1-9][0-9]{0,8}|bytes:[1-9][0-9]{0,8}|file:[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[-._a-zA-Z0-9]+)$') && (!self.startsWith('bytes:') || int(self.substring(6)) >= 32 && int(self.substring(6)) <= 268435000) && (!self.startsWith('image:') || int(self.substring(6)) >= 1024 && int(self.substring(6)) <= 16777216)",message="must be geojson, geojson-ids, nffi, nffi-long, gps, image:N with N from 1024 to 16777216, bytes:N with N from 32 to 268435000, or file:CONFIGMAP/KEY"
	// +optional
	Payload string `json:"payload,omitempty"`

	// encoding of payload geojson (json, the default, or cbor) or nffi (xml, the default, exi or exi-schemaless).
	// +optional
	Encoding Encoding `json:"encoding,omitempty"`

	// compression of payload geojson or nffi: none, the default, or gzip.
	// +optional
	Compression Compression `json:"compression,omitempty"`

	// platforms of the scenario whose positions the messages report, as ranges such as 1-8,17: one for each instance of the app, in the
	// order of nodes. By default instances report the node's own position.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Platforms string `json:"platforms,omitempty"`

	// country in the messages, in capitals; by default the node's group in capitals.
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z0-9][A-Z0-9_-]*$')",message="must be in capitals, such as NOR; digits, - and _ may follow"
	// +optional
	Country string `json:"country,omitempty"`

	// period between two messages of one publisher, 1ms or more. Give either period or pattern.
	// +optional
	Period Duration `json:"period,omitempty"`

	// pattern of the messages in time and size, instead of period and payload.
	// +optional
	Pattern *Pattern `json:"pattern,omitempty"`

	// lead is the time from the start to the period of the first message. A publisher connects at its start. Give it and
	// its subscribers enough time to connect, or the first messages reach nobody.
	// +kubebuilder:default="0s"
	// +optional
	Lead Duration `json:"lead,omitempty"`

	// phase of the first message within the period; connected: lead and pattern count from the moment at which the publisher has connected,
	// and results have the time from its start to the arrival of its last message.
	// +kubebuilder:default=random
	// +optional
	Phase Phase `json:"phase,omitempty"`
}

// Repetition of messages against loss. Subscribers take the first datagram with a packet's number, and leave out the others.
type Repetition struct {
	// times that a message is sent again. At most 1024 other messages may come until the last one.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	Times int32 `json:"times"`

	// interval between two sendings of a message, from 1ms to 60s. A publisher that stops sends repeats that are due within
	// 1.5 s, as a subscriber too until the end of the drain, and warns of the others.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)|[0-9]{1,5}([.][0-9]{1,9})?(m|h))+$`
	Interval string `json:"interval"`
}

// Pattern defines the times and sizes of messages by an MGEN 5 script without addresses.
//
// +kubebuilder:validation:XValidation:rule="has(self.mgen) != has(self.configMap)",message="a pattern needs either mgen or configMap"
type Pattern struct {
	// mgen is a script of ON, MOD and OFF events, such as "0.0 ON 1 POISSON [2.5 200]", with the patterns PERIODIC, POISSON,
	// JITTER and BURST, and COUNT. Its times count from the app's start and lead. Protocol, topic and broker are the
	// publisher's own: the script has no DST and no reception events.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	MGEN string `json:"mgen,omitempty"`

	// configMap has the script, under a key of a ConfigMap in the experiment's namespace.
	// +optional
	ConfigMap *KeyReference `json:"configMap,omitempty"`
}

// MGEN makes an app run an MGEN 5 script: raw UDP and TCP flows, sent and received by Debian's mgen.
//
// +kubebuilder:validation:XValidation:rule="has(self.script) != has(self.configMap)",message="an mgen app needs either script or configMap"
type MGEN struct {
	// script in the language of MGEN 5. Its times count from the app's start. Hosts are radio addresses or nodes' names, such as DST
	// veh-1/5000.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	Script string `json:"script,omitempty"`

	// configMap has the script, under a key of a ConfigMap in the experiment's namespace.
	// +optional
	ConfigMap *KeyReference `json:"configMap,omitempty"`
}

// MessageScript makes an app send and receive the messages of a script, with their senders, addressees and times. Every node that
// runs the app sends its own messages, and expects those to it, to its group or to all.
//
// +kubebuilder:validation:XValidation:rule="has(self.messages) != has(self.configMap)",message="a script needs either messages or configMap"
// +kubebuilder:validation:XValidation:rule="self.protocol != 'mqtt' || has(self.to)",message="a script with protocol mqtt needs to, its broker",fieldPath=".to",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="self.protocol != 'mqtt-udp' || !has(self.to)",message="mqtt-udp has no broker: leave out to",fieldPath=".to",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="self.protocol == 'mqtt-udp' || !has(self.network)",message="network is for mqtt-udp, which has no broker; else the broker's address decides",fieldPath=".network",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="self.protocol != 'mqtt-udp' || self.qos == 0",message="mqtt-udp has no QoS but 0",fieldPath=".qos"
type MessageScript struct {
	// protocol that carries the messages.
	// +kubebuilder:validation:XValidation:rule="!(self in ['http', 'coap', 'soap'])",message="http, coap and soap are transports of a messaging app, which takes a script too: write messaging instead of script, or protocol mqtt or mqtt-udp"
	Protocol ScriptProtocol `json:"protocol"`

	// version of MQTT; for protocol mqtt.
	// +kubebuilder:default="3.1.1"
	// +optional
	Version MQTTVersion `json:"version,omitempty"`

	// to is the broker: an app's name (the one on the same node, else the only one in the
	// experiment) or node/app.
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9-]*(/[a-z][a-z0-9-]*)?$')",message="must be the name of an app, or node/app"
	// +optional
	To string `json:"to,omitempty"`

	// network that brokerless protocols use; by default the node's first.
	// +kubebuilder:validation:MaxLength=12
	// +optional
	Network string `json:"network,omitempty"`

	// qos of the messages, and asked of the broker.
	// +kubebuilder:default=0
	// +optional
	QoS QoS `json:"qos,omitempty"`

	// messages of the script.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +listType=atomic
	// +optional
	Messages []ScriptedMessage `json:"messages,omitempty"`

	// configMap has the messages, under a key of a ConfigMap in the experiment's namespace: a list as in messages if the key ends in
	// .yaml, or a table with the columns at, from, to, type, text and bytes if it ends in .csv.
	// +optional
	ConfigMap *KeyReference `json:"configMap,omitempty"`
}

// ScriptProtocol carries the messages of a script.
//
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:Enum=mqtt;mqtt-udp;http;coap;soap
type ScriptProtocol string

// ScriptedMessage is one message of a script.
type ScriptedMessage struct {
	// at is when it is sent, counted from the app's start.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)|[0-9]{1,5}([.][0-9]{1,9})?(m|h))+$`
	At string `json:"at"`

	// from is the node that sends it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	From string `json:"from"`

	// to is a node or a group that run the app, or all.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	To string `json:"to"`

	// type of the message, TEXT by default.
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]*$`
	// +optional
	Type string `json:"type,omitempty"`

	// text of the message.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Text string `json:"text,omitempty"`

	// bytes is the size of the whole message as JSON of model military, whose text is padded with spaces. Other encodings of the same text
	// have other sizes. Without bytes the message has the size of its text.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65000
	// +optional
	Bytes int32 `json:"bytes,omitempty"`
}

// Std converts the moment to time.Duration; a value that the API server admitted always converts.
func (m ScriptedMessage) Std() time.Duration { return Duration(m.At).Std() }

// Subscriber receives messages while its app runs.
//
// +kubebuilder:validation:XValidation:rule="self.protocol == 'mqtt-udp' || has(self.to)",message="a subscriber needs to, its broker; only mqtt-udp has none",fieldPath=".to",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="self.protocol != 'mqtt-udp' || !has(self.to)",message="mqtt-udp has no broker: leave out to",fieldPath=".to",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="self.protocol == 'mqtt-udp' || !has(self.network)",message="network is for mqtt-udp, which has no broker; else the broker's address decides",fieldPath=".network",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="self.qos <= (self.protocol in ['mqtt', 'mqtt-sn'] ? 2 : self.protocol in ['amqp', 'stomp', 'ws-notification'] ? 1 : 0)",message="mqtt and mqtt-sn have QoS up to 2, amqp, stomp and ws-notification up to 1, the others 0",fieldPath=".qos"
// +kubebuilder:validation:XValidation:rule="!has(self.sleep) || self.protocol == 'mqtt-sn'",message="sleep is for mqtt-sn",fieldPath=".sleep",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="self.session == 'Auto' || self.protocol in ['mqtt', 'mqtt-sn']",message="session is for mqtt and mqtt-sn",fieldPath=".session",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.failover) || self.protocol != 'mqtt-udp'",message="mqtt-udp has no broker: leave out failover",fieldPath=".failover",reason=FieldValueForbidden
type Subscriber struct {
	// protocol to subscribe with.
	Protocol Protocol `json:"protocol"`

	// version of MQTT; for protocol mqtt.
	// +kubebuilder:default="3.1.1"
	// +optional
	Version MQTTVersion `json:"version,omitempty"`

	// to is the broker: an app's name (the one on the same node, else the only one in the
	// experiment) or node/app. The app's publisher, if it has one, uses the same broker.
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9-]*(/[a-z][a-z0-9-]*)?$')",message="must be the name of an app, or node/app"
	// +optional
	To string `json:"to,omitempty"`

	// network that brokerless protocols listen on; by default the node's first.
	// +kubebuilder:validation:MaxLength=12
	// +optional
	Network string `json:"network,omitempty"`

	// failover are further brokers, named as in to: when one cannot be reached or is lost the client goes on to the next, and
	// from the last to the first.
	// +kubebuilder:validation:MaxItems=7
	// +kubebuilder:validation:items:MaxLength=48
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z][a-z0-9-]*(/[a-z][a-z0-9-]*)?$')",message="must be the name of an app, or node/app"
	// +listType=atomic
	// +optional
	Failover []string `json:"failover,omitempty"`

	// qos asked of the broker. With amqp, stomp and ws-notification 1 acknowledges messages, and 2 is refused.
	// +kubebuilder:default=0
	// +optional
	QoS QoS `json:"qos,omitempty"`

	// signatureKey accepts only messages that are signed with it; for mqtt-udp. Without it all are accepted.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	SignatureKey string `json:"signatureKey,omitempty"`

	// session of the client at the broker; for mqtt and mqtt-sn.
	// +kubebuilder:default=Auto
	// +optional
	Session Session `json:"session,omitempty"`

	// sleep is how long the client sleeps before it fetches the messages that the gateway keeps for it; for mqtt-sn. Without it the client is
	// always awake.
	// +optional
	Sleep *Duration `json:"sleep,omitempty"`

	// topics are MQTT topic filters; # is everything; {node}, {app} and {instance} are replaced.
	// +kubebuilder:default={"#"}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:XValidation:rule="self.matches(r'^(([^#+/\\p{Cc}]*|[+])/)*([^#+/\\p{Cc}]*|[+]|#)$')",message="must be an MQTT topic filter: # only at the end after a slash, + only as a whole level"
	// +listType=atomic
	// +optional
	Topics []string `json:"topics,omitempty"`
}

// App is a program that nodes run: a broker, a publisher, a subscriber, a client that is both, an MGEN script, a script of messages, a
// messaging service, a proxy, or any image with a command.
//
// +kubebuilder:validation:XValidation:rule="has(self.mosquitto) || has(self.vernemq) || has(self.rabbitmq) || has(self.prosody) || has(self.wsnBroker) || has(self.mqttsnGateway) || has(self.zeromqBroker) || has(self.mediator) || has(self.publisher) || has(self.subscriber) || has(self.mgen) || has(self.script) || has(self.messaging) || has(self.proxy) || has(self.image) || has(self.command)",message="an app needs a kind: a broker (mosquitto, vernemq, rabbitmq, prosody, wsnBroker, mqttsnGateway, zeromqBroker), mediator, publisher, subscriber, mgen, script, messaging, proxy, or image with command"
// +kubebuilder:validation:XValidation:rule="[has(self.mosquitto), has(self.vernemq), has(self.rabbitmq), has(self.prosody), has(self.wsnBroker), has(self.mqttsnGateway), has(self.zeromqBroker), has(self.mediator), has(self.publisher) || has(self.subscriber), has(self.mgen), has(self.script), has(self.messaging), has(self.proxy), has(self.command)].filter(kind, kind).size() <= 1",message="an app has one kind only: one broker, or mediator, or publisher and subscriber, or mgen, or script, or messaging, or proxy, or image with command"
// +kubebuilder:validation:XValidation:rule="!has(self.image) || has(self.command) && self.command.size() > 0",message="an app with an image needs its command: the agent starts and stops it at exact times, so the image's entrypoint is not used",fieldPath=".command",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="has(self.command) || !has(self.env)",message="env is for an app of your own, with image and command",fieldPath=".env",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="has(self.command) || !has(self.runAsUser)",message="runAsUser is for an app of your own, with image and command",fieldPath=".runAsUser",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="has(self.command) || !has(self.files)",message="files are for an app of your own, with image and command",fieldPath=".files",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="has(self.command) || !has(self.subscribes)",message="subscribes is for an app of your own, with image and command",fieldPath=".subscribes",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="has(self.command) || !has(self.protocol)",message="protocol of an app is for one of your own, with image and command; a publisher or subscriber has its own protocol",fieldPath=".protocol",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="has(self.command) || !has(self.messageLog)",message="messageLog is for an app of your own, with image and command",fieldPath=".messageLog",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="self.instances == 1 || has(self.publisher) || has(self.subscriber) || has(self.mgen) || has(self.script) || has(self.image) || has(self.command)",message="a node has room for one broker, mediator, messaging service or proxy of a kind, as it takes its port",fieldPath=".instances"
// +kubebuilder:validation:XValidation:rule="!has(self.security) || has(self.mosquitto) || has(self.vernemq) || has(self.rabbitmq) || has(self.prosody) || has(self.wsnBroker) && self.wsnBroker.implementation == 'Vignette'",message="security is for mosquitto, vernemq, rabbitmq, prosody and the platform's own wsnBroker; MQTT-SN and ZeroMQ brokers have none",fieldPath=".security",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.mgen) && !has(self.script) || self.instances == 1",message="an mgen or script app has one instance on a node: its script may have any number of flows or messages",fieldPath=".instances"
// +kubebuilder:validation:XValidation:rule="!has(self.publisher) || !has(self.subscriber) || self.publisher.protocol == self.subscriber.protocol && self.publisher.version == self.subscriber.version && self.publisher.session == self.subscriber.session && has(self.publisher.failover) == has(self.subscriber.failover) && (!has(self.publisher.failover) || self.publisher.failover == self.subscriber.failover) && has(self.publisher.to) == has(self.subscriber.to) && (!has(self.publisher.to) || self.publisher.to == self.subscriber.to) && has(self.publisher.network) == has(self.subscriber.network) && (!has(self.publisher.network) || self.publisher.network == self.subscriber.network)",message="publisher and subscriber of one app are one client: protocol, version, to, failover, session and network must be the same in both, or make two apps"
// +kubebuilder:validation:XValidation:rule="!has(self.mosquitto) || !has(self.mosquitto.bridges) || self.mosquitto.bridges.all(b, b.to.substring(b.to.lastIndexOf('/') + 1) != self.name)",message="a broker cannot bridge to itself",fieldPath=".mosquitto.bridges"
type App struct {
	// name of the app, used by nodes, by the timeline and by other apps.
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([a-z0-9-]*[a-z0-9])?$')",message="must be lower-case letters, digits and hyphens, with a letter first and no hyphen last"
	// +kubebuilder:validation:XValidation:rule="!(self in ['agent', 'idle'])",message="agent and idle are names of the platform's own containers: take another name"
	Name string `json:"name"`

	// instances of the app on each node that runs it, such as the eight units of a nation; they share one container.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	// +optional
	Instances int32 `json:"instances,omitempty"`

	// mosquitto makes the app an MQTT broker.
	// +optional
	Mosquitto *Mosquitto `json:"mosquitto,omitempty"`

	// vernemq makes the app a VerneMQ broker.
	// +optional
	VerneMQ *VerneMQ `json:"vernemq,omitempty"`

	// rabbitmq makes the app a RabbitMQ broker, of AMQP 0-9-1, STOMP and MQTT.
	// +optional
	RabbitMQ *RabbitMQ `json:"rabbitmq,omitempty"`

	// prosody makes the app a Prosody XMPP server with publish/subscribe.
	// +optional
	Prosody *Prosody `json:"prosody,omitempty"`

	// wsnBroker makes the app a broker of WS-Notification.
	// +optional
	WSNBroker *WSNBroker `json:"wsnBroker,omitempty"`

	// mqttsnGateway makes the app a gateway from MQTT-SN to an MQTT broker.
	// +optional
	MQTTSNGateway *MQTTSNGateway `json:"mqttsnGateway,omitempty"`

	// zeromqBroker makes the app a broker of ZeroMQ messages.
	// +optional
	ZeroMQBroker *ZeroMQBroker `json:"zeromqBroker,omitempty"`

	// mediator makes the app pass messages between brokers of different protocols.
	// +optional
	Mediator *Mediator `json:"mediator,omitempty"`

	// security of a broker and of all its clients. By default there is none, as in the published studies.
	// +optional
	Security *Security `json:"security,omitempty"`

	// publisher makes the app send messages. With subscriber too, each instance is one client that does both.
	// +optional
	Publisher *Publisher `json:"publisher,omitempty"`

	// subscriber makes the app receive messages.
	// +optional
	Subscriber *Subscriber `json:"subscriber,omitempty"`

	// mgen makes the app run an MGEN 5 script, for raw UDP and TCP flows.
	// +optional
	MGEN *MGEN `json:"mgen,omitempty"`

	// script makes the app send and receive the messages of a script, with their senders, addressees and times.
	// +optional
	Script *MessageScript `json:"script,omitempty"`

	// messaging makes the app a service that sends and serves requests by HTTP, CoAP or SOAP.
	// +optional
	Messaging *Messaging `json:"messaging,omitempty"`

	// proxy makes the app one of two HTTP proxies, on either side of a constrained link.
	// +optional
	Proxy *Proxy `json:"proxy,omitempty"`

	// image of an app of your own, on nodes that are pods. It needs a command.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^[:space:]]+$')",message="must be the name of an image, without spaces"
	// +optional
	Image string `json:"image,omitempty"`

	// command of an app of your own: the image's own entrypoint is not used, as the agent starts and stops the command at exact times. Without
	// image it is a program of the guest's own, on nodes with runtime vm.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	// +optional
	Command []string `json:"command,omitempty"`

	// env adds environment variables to an app of your own.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []EnvVar `json:"env,omitempty"`

	// runAsUser is the user id of an app of your own, where the image needs a certain one; not 0.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	RunAsUser *int64 `json:"runAsUser,omitempty"`

	// files of an app of your own, such as its configuration.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=path
	// +optional
	Files []AppFile `json:"files,omitempty"`

	// subscribes are the topic filters of an app of your own. Without them its expected messages are unknown, and the
	// results count nothing that it receives.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	// +optional
	Subscribes []string `json:"subscribes,omitempty"`

	// protocol that an app of your own speaks: mqtt, mqtt-udp, or a word for one of its own. Apps of different protocols are
	// not expected to receive from each other. Without it, topics alone decide who is.
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",message="must be lower-case letters, digits, dots and hyphens, with a letter or digit first and last"
	// +optional
	Protocol string `json:"protocol,omitempty"`

	// messageLog is where an app of your own writes its message events: File (the default), which VIGNETTE_MESSAGE_LOG
	// names, or Stdout.
	// +optional
	MessageLog MessageLog `json:"messageLog,omitempty"`

	// resources of the app's container. By default it requests little, has no CPU limit, as throttling would look like radio delay, and
	// a memory limit that the administrator sets, 2Gi unless changed.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// AppFile is a read-only file of an app of your own, which exists before the app starts.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMap) != has(self.content)",message="a file needs either configMap or content"
type AppFile struct {
	// path of the file in the app's container, absolute.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && !self.endsWith('/') && !self.matches('(^|/)[.][.]?(/|$)|//|[[:cntrl:]]')",message="must be the absolute path of a file, such as /etc/app/config.yaml, without . and .. in it"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/vignette/') && !self.startsWith('/proc/') && !self.startsWith('/sys/') && !self.startsWith('/dev/')",message="must not lie in /vignette, /proc, /sys or /dev: they are the platform's and the kernel's"
	Path string `json:"path"`

	// configMap has the content, under a key of a ConfigMap in the experiment's namespace.
	// +optional
	ConfigMap *KeyReference `json:"configMap,omitempty"`

	// content of the file itself.
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	Content *string `json:"content,omitempty"`
}

// Own reports whether an app is the user's own: a command in an image, or in the guest of a virtual machine.
func (a *App) Own() bool { return len(a.Command) > 0 }

// Kind is the field that makes the app what it is, such as mosquitto. It is empty for an app without any.
func (a *App) Kind() string {
	for _, kind := range []struct {
		field string
		set   bool
	}{
		{"mosquitto", a.Mosquitto != nil}, {"vernemq", a.VerneMQ != nil}, {"rabbitmq", a.RabbitMQ != nil}, {"prosody", a.Prosody != nil},
		{"wsnBroker", a.WSNBroker != nil}, {"mqttsnGateway", a.MQTTSNGateway != nil}, {"zeromqBroker", a.ZeroMQBroker != nil},
		{"mediator", a.Mediator != nil}, {"publisher", a.Publisher != nil}, {"subscriber", a.Subscriber != nil}, {"mgen", a.MGEN != nil},
		{"script", a.Script != nil}, {"messaging", a.Messaging != nil}, {"proxy", a.Proxy != nil}, {"command", a.Own()},
	} {
		if kind.set {
			return kind.field
		}
	}
	return ""
}

// KeyReference names a key of a ConfigMap or Secret in the experiment's namespace.
type KeyReference struct {
	// name of the object.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
	// key in the object's data.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`
}

// MessageLog is where an app of your own writes its message events, as JSON Lines.
//
// +kubebuilder:validation:Enum=File;Stdout
type MessageLog string

// File: the file that VIGNETTE_MESSAGE_LOG names. Stdout: lines of standard output that are message events.
const (
	MessageLogFile   MessageLog = "File"
	MessageLogStdout MessageLog = "Stdout"
)

// EnvVar is an environment variable with a value, or one from a ConfigMap or Secret.
//
// +kubebuilder:validation:XValidation:rule="(has(self.value) ? 1 : 0) + (has(self.configMap) ? 1 : 0) + (has(self.secret) ? 1 : 0) == 1",message="a variable needs one of value, configMap and secret"
type EnvVar struct {
	// name of the variable.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('VIGNETTE_')",message="variables that begin with VIGNETTE_ are set by the platform"
	Name string `json:"name"`

	// value of the variable.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Value *string `json:"value,omitempty"`

	// configMap has the value, under a key of a ConfigMap in the experiment's namespace.
	// +optional
	ConfigMap *KeyReference `json:"configMap,omitempty"`

	// secret has the value, under a key of a Secret in the experiment's namespace. An administrator lets experiments use it by the label
	// vignette.dev/for-experiments=true.
	// +optional
	Secret *KeyReference `json:"secret,omitempty"`
}

// MaxNodes of an experiment. Every pod names all its peers, so that the operator's work grows with the square.
const MaxNodes = 1000

// ManagementNetwork is what a node may do on its cluster interface, eth0.
//
// +kubebuilder:validation:Enum=Isolated;Open
type ManagementNetwork string

// Isolated (the default) lets only the platform's own traffic pass on eth0; Open leaves it alone, and the result says so.
const (
	ManagementIsolated ManagementNetwork = "Isolated"
	ManagementOpen     ManagementNetwork = "Open"
)

// Node is a tactical node, or count equal ones named name-1 … name-count.
//
// +kubebuilder:validation:XValidation:rule="!has(self.platforms) || has(self.count)",message="platforms needs count; for one node write platform",fieldPath=".platforms"
// +kubebuilder:validation:XValidation:rule="!has(self.platform) || !has(self.count)",message="platform is for one node; with count write platforms, such as 2-24",fieldPath=".platform"
// +kubebuilder:validation:XValidation:rule="!has(self.platforms) || !has(self.count) || !self.platforms.matches('^[0-9]{1,6}-[0-9]{1,6}$') || int(self.platforms.split('-')[1]) - int(self.platforms.split('-')[0]) + 1 == self.count",message="count and platforms disagree",messageExpression="self.platforms + ' is not a range of as many platforms as count says'",fieldPath=".platforms"
// +kubebuilder:validation:XValidation:rule="!has(self.position) || !has(self.platform) && !has(self.platforms)",message="a node that a platform carries has the platform's position: leave out one of the two",fieldPath=".position"
// +kubebuilder:validation:XValidation:rule="!has(self.nem) || self.nem + (has(self.count) ? self.count : 1) - 1 <= 65534",message="the NEM ids of count nodes must end by 65534",fieldPath=".nem"
// +kubebuilder:validation:XValidation:rule="!has(self.networks) || self.networks.all(a, self.networks.exists_one(b, a == b))",message="a network is named twice",fieldPath=".networks"
// +kubebuilder:validation:XValidation:rule="!has(self.apps) || self.apps.all(a, self.apps.exists_one(b, a == b))",message="an app is named twice: use the app's instances to run it several times",fieldPath=".apps"
// +kubebuilder:validation:XValidation:rule="!has(self.vm) || self.runtime == 'vm'",message="vm is for nodes with runtime vm: add runtime: vm, or leave out vm",fieldPath=".vm",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.vm) || !has(self.vm.agent) || self.vm.agent || !has(self.apps) || self.apps.size() == 0",message="a node with agent: false runs no apps, as nobody could start them: leave out apps, or agent",fieldPath=".apps",reason=FieldValueForbidden
type Node struct {
	// name of the node; also its host name, which its peers resolve to its radio address.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([a-z0-9-]*[a-z0-9])?$')",message="must be lower-case letters, digits and hyphens, with a letter first and no hyphen last"
	// +kubebuilder:validation:XValidation:rule="!(self in ['all', 'radio', 'local', 'cross', 'localhost'])",message="must not be all, radio, local, cross or localhost: results and host names use them"
	Name string `json:"name"`

	// group of the node in links and results; by default its name.
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([a-z0-9-]*[a-z0-9])?$')",message="must be lower-case letters, digits and hyphens, with a letter first and no hyphen last"
	// +kubebuilder:validation:XValidation:rule="!(self in ['all', 'radio', 'local', 'cross'])",message="must not be all, radio, local or cross: results have groups of these names"
	// +optional
	Group string `json:"group,omitempty"`

	// count makes as many equal nodes: name-1, name-2, …
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Count *int32 `json:"count,omitempty"`

	// nem is the NEM id of the node, or of the first of count nodes. Without it a node has the number of its place
	// among all nodes of the experiment, from 1, each of count counted.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65534
	// +optional
	NEM *int32 `json:"nem,omitempty"`

	// platform of the scenario that carries the node.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	// +optional
	Platform string `json:"platform,omitempty"`

	// platforms of the scenario that carry count nodes, as a range such as 2-24.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,6}-[0-9]{1,6}$')",message="must be a range such as 2-24"
	// +optional
	Platforms string `json:"platforms,omitempty"`

	// position of a fixed node, instead of a platform. Scenarios with pathloss of their own do not include it.
	// +optional
	Position *Position `json:"position,omitempty"`

	// networks to which the node is attached. The first one carries its multicast and limited broadcast.
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=12
	// +listType=atomic
	// +optional
	Networks []string `json:"networks,omitempty"`

	// apps that the node runs.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=20
	// +listType=atomic
	// +optional
	Apps []string `json:"apps,omitempty"`

	// resources of the node as a whole, shared by its apps: requests and limits of cpu and memory; for pods, on Kubernetes 1.34 or later. By
	// default only apps have limits. A virtual machine has vm.cores and vm.memory instead.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// runtime of the node: pod, the default, or vm for a virtual machine, which needs KubeVirt in the cluster.
	// +kubebuilder:default=pod
	// +optional
	Runtime Runtime `json:"runtime,omitempty"`

	// vm has the settings of a node with runtime vm.
	// +optional
	VM *VirtualMachine `json:"vm,omitempty"`

	// managementNetwork: Isolated keeps the node's traffic on the radio; Open leaves eth0 open, and the result says so. A node without networks is
	// always Open. An administrator allows it by the label vignette.dev/management-network=Open of the namespace.
	// +kubebuilder:default=Isolated
	// +optional
	ManagementNetwork ManagementNetwork `json:"managementNetwork,omitempty"`
}

// OpensManagement reports whether eth0 of the node is open. radiod closes it when it attaches the node's first radio, so it is
// also open on a node without a network.
func (n *Node) OpensManagement() bool {
	return n.ManagementNetwork == ManagementOpen || len(n.Networks) == 0
}

// TimelineEntry starts and stops apps, and changes networks, at one moment, or spreads the starts and stops over some time.
//
// +kubebuilder:validation:XValidation:rule="!has(self.over) || has(self.start) || has(self.stop)",message="over is for start and stop: set comes at one moment",fieldPath=".over"
// +kubebuilder:validation:XValidation:rule="has(self.start) || has(self.stop) || has(self.set)",message="a timeline entry needs start, stop or set"
// +kubebuilder:validation:XValidation:rule="!has(self.start) || self.start.all(a, self.start.exists_one(b, a == b))",message="an app is named twice",fieldPath=".start"
// +kubebuilder:validation:XValidation:rule="!has(self.stop) || self.stop.all(a, self.stop.exists_one(b, a == b))",message="an app is named twice",fieldPath=".stop"
type TimelineEntry struct {
	// at is the moment, counted from T0.
	At Duration `json:"at"`

	// over spreads what start and stop name evenly over this time, in the order of nodes: of n apps the first comes at the moment at, the
	// second an n-th of this time later. A host that cannot start hundreds of apps in the same 10 ms, which the verdict would tell, can start
	// them over some seconds. Without it all come at the moment at.
	// +optional
	Over *Duration `json:"over,omitempty"`

	// start these apps: an app's name (on every node that runs it) or node/app or group/app.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=48
	// +listType=atomic
	// +optional
	Start []string `json:"start,omitempty"`

	// stop these apps, named as in start. An app in both is restarted.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=48
	// +listType=atomic
	// +optional
	Stop []string `json:"stop,omitempty"`

	// set changes networks from the moment at on. The radio applies the changes by itself at the exact time.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Set []RadioChange `json:"set,omitempty"`
}

// Collect selects what is collected in addition to message logs, output and radio counters, which always are.
//
// +kubebuilder:validation:XValidation:rule="has(self.captures) || !has(self.captureFilter) && !has(self.captureSnapLengthBytes)",message="captureFilter and captureSnapLengthBytes are for captures: name the networks to capture in captures"
type Collect struct {
	// captures are the networks whose frames are captured at every node's radio, as pcapng with nanoseconds: a network's
	// name, or network/node or network/group for some of its nodes.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=40
	// +listType=set
	// +optional
	Captures []string `json:"captures,omitempty"`

	// captureFilter limits captures to frames that match a filter in tcpdump's language, such as "udp port 698".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	CaptureFilter string `json:"captureFilter,omitempty"`

	// captureSnapLengthBytes is how much of each frame is kept. By default all of it is.
	// +kubebuilder:validation:Minimum=14
	// +kubebuilder:validation:Maximum=65535
	// +optional
	CaptureSnapLengthBytes *int32 `json:"captureSnapLengthBytes,omitempty"`

	// captureLimit is the maximum size of the capture of each node on each network, such as 256Mi. A capture that reaches it
	// ends, and the results name the gap.
	// +kubebuilder:default="256Mi"
	// +optional
	CaptureLimit *resource.Quantity `json:"captureLimit,omitempty"`
}

// Drain lets queued messages arrive after the last stop.
//
// +kubebuilder:validation:XValidation:rule="!self.max.matches('^([0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)|[0-9]{1,5}([.][0-9]{1,9})?(m|h))+$') || !self.quietFor.matches('^([0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)|[0-9]{1,5}([.][0-9]{1,9})?(m|h))+$') || duration(self.quietFor) <= duration(self.max)",message="quietFor, 5s by default, must not be longer than max",fieldPath=".quietFor"
type Drain struct {
	// max is the longest time to wait. Messages that are still in transit then count as lost with reason inFlightAtEnd.
	// +kubebuilder:default="30s"
	// +optional
	Max Duration `json:"max,omitempty"`

	// quietFor ends the drain early once nothing has been received for this long.
	// +kubebuilder:default="5s"
	// +optional
	QuietFor Duration `json:"quietFor,omitempty"`
}

// ScenarioReference names a Scenario in the experiment's namespace.
type ScenarioReference struct {
	// ref is the Scenario's name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Ref string `json:"ref"`
}

// ExperimentSpec describes a tactical network, what runs on it and when. It is immutable once the
// experiment has left the queue, except stop.
//
// +kubebuilder:validation:XValidation:rule="!has(self.duration) || !self.duration.matches('^([0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)|[0-9]{1,5}([.][0-9]{1,9})?(m|h))+$') || duration(self.duration) > duration('0s')",message="duration must be above zero",fieldPath=".duration"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.stop) || !oldSelf.stop || has(self.stop) && self.stop",message="a stop cannot be taken back: make a new experiment",fieldPath=".stop",reason=FieldValueForbidden
type ExperimentSpec struct {
	// duration of the run from T0; the drain comes after it. Publishers that no entry stops are stopped then, other apps after the drain. Without
	// a duration the experiment is a live cluster: it stays up until it is stopped.
	// +optional
	Duration Duration `json:"duration,omitempty"`

	// seed of every random stream of the run: phases, payloads, losses. Equal seeds give equal draws, not equal results.
	// +kubebuilder:default=1
	// +optional
	Seed int64 `json:"seed,omitempty"`

	// stop ends the run early. Its measurements are still collected and analysed.
	// +optional
	Stop bool `json:"stop,omitempty"`

	// priority in the queue. Each step is worth ten minutes of waiting: an experiment of priority 6 comes before those of priority 0
	// that came up to an hour earlier. If Kueue decides it is the priority of the Workload.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=-100
	// +kubebuilder:validation:Maximum=100
	// +optional
	Priority int32 `json:"priority,omitempty"`

	// queueName is a LocalQueue of Kueue in the experiment's namespace. With it Kueue decides when the experiment starts.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	QueueName string `json:"queueName,omitempty"`

	// tcpCongestionControl of all nodes, by the kernel's name for it, such as cubic, reno or bbr. Without it nodes have their hosts' default.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9_-]*$`
	// +optional
	TCPCongestionControl string `json:"tcpCongestionControl,omitempty"`

	// scenario moves the platforms that carry the nodes, by the name of a Scenario in the same namespace.
	// +optional
	Scenario *ScenarioReference `json:"scenario,omitempty"`

	// networks are the radio networks to which nodes may be attached. The waveform of a network determines how it carries
	// frames. It is the name of a Waveform object, or an inline model.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Networks []Network `json:"networks"`

	// apps are the programs that nodes may run: brokers, publishers, subscribers, clients that are both, or images of
	// your own. Nodes, the timeline and other apps name them.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	Apps []App `json:"apps"`

	// nodes of the tactical network, each a pod or a virtual machine of its own: the networks it is attached to and the apps it runs. count
	// makes several equal ones; 1000 in all at most.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=name
	Nodes []Node `json:"nodes"`

	// timeline starts and stops apps at moments counted from T0. An app that no entry starts runs from T0; an app
	// that no entry stops ends with the experiment.
	// +kubebuilder:validation:MaxItems=40
	// +listType=atomic
	// +optional
	Timeline []TimelineEntry `json:"timeline,omitempty"`

	// drain is the time after the last stop in which messages that are still in transit may arrive.
	// +kubebuilder:default={max: "30s", quietFor: "5s"}
	// +optional
	Drain Drain `json:"drain,omitempty"`

	// collect selects what is collected in addition to message logs, output and radio counters.
	// +optional
	Collect *Collect `json:"collect,omitempty"`

	// tolerances limit the error of figures by a late emulation, for the verdict that it kept up.
	// +optional
	Tolerances *Tolerances `json:"tolerances,omitempty"`

	// ttlAfterFinished deletes the experiment this long after it has finished. Its archived results stay.
	// +optional
	TTLAfterFinished *Duration `json:"ttlAfterFinished,omitempty"`
}

// Tolerances of the verdict on the emulation. They decide what is said, and change no figure.
type Tolerances struct {
	// median of the delay may be off by this share of it, or by delay where that is more.
	// +kubebuilder:default="1%"
	// +optional
	Median Percent `json:"median,omitempty"`

	// p95, the 95th percentile of the delay, may be off by this share of it, or by delay where that is more.
	// +kubebuilder:default="5%"
	// +optional
	P95 Percent `json:"p95,omitempty"`

	// delay by which the median and the 95th percentile may be off in any case.
	// +kubebuilder:default="1ms"
	// +optional
	Delay Duration `json:"delay,omitempty"`

	// delivered share of offered deliveries may be off by so many percentage points.
	// +kubebuilder:default="0.1%"
	// +optional
	Delivered Percent `json:"delivered,omitempty"`
}

// Steps of a run's workflow, in order, as in status.step.
const (
	StepReplay  = "replay"
	StepStart   = "start"
	StepStop    = "stop"
	StepDrain   = "drain"
	StepCollect = "collect"
	StepAnalyse = "analyse"
)

// ExperimentPhase is the phase of an experiment.
//
// +kubebuilder:validation:Enum=Queued;Provisioning;Running;Collecting;Analysing;Succeeded;Failed
type ExperimentPhase string

// The phases of an experiment, in order; Failed may follow any of them.
const (
	PhaseQueued       ExperimentPhase = "Queued"
	PhaseProvisioning ExperimentPhase = "Provisioning"
	PhaseRunning      ExperimentPhase = "Running"
	PhaseCollecting   ExperimentPhase = "Collecting"
	PhaseAnalysing    ExperimentPhase = "Analysing"
	PhaseSucceeded    ExperimentPhase = "Succeeded"
	PhaseFailed       ExperimentPhase = "Failed"
)

// Condition types of an experiment. Ready, Reconciling and Stalled are kstatus's; Accepted says
// whether every reference is good, Admitted whether there is room.
const (
	ConditionAccepted    = "Accepted"
	ConditionAdmitted    = "Admitted"
	ConditionReady       = "Ready"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
)

// NodesStatus counts the nodes of an experiment.
type NodesStatus struct {
	// total number of nodes, those of count counted.
	// +optional
	Total int32 `json:"total"`
	// ready nodes: their apps wait for the start, or run.
	// +optional
	Ready int32 `json:"ready"`
	// summary is ready/total, for people.
	// +optional
	Summary string `json:"summary,omitempty"`
}

// ResultsSummary is the headline of the results. Its figures are those of one group of deliveries.
type ResultsSummary struct {
	// group of the deliveries: radio, which go to another node, or all where none does.
	// +optional
	Group string `json:"group,omitempty"`
	// triggered messages, which apps wanted to send.
	// +optional
	Triggered int64 `json:"triggered,omitempty"`
	// sent messages.
	Sent int64 `json:"sent"`
	// offered deliveries: those expected, and those that would be if no message had stayed unsent.
	// +optional
	Offered int64 `json:"offered,omitempty"`
	// expected deliveries: each message once for every other instance that subscribes to it.
	Expected int64 `json:"expected"`
	// received deliveries, of those that were expected.
	Received int64 `json:"received"`
	// lost deliveries, of those that were expected.
	Lost int64 `json:"lost"`
	// deliveredPercent of the offered deliveries, such as 99.83.
	// +optional
	DeliveredPercent string `json:"deliveredPercent,omitempty"`
	// medianDelay from sent to received, such as 112.4ms.
	// +optional
	MedianDelay string `json:"medianDelay,omitempty"`
	// keptUp is whether the error of the figures by a late emulation is within spec.tolerances; absent if it was not measured.
	// +optional
	KeptUp *bool `json:"keptUp,omitempty"`
	// offByAtMost says how far the figures may be off because of that, such as 0.3 ms of the median, 0.02 points of delivered.
	// +optional
	OffByAtMost string `json:"offByAtMost,omitempty"`
	// gaps is the number of things missing from the results, which list them.
	Gaps int32 `json:"gaps"`
	// warnings is the number of findings such as a client that never connected. The results list them, and the message has the first ones.
	// +optional
	Warnings int32 `json:"warnings,omitempty"`
}

// QueueStatus is the place of a waiting experiment. The condition Admitted says why it waits.
type QueueStatus struct {
	// position in the queue of the whole cluster: 1 comes first. Beyond 10 it is rounded up to one digit and zeros, such as 30
	// or 200, so that not all statuses of a long queue change with each start. `vignette capacity` has the exact one.
	// +optional
	Position int32 `json:"position,omitempty"`
	// expectedStart is when it starts if all runs end in time; absent if unknown.
	// +optional
	ExpectedStart *metav1.Time `json:"expectedStart,omitempty"`
}

// ExperimentStatus is the state of an experiment.
type ExperimentStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase of the experiment.
	// +optional
	Phase ExperimentPhase `json:"phase,omitempty"`

	// message for people: what is happening, or why it failed.
	// +optional
	Message string `json:"message,omitempty"`

	// queue is the experiment's place in the queue while it waits.
	// +optional
	Queue *QueueStatus `json:"queue,omitempty"`

	// nodes counts the nodes that are up.
	// +optional
	Nodes NodesStatus `json:"nodes,omitempty"`

	// t0 is the experiment's time zero; every moment of the timeline counts from it.
	// +optional
	T0 *metav1.MicroTime `json:"t0,omitempty"`

	// progress of the whole run in percent, such as 42%.
	// +optional
	Progress string `json:"progress,omitempty"`

	// step is the current step of the workflow: replay, start, stop, drain, collect or analyse. The step stop waits for the last stop, so
	// it lasts for most of a run.
	// +optional
	Step string `json:"step,omitempty"`

	// workflow is the name of the Argo Workflow that sequences the run.
	// +optional
	Workflow string `json:"workflow,omitempty"`

	// startTime is when the run was admitted.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the experiment succeeded or failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// results is the headline; `vignette results` has the rest.
	// +optional
	Results *ResultsSummary `json:"results,omitempty"`

	// conditions: Accepted, Admitted, Ready, Reconciling, Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Experiment is a tactical network, what runs on it, and in the end what was measured.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=exp
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Nodes",type=string,JSONPath=`.status.nodes.summary`
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Delivered %",type=string,JSONPath=`.status.results.deliveredPercent`
// +kubebuilder:printcolumn:name="Median delay",type=string,JSONPath=`.status.results.medianDelay`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40 && !self.metadata.name.contains('.')",message="metadata.name: the name of an experiment has at most 40 letters, digits and hyphens, as its pods add the node's name to it"
type Experiment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what you want: networks, apps, nodes, and what happens when. Once the experiment has left the queue only
	// stop can be set.
	Spec ExperimentSpec `json:"spec"`

	// status is the state of the experiment; the operator writes it.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status ExperimentStatus `json:"status,omitempty"`
}

// ExperimentList is a list of experiments.
//
// +kubebuilder:object:root=true
type ExperimentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Experiment `json:"items"`
}

func init() { SchemeBuilder.Register(&Experiment{}, &ExperimentList{}) }
