package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Network is one radio network of an experiment. Its name is also the interface's name inside
// every node attached to it.
type Network struct {
	// name of the network and of the nodes' interface on it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=12
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9-]*$`
	Name string `json:"name"`

	// waveform names a Waveform object. Give either waveform or a model in place, such as link.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Waveform string `json:"waveform,omitempty"`

	// link is a link model in place of a named waveform.
	// +optional
	Link *LinkModel `json:"link,omitempty"`

	// subnet of the network in CIDR form. A node's address is the subnet's base plus its NEM id.
	// Use a part of 198.18.0.0/15; what overlaps the cluster's own ranges is refused.
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=18
	Subnet string `json:"subnet"`

	// mtu of the radio interfaces, bytes.
	// +kubebuilder:default=1500
	// +kubebuilder:validation:Minimum=68
	// +kubebuilder:validation:Maximum=9000
	// +optional
	MTU int32 `json:"mtu,omitempty"`

	// links replace the network's own model for frames from one group of nodes to another; one direction each.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Links []GroupLink `json:"links,omitempty"`
}

// Bridge joins a broker to another one.
type Bridge struct {
	// to is the other broker: an app's name, or node/app where several nodes run it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=48
	To string `json:"to"`

	// topics that cross the bridge. Without any, everything does, both ways.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Topics []BridgeTopic `json:"topics,omitempty"`
}

// BridgeTopic is one topic filter that crosses a bridge.
type BridgeTopic struct {
	// filter is an MQTT topic filter, such as # or NOR/#.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Filter string `json:"filter"`

	// direction seen from the broker that has the bridge: in, out or both.
	// +kubebuilder:default=both
	// +optional
	Direction BridgeDirection `json:"direction,omitempty"`

	// qos with which messages cross.
	// +kubebuilder:default=0
	// +optional
	QoS QoS `json:"qos,omitempty"`
}

// BridgeDirection says which way messages cross a bridge.
//
// +kubebuilder:validation:Enum=in;out;both
type BridgeDirection string

// QoS is MQTT's quality of service: 0 at most once, 1 at least once, 2 exactly once.
//
// +kubebuilder:validation:Minimum=0
// +kubebuilder:validation:Maximum=2
type QoS int32

// Mosquitto is an Eclipse Mosquitto MQTT broker on port 1883.
type Mosquitto struct {
	// bridges to other brokers.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Bridges []Bridge `json:"bridges,omitempty"`
}

// Protocol is a messaging protocol of the traffic generator.
//
// +kubebuilder:validation:Enum=mqtt;mqtt-udp
type Protocol string

// The protocols of the traffic generator.
const (
	ProtocolMQTT    Protocol = "mqtt"
	ProtocolMQTTUDP Protocol = "mqtt-udp"
)

// MQTTVersion is the version of MQTT that a client speaks.
//
// +kubebuilder:validation:Enum="3.1.1";"5"
type MQTTVersion string

// Phase places the first message of a publisher within its period.
//
// +kubebuilder:validation:Enum=random;spread;aligned
type Phase string

// The phases of publishers: drawn from the experiment's seed, spread evenly over all publishers
// of the app, or all together at the start.
const (
	PhaseRandom  Phase = "random"
	PhaseSpread  Phase = "spread"
	PhaseAligned Phase = "aligned"
)

// Publisher sends a message every period while its app runs.
type Publisher struct {
	// protocol to publish with.
	Protocol Protocol `json:"protocol"`

	// version of MQTT; for protocol mqtt.
	// +kubebuilder:default="3.1.1"
	// +optional
	Version MQTTVersion `json:"version,omitempty"`

	// to is the broker: an app's name (the one on the same node, else the only one in the experiment) or node/app.
	// +kubebuilder:validation:MaxLength=48
	// +optional
	To string `json:"to,omitempty"`

	// network that brokerless protocols broadcast on; by default the node's first.
	// +kubebuilder:validation:MaxLength=12
	// +optional
	Network string `json:"network,omitempty"`

	// qos of the messages.
	// +kubebuilder:default=0
	// +optional
	QoS QoS `json:"qos,omitempty"`

	// topic of the messages; {country}, {unit}, {entity}, {node}, {app} and {instance} are replaced.
	// +kubebuilder:default="/{country}/{unit}/{entity}/location"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Topic string `json:"topic,omitempty"`

	// payload of the messages: geojson (a Blue Force Tracking position, about 240 bytes), nffi (an NFFI XML
	// track, 880 to 909 bytes) or bytes:N (N arbitrary bytes, 32 at least).
	// +kubebuilder:default=geojson
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^(geojson|nffi|bytes:[1-9][0-9]{1,8})$')",message="must be geojson, nffi or bytes:N with N from 32 to 268435000"
	// +optional
	Payload string `json:"payload,omitempty"`

	// country that the messages speak of, in capitals; by default the node's group in capitals.
	// +kubebuilder:validation:MaxLength=24
	// +optional
	Country string `json:"country,omitempty"`

	// period between two messages of one publisher.
	Period Duration `json:"period"`

	// phase of the first message within the period.
	// +kubebuilder:default=random
	// +optional
	Phase Phase `json:"phase,omitempty"`
}

// Subscriber receives messages while its app runs.
type Subscriber struct {
	// protocol to subscribe with.
	Protocol Protocol `json:"protocol"`

	// version of MQTT; for protocol mqtt.
	// +kubebuilder:default="3.1.1"
	// +optional
	Version MQTTVersion `json:"version,omitempty"`

	// to is the broker, as in a publisher.
	// +kubebuilder:validation:MaxLength=48
	// +optional
	To string `json:"to,omitempty"`

	// network that brokerless protocols listen on; by default the node's first.
	// +kubebuilder:validation:MaxLength=12
	// +optional
	Network string `json:"network,omitempty"`

	// qos asked of the broker.
	// +kubebuilder:default=0
	// +optional
	QoS QoS `json:"qos,omitempty"`

	// topics are topic filters; # is everything.
	// +kubebuilder:default={"#"}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	// +optional
	Topics []string `json:"topics,omitempty"`
}

// App is a program that nodes run: a broker, a publisher, a subscriber, a client that is both, or
// any image with a command.
type App struct {
	// name of the app, used by nodes, by the timeline and by other apps.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^[a-z]([a-z0-9-]*[a-z0-9])?$`
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

	// publisher makes the app send messages. With subscriber too, each instance is one client that does both.
	// +optional
	Publisher *Publisher `json:"publisher,omitempty"`

	// subscriber makes the app receive messages.
	// +optional
	Subscriber *Subscriber `json:"subscriber,omitempty"`

	// image of an app of your own. It needs a command.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Image string `json:"image,omitempty"`

	// command of an app of your own: the image's own entrypoint is not used, as the agent starts and stops the command at exact times.
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
	// +optional
	RunAsUser *int64 `json:"runAsUser,omitempty"`

	// resources of the app's container. By default it requests little and has no CPU limit, as throttling would look like radio delay.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// EnvVar is an environment variable with a plain value.
