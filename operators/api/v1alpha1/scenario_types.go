package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ScenarioSource names where the movement of the platforms is read from.
type ScenarioSource struct {
	// configMap in the scenario's namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ConfigMap string `json:"configMap"`

	// key of the configMap that holds the file.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// ScenarioSpec describes how platforms move and what lies between them.
type ScenarioSpec struct {
	// description for people.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`

	// format of the source: eel (EMANE event log).
	// +kubebuilder:validation:Enum=eel
	Format string `json:"format"`

	// source of the scenario's data.
	Source ScenarioSource `json:"source"`
}

// ScenarioStatus tells what was found in the source.
type ScenarioStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// digest of the source's bytes, sha256:…
	// +optional
	Digest string `json:"digest,omitempty"`

	// conditions: Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Scenario is a movement of platforms that experiments of its namespace may replay.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Format",type=string,JSONPath=`.spec.format`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Scenario struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ScenarioSpec `json:"spec"`
	// +optional
	Status ScenarioStatus `json:"status,omitempty"`
}

// ScenarioList is a list of scenarios.
//
// +kubebuilder:object:root=true
type ScenarioList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Scenario `json:"items"`
}

func init() { SchemeBuilder.Register(&Scenario{}, &ScenarioList{}) }
