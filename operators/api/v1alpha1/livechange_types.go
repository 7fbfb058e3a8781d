package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LiveChangeSpec says what to change of a running experiment.
type LiveChangeSpec struct {
	// experiment in the same namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	Experiment string `json:"experiment"`

	// changes of its networks, carried out together.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Changes []RadioChange `json:"changes"`
}

// ConditionApplied of a LiveChange reports whether its changes apply, or why not.
const ConditionApplied = "Applied"

// LiveChangeStatus has the time of the changes.
type LiveChangeStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// appliesAt is the time from which the changes apply.
	// +optional
	AppliesAt *metav1.MicroTime `json:"appliesAt,omitempty"`

	// conditions: Applied, Ready, Reconciling, Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// LiveChange changes the networks of a running experiment by hand, once. It stays as a record of what was
// done, is part of the run record, and goes with its experiment. Changes that are known beforehand
// belong into the experiment's timeline.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Experiment",type=string,JSONPath=`.spec.experiment`
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="At",type=string,JSONPath=`.status.appliesAt`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].message`,priority=1
type LiveChange struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what to change. It cannot be edited: make another LiveChange.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a change is carried out once and cannot be edited: make another LiveChange"
	Spec LiveChangeSpec `json:"spec"`

	// status is whether it has been applied; the operator writes it.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status LiveChangeStatus `json:"status,omitempty"`
}

// LiveChangeList is a list of live changes.
//
// +kubebuilder:object:root=true
type LiveChangeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LiveChange `json:"items"`
}

func init() { SchemeBuilder.Register(&LiveChange{}, &LiveChangeList{}) }