type EnvVar struct {
	// name of the variable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	Name string `json:"name"`

	// value of the variable.
	// +kubebuilder:validation:MaxLength=4096
	Value string `json:"value"`
}

// ManagementNetwork says what a node may do on its cluster interface, eth0.
//
// +kubebuilder:validation:Enum=Isolated;Open
type ManagementNetwork string

// Isolated (the default) lets only the platform's own traffic pass on eth0; Open leaves it alone, and the result says so.
const (
	ManagementIsolated ManagementNetwork = "Isolated"
	ManagementOpen     ManagementNetwork = "Open"
)

// Node is a tactical node, or count equal ones named name-1 … name-count.
type Node struct {
	// name of the node; also its host name, which its peers resolve to its radio address.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^[a-z]([a-z0-9-]*[a-z0-9])?$`
	Name string `json:"name"`

	// group that the node counts to in links and results; by default its name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^[a-z]([a-z0-9-]*[a-z0-9])?$`
	// +optional
	Group string `json:"group,omitempty"`

	// count makes as many equal nodes: name-1, name-2, …
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Count *int32 `json:"count,omitempty"`

	// nem is the NEM id of the node, or of the first of count nodes. By default ids follow the order of the nodes, from 1.
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
	// +kubebuilder:validation:Pattern=`^[0-9]{1,6}-[0-9]{1,6}$`
	// +optional
	Platforms string `json:"platforms,omitempty"`

	// networks that the node is attached to. The first one takes its multicast and limited broadcast.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Networks []string `json:"networks,omitempty"`

	// apps that the node runs.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Apps []string `json:"apps,omitempty"`

	// managementNetwork: Isolated keeps the node's traffic on the radio; Open leaves eth0 open, and the result says so.
	// +kubebuilder:default=Isolated
	// +optional
	ManagementNetwork ManagementNetwork `json:"managementNetwork,omitempty"`
}

