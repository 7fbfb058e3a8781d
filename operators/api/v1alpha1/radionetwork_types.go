package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ExperimentReference names the experiment that something belongs to.
type ExperimentReference struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

// Member is one node's attachment to a radio network. radiod admits an attachment only if the
// container runtime's pod UID and interface name are listed here.
type Member struct {
	// node is the tactical node's name.
	Node string `json:"node"`
	// group of the node, for links between groups and for metrics.
	Group string `json:"group"`
	// nem is the network emulation module id, 1 to 65534; also the host part of the address and the end of the MAC.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65534
	NEM int32 `json:"nem"`
	// mac address of the radio interface.
	MAC string `json:"mac"`
	// address of the radio interface with its prefix length, such as 198.18.9.1/24.
	Address string `json:"address"`
	// interface name inside the pod; it equals the network's name in the experiment.
	Interface string `json:"interface"`
	// podUID of the pod that may attach; for a virtual machine that of its launcher.
	PodUID types.UID `json:"podUID"`
	// runtime of the node. In a launcher's pod the radio is a TAP for QEMU, and has no address: the guest does.
	// +optional
	Runtime Runtime `json:"runtime,omitempty"`
	// platform of the scenario that carries the node; absent for one that no scenario moves.
	// +optional
	Platform *int32 `json:"platform,omitempty"`
	// antennaProfiles marks a member whose platform has an antenna profile at some time.
	// +optional
	AntennaProfiles bool `json:"antennaProfiles,omitempty"`
	// position of a fixed node.
	// +optional
	Position *Position `json:"position,omitempty"`
	// routes of the node on this network, for static routing.
	// +optional
	Routes []MemberRoute `json:"routes,omitempty"`
	// openManagement leaves eth0 of the pod without the rules that keep traffic on the radio.
	// +optional
	OpenManagement bool `json:"openManagement,omitempty"`
	// primary marks the network that takes the pod's multicast and limited broadcast.
	// +optional
	Primary bool `json:"primary,omitempty"`
	// place of the network among the node's, 0 for the first. A router takes its metric from the first that routes.
	// +optional
	Place int32 `json:"place,omitempty"`
}

// MemberRoute is a static route by addresses.
type MemberRoute struct {
	// to is the destination in CIDR form.
	To string `json:"to"`
	// via is the address of the forwarding node.
	Via string `json:"via"`
}

// GroupLink is a link model for frames from one group of nodes to another.
type GroupLink struct {
	// from is the group (or node) that sends; * stands for all.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	From string `json:"from"`
	// to is the group (or node) that receives; * stands for all.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	To string `json:"to"`

	LinkModel `json:",inline"`
}

// RadioNetworkSpec is what radiod needs to emulate one network of one experiment.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.t0) || self.experiment == oldSelf.experiment && self.network == oldSelf.network && self.waveform == oldSelf.waveform && self.mtu == oldSelf.mtu && self.seed == oldSelf.seed && self.members == oldSelf.members",message="cannot change once t0 is set, but for silent, changes and captures: what a run measures would be of two networks"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.t0) || has(self.links) == has(oldSelf.links) && (!has(self.links) || self.links == oldSelf.links) && has(self.radios) == has(oldSelf.radios) && (!has(self.radios) || self.radios == oldSelf.radios)",message="links and radios cannot change once t0 is set: use changes"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.t0) || has(self.routing) == has(oldSelf.routing) && (!has(self.routing) || self.routing == oldSelf.routing) && has(self.scenario) == has(oldSelf.scenario) && (!has(self.scenario) || self.scenario == oldSelf.scenario)",message="routing and scenario cannot change once t0 is set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.t0) || has(self.engine) == has(oldSelf.engine) && (!has(self.engine) || self.engine == oldSelf.engine) && has(self.emane) == has(oldSelf.emane) && (!has(self.emane) || self.emane == oldSelf.emane) && has(self.commEffects) == has(oldSelf.commEffects) && has(self.tcpCongestionControl) == has(oldSelf.tcpCongestionControl) && (!has(self.tcpCongestionControl) || self.tcpCongestionControl == oldSelf.tcpCongestionControl)",message="engine, emane, commEffects and tcpCongestionControl cannot change once t0 is set"
type RadioNetworkSpec struct {
	// experiment that the network belongs to.
	Experiment ExperimentReference `json:"experiment"`
	// network is the network's name in the experiment.
	Network string `json:"network"`
	// waveform as resolved when the experiment started.
	Waveform WaveformSpec `json:"waveform"`
	// links that replace the waveform between two groups: those of the experiment, and those from the network's base.
	// +kubebuilder:validation:MaxItems=80
	// +optional
	Links []GroupLink `json:"links,omitempty"`
	// commEffects of the scenario hold for each pair of members that it has them for.
	// +optional
	CommEffects bool `json:"commEffects,omitempty"`
	// engine that carries the frames; native where absent.
	// +optional
	Engine Engine `json:"engine,omitempty"`
	// spectrum that the network shares with the experiment's other networks of the same name here.
	// +optional
	Spectrum string `json:"spectrum,omitempty"`
	// radios are the different settings of some nodes' radios, by the members' names and groups.
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Radios []Radio `json:"radios,omitempty"`
	// routing of the members.
	// +optional
	Routing *Routing `json:"routing,omitempty"`
	// scenario is the digest, sha256:…, of the compiled scenario that moves the members; the server hands it out.
	// +optional
	Scenario string `json:"scenario,omitempty"`
	// fadingSelections marks a network with engine emane whose scenario says which fading each receiver applies to which sender.
	// +optional
	FadingSelections bool `json:"fadingSelections,omitempty"`
	// mtu of the radio interfaces, bytes.
	MTU int32 `json:"mtu"`
	// tcpCongestionControl of the members' kernels; the host's where absent.
	// +optional
	TCPCongestionControl string `json:"tcpCongestionControl,omitempty"`
	// seed of the network's random streams.
	Seed int64 `json:"seed"`
	// silent radios send and receive nothing; the attachments stay.
	// +optional
	Silent bool `json:"silent,omitempty"`
	// t0 is the experiment's time zero, once it is set.
	// +optional
	T0 *metav1.MicroTime `json:"t0,omitempty"`
	// changes of the network, in order of time. The radio carries them out by itself; where T0 is not set yet none has
	// happened. Of two at one moment the later in the list is the later.
	// +kubebuilder:validation:MaxItems=4096
	// +optional
	Changes []TimedRadioChange `json:"changes,omitempty"`
	// captures are the active captures of the network's frames.
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Captures []RadioCapture `json:"captures,omitempty"`
	// emane has the pods of the platform's that carry the members of a network with engine emane, one for each host with members.
	// +kubebuilder:validation:MaxItems=1000
	// +listType=map
	// +listMapKey=host
	// +optional
	EMANE []EMANEPod `json:"emane,omitempty"`
	// members that may attach.
	// +kubebuilder:validation:MaxItems=65534
	Members []Member `json:"members"`
}

