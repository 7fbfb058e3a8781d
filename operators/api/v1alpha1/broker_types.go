package v1alpha1

// VerneMQ is a VerneMQ MQTT broker on port 1883.
type VerneMQ struct {
	// cluster joins the brokers of all nodes that run this app into one cluster (a mesh) over the first network that they have in common.
	// +optional
	Cluster bool `json:"cluster,omitempty"`
}

// RabbitMQ is a RabbitMQ broker: AMQP 0-9-1 on port 5672, STOMP on 61613, MQTT on 1883. Messages of one protocol reach subscribers of the others.
type RabbitMQ struct {
	// cluster joins the brokers of all nodes that run this app into one cluster over the first network that they have in common.
	// +optional
	Cluster bool `json:"cluster,omitempty"`
}

// Prosody is a Prosody XMPP server on port 5222 with a publish/subscribe service (XEP-0060) at pubsub.vignette. Its domain
// is vignette on every node.
type Prosody struct{}

// WSNBroker is a broker of WS-Notification 1.3 (BrokeredNotification) on port 8080.
type WSNBroker struct {
	// implementation: Vignette (the default) or CXF, the one of Apache CXF.
	// +kubebuilder:default=Vignette
	// +optional
	Implementation WSNImplementation `json:"implementation,omitempty"`
}

// WSNImplementation is the program that a WS-Notification broker runs.
//
// +kubebuilder:validation:Enum=Vignette;CXF
type WSNImplementation string

// The platform's own broker, and that of Apache CXF.
const (
	WSNVignette WSNImplementation = "Vignette"
	WSNCXF      WSNImplementation = "CXF"
)

// MQTTSNGateway is a gateway of MQTT-SN 1.2 on UDP port 1884, in front of an MQTT broker.
type MQTTSNGateway struct {
	// to is the MQTT broker: an app's name (the one on the same node, else the only one in the experiment) or node/app.
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9-]*(/[a-z][a-z0-9-]*)?$')",message="must be the name of an app, or node/app"
	To string `json:"to"`

	// mode: Transparent (the default) has a connection to the broker for each client, Aggregating one for all of them.
	// +kubebuilder:default=Transparent
	// +optional
	Mode GatewayMode `json:"mode,omitempty"`

	// maxClients that are served at once; more are refused as congestion.
	// +kubebuilder:default=256
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MaxClients int32 `json:"maxClients,omitempty"`

	// advertise is the time between two ADVERTISE broadcasts on the node's networks; without it there are none.
	// +optional
	Advertise *Duration `json:"advertise,omitempty"`
}

// GatewayMode is how an MQTT-SN gateway uses connections to its broker.
//
// +kubebuilder:validation:Enum=Transparent;Aggregating
type GatewayMode string

// A connection for each client, or one for all.
const (
	GatewayTransparent GatewayMode = "Transparent"
	GatewayAggregating GatewayMode = "Aggregating"
)

// ZeroMQBroker forwards ZeroMQ messages from publishers, which connect to port 5555, to subscribers, which connect to port 5556, by
// the subscribers' topics.
type ZeroMQBroker struct {
	// transport: tcp (the default), pgm, which is PGM in UDP (epgm) by multicast on the node's first network, or pgm-raw, PGM by raw sockets between virtual machines. Its clients use the same.
	// +kubebuilder:default=tcp
	// +optional
	Transport ZeroMQTransport `json:"transport,omitempty"`
}

// ZeroMQTransport carries ZeroMQ messages.
//
// +kubebuilder:validation:Enum=tcp;pgm;pgm-raw
type ZeroMQTransport string

// The transports of ZeroMQ.
const (
	ZeroMQTCP    ZeroMQTransport = "tcp"
	ZeroMQPGM    ZeroMQTransport = "pgm"
	ZeroMQPGMRaw ZeroMQTransport = "pgm-raw"
)

// Multicast reports whether this is a broker whose transport is PGM, in UDP or by raw sockets.
func (z *ZeroMQBroker) Multicast() bool {
	return z != nil && (z.Transport == ZeroMQPGM || z.Transport == ZeroMQPGMRaw)
}

// RawSockets reports whether the broker and its clients open raw sockets.
func (z *ZeroMQBroker) RawSockets() bool { return z != nil && z.Transport == ZeroMQPGMRaw }

// Mediator passes messages between brokers of different protocols, from each leg to all others.
type Mediator struct {
	// legs are connections to brokers, two at least.
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.protocol == b.protocol && a.to == b.to))",message="two legs have the same protocol and broker: messages would go round for ever"
	// +listType=atomic
	Legs []MediatorLeg `json:"legs"`
}

// MediatorLeg is a connection of a mediator to a broker.
//
// +kubebuilder:validation:XValidation:rule="self.protocol != 'mqtt-udp'",message="a mediator's legs go to brokers: mqtt-udp has none",fieldPath=".protocol"
type MediatorLeg struct {
	// protocol of the leg.
	Protocol Protocol `json:"protocol"`

	// to is the broker: an app's name (the one on the same node, else the only one in the experiment) or node/app.
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9-]*(/[a-z][a-z0-9-]*)?$')",message="must be the name of an app, or node/app"
	To string `json:"to"`

	// qos of what is subscribed and published here.
	// +kubebuilder:default=0
	// +optional
	QoS QoS `json:"qos,omitempty"`

	// topics are filters of what is taken from this leg, by default #.
	// +kubebuilder:default={"#"}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^(#|([^#+/\s]*|[+])(/([^#+/\s]*|[+]))*(/#)?)$`
	// +listType=atomic
	// +optional
	Topics []string `json:"topics,omitempty"`

	// prefix of topics on this leg only. It is removed from incoming topics, and added to outgoing ones.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^([^#+/\s]+/)*$`
	// +optional
	Prefix string `json:"prefix,omitempty"`
}

// Security of a broker and of all its clients.
//
// +kubebuilder:validation:XValidation:rule="has(self.tls) && self.tls || has(self.password) && self.password",message="security needs tls or password"
type Security struct {
	// tls encrypts connections. The operator creates the experiment's own certificate authority and certificates.
	// +optional
	TLS bool `json:"tls,omitempty"`
	// password requires a user name and password of clients. The operator creates them and gives them to the clients.
	// +optional
	Password bool `json:"password,omitempty"`
}

// Session is whether the broker keeps a client's subscriptions, and messages of QoS 1 and 2, between connections.
//
// +kubebuilder:validation:Enum=Auto;Clean;Persistent
type Session string

// Auto: persistent where QoS 1 or 2 is used. Clean: nothing outlives a connection. Persistent: always.
const (
	SessionAuto       Session = "Auto"
	SessionClean      Session = "Clean"
	SessionPersistent Session = "Persistent"
)

// RateAdaptation slows a publisher down while its node's radio has frames waiting (cross-layer): the period doubles when a message is
// due and the queue is above highFrames, up to maxPeriod, and halves down to the publisher's own once it is at or below lowFrames.
//
// +kubebuilder:validation:XValidation:rule="self.lowFrames < self.highFrames",message="lowFrames must be below highFrames",fieldPath=".lowFrames"
type RateAdaptation struct {
	// highFrames in the queue, above which the period doubles.
	// +kubebuilder:default=8
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	HighFrames int32 `json:"highFrames,omitempty"`

	// lowFrames in the queue, at or below which the period halves.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	LowFrames *int32 `json:"lowFrames,omitempty"`

	// maxPeriod is the longest period that is taken.
	MaxPeriod Duration `json:"maxPeriod"`
}