// TimelineEntry starts and stops apps at one moment.
//
// +kubebuilder:validation:XValidation:rule="has(self.start) || has(self.stop)",message="a timeline entry needs start or stop"
type TimelineEntry struct {
	// at is the moment, counted from T0.
	At Duration `json:"at"`

	// start these apps: an app's name (on every node that runs it) or node/app or group/app.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=48
	// +listType=atomic
	// +optional
	Start []string `json:"start,omitempty"`

	// stop these apps.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=48
	// +listType=atomic
	// +optional
	Stop []string `json:"stop,omitempty"`
}

// Drain lets queued messages arrive after the last stop.
type Drain struct {
	// max is the longest time to wait; what is still under way then counts as lost with reason inFlightAtEnd.
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
type ExperimentSpec struct {
	// duration of the run from T0; the drain comes after it. Apps that no timeline entry stops are stopped then.
	Duration Duration `json:"duration"`

	// seed of every random stream of the run: phases, payloads, losses.
	// +kubebuilder:default=1
	// +optional
	Seed int64 `json:"seed,omitempty"`

	// stop ends the run early; what was measured is still collected and analysed.
	// +optional
	Stop bool `json:"stop,omitempty"`

	// scenario moves the nodes' platforms.
	// +optional
	Scenario *ScenarioReference `json:"scenario,omitempty"`

	// networks are the radio networks.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Networks []Network `json:"networks"`

	// apps that nodes may run.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	Apps []App `json:"apps"`

	// nodes of the tactical network.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=name
	Nodes []Node `json:"nodes"`

	// timeline starts and stops apps. An app that no entry starts runs from T0.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Timeline []TimelineEntry `json:"timeline,omitempty"`

	// drain after the last stop.
	// +kubebuilder:default={}
	// +optional
	Drain Drain `json:"drain,omitempty"`

	// ttlAfterFinished deletes the experiment this long after it has finished; its archived results stay.
	// +optional
	TTLAfterFinished *Duration `json:"ttlAfterFinished,omitempty"`
}

// ExperimentPhase is where an experiment is on its way.
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
	Total int32 `json:"total"`
	Ready int32 `json:"ready"`
	// summary is ready/total, for people.
	// +optional
	Summary string `json:"summary,omitempty"`
}

// ResultsSummary is the headline of the results.
type ResultsSummary struct {
	Sent     int64 `json:"sent"`
	Expected int64 `json:"expected"`
	Received int64 `json:"received"`
	Lost     int64 `json:"lost"`
	// deliveredPercent of the expected deliveries, such as 99.83.
	// +optional
	DeliveredPercent string `json:"deliveredPercent,omitempty"`
	// medianDelay from sent to received, such as 112.4ms.
	// +optional
	MedianDelay string `json:"medianDelay,omitempty"`
	// keptUp says whether the emulation was never late; absent where it was not measured.
	// +optional
	KeptUp *bool `json:"keptUp,omitempty"`
	// gaps is the number of things missing from the results, which list them.
	Gaps int32 `json:"gaps"`
}

// ExperimentStatus tells how an experiment is getting on.
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

	// nodes counts the nodes that are up.
	// +optional
	Nodes NodesStatus `json:"nodes,omitempty"`

	// t0 is the experiment's time zero; every moment of the timeline counts from it.
	// +optional
	T0 *metav1.MicroTime `json:"t0,omitempty"`

	// progress of the whole run in percent, such as 42%.
	// +optional
	Progress string `json:"progress,omitempty"`

	// step of the workflow that is under way: replay, start, stop, drain, collect or analyse.
	// +optional
	Step string `json:"step,omitempty"`

	// workflow is the name of the Argo Workflow that sequences the run.
	// +optional
	Workflow string `json:"workflow,omitempty"`

	// startTime is when the first object of the run was created.
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
type Experiment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ExperimentSpec `json:"spec"`
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