// EMANEPod runs an EMANE process for each member of a network on one host.
type EMANEPod struct {
	// host is the Kubernetes node's name.
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host"`
	// podUID of the pod whose network namespace takes the members' radios.
	PodUID types.UID `json:"podUID"`
}

// TimedRadioChange is a RadioChange of this network at a moment.
type TimedRadioChange struct {
	// atNanoseconds after T0.
	AtNanoseconds int64 `json:"atNanoseconds"`
	RadioChange   `json:",inline"`
}

// RadioCapture is a capture at the radios of some of a network's nodes.
type RadioCapture struct {
	// name of the capture, unique within the experiment: run for the one of its spec, else the Capture object's. The
	// archive has it as captures/NAME/NETWORK/NODE.pcapng.
	Name string `json:"name"`
	// nodes whose radios are captured; none means all.
	// +optional
	Nodes []string `json:"nodes,omitempty"`
	// filter in tcpdump's language; none means every frame.
	// +optional
	Filter string `json:"filter,omitempty"`
	// snapLengthBytes is how much of each frame is kept; 0 means all of it.
	// +optional
	SnapLengthBytes int32 `json:"snapLengthBytes,omitempty"`
	// limitBytes is the most that is captured of each node.
	LimitBytes int64 `json:"limitBytes"`
}

// Takes reports whether a node's radio is captured.
func (c *RadioCapture) Takes(node string) bool {
	return len(c.Nodes) == 0 || slices.Contains(c.Nodes, node)
}

// Captured reports whether a capture takes a node's radio.
func (s *RadioNetworkSpec) Captured(node string) bool {
	return slices.ContainsFunc(s.Captures, func(c RadioCapture) bool { return c.Takes(node) })
}

// RadioNetworkHost is what one host's radiod reports, by server-side apply and on change only.
type RadioNetworkHost struct {
	// host is the Kubernetes node's name.
	Host string `json:"host"`
	// attached is the number of members attached on this host.
	Attached int32 `json:"attached"`
	// nems are the attached members' NEM ids, in ascending order.
	// +kubebuilder:validation:MaxItems=65534
	// +listType=atomic
	// +optional
	NEMs []int32 `json:"nems,omitempty"`
	// cpuModel of the host, as its kernel names it, for run records.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	CPUModel string `json:"cpuModel,omitempty"`
	// tcpCongestionControl that the members on this host have, for run records.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TCPCongestionControl string `json:"tcpCongestionControl,omitempty"`
	// peer is where the other hosts send frames for this host's members.
	// +optional
	Peer *RadioPeer `json:"peer,omitempty"`
	// message is the error on this host, if any.
	// +optional
	Message string `json:"message,omitempty"`
	// refused names what of the spec radiod cannot carry out, however often it tries. The run fails for it.
	// +optional
	Refused string `json:"refused,omitempty"`
}

// RadioPeer is how other hosts reach one host's radiod. Whoever can write it can join the network, so only radiod may.
type RadioPeer struct {
	// address for UDP datagrams, such as 192.0.2.7:9601.
	// +kubebuilder:validation:MaxLength=64
	Address string `json:"address"`
	// key is the X25519 public key, base64.
	// +kubebuilder:validation:MaxLength=44
	Key string `json:"key"`
}

// RadioNetworkStatus collects the hosts' reports.
type RadioNetworkStatus struct {
	// +listType=map
	// +listMapKey=host
	// +optional
	Hosts []RadioNetworkHost `json:"hosts,omitempty"`
}

// RadioNetwork is one network of one experiment, in the platform's namespace where tenants have
// no rights. The operator writes it, and radiod applies it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=rn
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.experiment.namespace`
// +kubebuilder:printcolumn:name="Experiment",type=string,JSONPath=`.spec.experiment.name`
// +kubebuilder:printcolumn:name="Network",type=string,JSONPath=`.spec.network`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RadioNetwork struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RadioNetworkSpec `json:"spec"`
	// +optional
	Status RadioNetworkStatus `json:"status,omitempty"`
}

// RadioNetworkList is a list of radio networks.
//
// +kubebuilder:object:root=true
type RadioNetworkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RadioNetwork `json:"items"`
}

func init() { SchemeBuilder.Register(&RadioNetwork{}, &RadioNetworkList{}) }
