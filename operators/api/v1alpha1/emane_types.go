package v1alpha1

// The models of EMANE that need no library's name.
const (
	EMANEWiFi       = "ieee80211abg"
	EMANEBypass     = "bypass"
	EMANECommEffect = "commeffect"
	EMANEBentPipe   = "bentpipe"
)

// EMANESettings are settings of EMANE's own, for networks with engine emane. Only Waveforms have them, which administrators write.
//
// +kubebuilder:validation:XValidation:rule="has(self.model) || has(self.parameters) || has(self.nodes)",message="give a model, parameters or both"
// +kubebuilder:validation:XValidation:rule="(has(self.model) && !(self.model in ['bypass', 'commeffect'])) == has(self.phy)",message="phy is for a model over EMANE's physical layer, and such a model needs it; bypass and commeffect have none, rfpipe and tdma their own",fieldPath=".phy"
// +kubebuilder:validation:XValidation:rule="!has(self.interference) || has(self.phy)",message="interference is for a model with phy",fieldPath=".interference",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.pcr) || has(self.model) && self.model in ['ieee80211abg', 'bentpipe']",message="pcr is for ieee80211abg and bentpipe; for another model give its file by a parameter",fieldPath=".pcr",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.effect) || has(self.model) && self.model == 'commeffect'",message="effect is for commeffect",fieldPath=".effect",reason=FieldValueForbidden
type EMANESettings struct {
	// model of EMANE's, in place of rfpipe and tdma: ieee80211abg, bentpipe, bypass, commeffect, or the library of another MAC layer
	// that EMANE's image has, such as mymaclayer for libmymaclayer.so.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	// +optional
	Model string `json:"model,omitempty"`

	// phy is the physical layer of the model. bypass and commeffect have none.
	// +optional
	PHY *PHY `json:"phy,omitempty"`

	// interference that counts as noise; None by default.
	// +optional
	Interference Interference `json:"interference,omitempty"`

	// pcr is the text of the model's PCR file. Without it every frame above the sensitivity is received; for bentpipe that is curve 1.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	PCR string `json:"pcr,omitempty"`

	// spectralMasks is the text of a spectral mask manifest of EMANE's, for radios whose phy has the parameter spectralmaskindex.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	SpectralMasks string `json:"spectralMasks,omitempty"`

	// effect of commeffect on the frames from each node to each other.
	// +optional
	Effect *EMANEEffect `json:"effect,omitempty"`

	// parameters of EMANE's layers on all nodes, by their own names. Parameters that other fields set are refused here.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +listType=map
	// +listMapKey=layer
	// +listMapKey=name
	// +optional
	Parameters []EMANEParameter `json:"parameters,omitempty"`

	// nodes with parameters of their own, such as the transponders of a satellite.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Nodes []EMANENodes `json:"nodes,omitempty"`
}

// EMANENodes are nodes with parameters of their own.
type EMANENodes struct {
	// names of nodes or groups. Each network with the waveform must have them.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	Names []string `json:"names"`

	// parameters of these nodes, in place of those of all nodes. A later entry that names a node replaces an earlier one's.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +listType=map
	// +listMapKey=layer
	// +listMapKey=name
	Parameters []EMANEParameter `json:"parameters"`
}

// EMANEEffect is what EMANE's comm effect model does to frames.
type EMANEEffect struct {
	// delay of every frame.
	// +kubebuilder:default="0ms"
	// +optional
	Delay Duration `json:"delay,omitempty"`
	// jitter of the delay: uniform from -jitter to +jitter.
	// +kubebuilder:default="0ms"
	// +optional
	Jitter Duration `json:"jitter,omitempty"`
	// loss is the share of frames lost.
	// +kubebuilder:default="0%"
	// +optional
	Loss Percent `json:"loss,omitempty"`
	// duplicate is the share of frames that arrive twice.
	// +kubebuilder:default="0%"
	// +optional
	Duplicate Percent `json:"duplicate,omitempty"`
	// rate at which frames of a sender arrive; without it at once.
	// +optional
	Rate *DataRate `json:"rate,omitempty"`
}

// EMANELayer of a radio.
//
// +kubebuilder:validation:Enum=mac;phy;shim
type EMANELayer string

// The layers: shim is that of commeffect.
const (
	EMANELayerMAC  EMANELayer = "mac"
	EMANELayerPHY  EMANELayer = "phy"
	EMANELayerShim EMANELayer = "shim"
)

// EMANEParameter is a parameter of one of EMANE's layers.
type EMANEParameter struct {
	// layer that has the parameter.
	Layer EMANELayer `json:"layer"`
	// name of the parameter, as EMANE's manifests have it.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Name string `json:"name"`
	// values of the parameter, as EMANE reads them; most have one.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=255
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=atomic
	Values []string `json:"values"`
}
