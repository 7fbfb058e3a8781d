package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CaptureSpec selects the frames of a running experiment to capture.
type CaptureSpec struct {
	// experiment in the same namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	Experiment string `json:"experiment"`

	// network whose frames are captured.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=12
	Network string `json:"network"`

	// nodes, or groups of nodes, whose radios are captured; without any, all of the network.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=24
	// +listType=set
	// +optional
	Nodes []string `json:"nodes,omitempty"`

	// filter in tcpdump's language, such as "udp port 698"; without it every frame is captured.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Filter string `json:"filter,omitempty"`

	// snapLengthBytes is how much of each frame is kept. By default all of it is.
	// +kubebuilder:validation:Minimum=14
	// +kubebuilder:validation:Maximum=65535
	// +optional
	SnapLengthBytes *int32 `json:"snapLengthBytes,omitempty"`

	// limit is the maximum size of the capture of each node, such as 256Mi, at which it ends.
	// +kubebuilder:default="256Mi"
	// +optional
	Limit *resource.Quantity `json:"limit,omitempty"`

	// duration after which the capture ends; without it, when it is deleted or the experiment ends.
	// +optional
	Duration Duration `json:"duration,omitempty"`
}

// ConditionCapturing of a Capture reports whether frames are being captured, or why not (any more).
const ConditionCapturing = "Capturing"

// CaptureStatus has the start and end of a capture.
type CaptureStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// startedAt is when the radios got the capture.
	// +optional
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`

	// endedAt is when the capture was ended.
	// +optional
	EndedAt *metav1.MicroTime `json:"endedAt,omitempty"`

	// conditions: Capturing, Ready, Reconciling, Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Capture records frames at the radios of a running experiment. The archive has them as
// captures/NAME/NETWORK/NODE.pcapng, also after the Capture is deleted, which ends it.
// To capture a whole run, use the experiment's collect.captures.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Experiment",type=string,JSONPath=`.spec.experiment`
// +kubebuilder:printcolumn:name="Network",type=string,JSONPath=`.spec.network`
// +kubebuilder:printcolumn:name="Capturing",type=string,JSONPath=`.status.conditions[?(@.type=="Capturing")].status`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Capturing")].message`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name != 'run' && self.metadata.name.size() <= 63",message="metadata.name: the name of a capture has at most 63 characters, and run is the name of the experiment's own capture"
type Capture struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what to capture. It cannot be edited: make another Capture.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a capture cannot be edited: make another Capture"
	Spec CaptureSpec `json:"spec"`

	// status is whether frames are captured; the operator writes it.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status CaptureStatus `json:"status,omitempty"`
}

// CaptureList is a list of captures.
//
// +kubebuilder:object:root=true
type CaptureList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Capture `json:"items"`
}

func init() { SchemeBuilder.Register(&Capture{}, &CaptureList{}) }
