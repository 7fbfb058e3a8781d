package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LinkModel limits a node's egress onto a network, shared by all its destinations, as
// `tc netem rate/delay/loss/limit` on that interface would. A frame of n bytes (Ethernet header
// included, no FCS) arrives delay + 8·n/rate after the link became free for it.
type LinkModel struct {
	// rate at which the sender's link serialises frames, such as 9.8kbit. Without it frames take no time to send.
	// +optional
	Rate *DataRate `json:"rate,omitempty"`

	// delay of every frame, one way, after it has been serialised, such as 100ms.
	// +kubebuilder:default="0ms"
	// +optional
	Delay Duration `json:"delay,omitempty"`

	// loss is the share of frames lost, drawn once per frame before the queue, for all its receivers together.
	// +kubebuilder:default="0%"
	// +optional
	Loss Percent `json:"loss,omitempty"`

	// limit is the most frames that may wait or be under way on the link; the newest frame is dropped when it is reached.
	// +kubebuilder:default=1000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Limit int32 `json:"limit,omitempty"`
}

// WaveformSpec says how a network carries frames. Exactly one model is given.
//
// +kubebuilder:validation:XValidation:rule="has(self.link)",message="a waveform needs a model: link"
type WaveformSpec struct {
	// description for people: what the waveform stands for and where its figures come from.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`

	// link is a point-to-point style limit on every sender's egress; it knows no positions and no shared medium.
	// +optional
	Link *LinkModel `json:"link,omitempty"`
}

// Waveform is a named radio or link model that any experiment of any team may use.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=wav
// +kubebuilder:printcolumn:name="Rate",type=string,JSONPath=`.spec.link.rate`
// +kubebuilder:printcolumn:name="Delay",type=string,JSONPath=`.spec.link.delay`
// +kubebuilder:printcolumn:name="Loss",type=string,JSONPath=`.spec.link.loss`
// +kubebuilder:printcolumn:name="Description",type=string,JSONPath=`.spec.description`,priority=1
type Waveform struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec of the waveform. Experiments copy it when they start; a later change does not reach them.
	Spec WaveformSpec `json:"spec"`
}

// WaveformList is a list of waveforms.
//
// +kubebuilder:object:root=true
type WaveformList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Waveform `json:"items"`
}

func init() { SchemeBuilder.Register(&Waveform{}, &WaveformList{}) }
