// Package v1alpha1 holds the objects that users of vignette write and read.
//
// An Experiment describes a tactical network and what happens on it. A Waveform is a reusable
// radio or link model, a Scenario a reusable movement of platforms. RadioNetwork is internal: the
// operator writes it in the platform's namespace and radiod applies it.
//
// +kubebuilder:object:generate=true
// +groupName=vignette.dev
package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

var (
	// GroupVersion is the API group and version of every type in this package.
	GroupVersion = schema.GroupVersion{Group: "vignette.dev", Version: "v1alpha1"}

	// SchemeBuilder registers the types of this package.
	SchemeBuilder = &scheme.Builder{GroupVersion: GroupVersion}

	// AddToScheme adds the types of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)
