package v1alpha1

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Runtime is what a node runs in: a pod, or a virtual machine. If absent it is a pod.
//
// +kubebuilder:validation:Enum=pod;vm
type Runtime string

// The runtimes of nodes.
const (
	RuntimePod Runtime = "pod"
	RuntimeVM  Runtime = "vm"
)

// Defaults of a virtual machine.
const (
	DefaultCores  = 1
	DefaultMemory = "512Mi"
)

// VirtualMachine has the settings of a node with runtime vm. The defaults are the platform's guest, one core and 512 MiB.
//
// +kubebuilder:validation:XValidation:rule="!has(self.image) || !has(self.persistentVolumeClaim)",message="a virtual machine begins from one disk: leave out image or persistentVolumeClaim",fieldPath=".persistentVolumeClaim",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.cloudInit) || !has(self.ignition)",message="a guest is set up by cloud-init or by Ignition: leave out one of the two",fieldPath=".ignition",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="has(self.image) || has(self.persistentVolumeClaim) || has(self.template) || !has(self.cloudInit) && !has(self.ignition)",message="the platform's own guest has neither cloud-init nor Ignition: name an image that has, or leave out both",fieldPath=".image",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="has(self.image) || has(self.persistentVolumeClaim) || has(self.template) || !has(self.memory) || !isQuantity(self.memory) || quantity(self.memory).compareTo(quantity('256Mi')) >= 0",message="the platform's own guest needs 256Mi or more",fieldPath=".memory"
type VirtualMachine struct {
	// template names a NodeTemplate of the experiment's namespace, or else of the platform's. Settings given here override it.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of an object: lower-case letters, digits and hyphens, with a letter or digit first and last"
	// +optional
	Template string `json:"template,omitempty"`

	// image of the disk, as KubeVirt's container disks are: an image with one qcow2 or raw file in /disk. Without image and
	// persistentVolumeClaim it is the platform's own guest.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^\S+$`
	// +optional
	Image string `json:"image,omitempty"`

	// persistentVolumeClaim in the experiment's namespace that holds the disk, instead of an image, with the label
	// vignette.dev/for-experiments=true. The guest's writes are discarded with the machine, so that every run begins from the same disk.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	PersistentVolumeClaim string `json:"persistentVolumeClaim,omitempty"`

	// diskBus is the bus of the guest's disk: virtio, the default, or sata for a guest without virtio's drivers.
	// +optional
	DiskBus DiskBus `json:"diskBus,omitempty"`

	// cores of the machine; 1 by default.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +optional
	Cores int32 `json:"cores,omitempty"`

	// memory of the guest; 512Mi by default. The overhead of KubeVirt and QEMU is added to the requests of the node's pod.
	// +optional
	Memory MemorySize `json:"memory,omitempty"`

	// cloudInit sets up a guest that has cloud-init; for images other than the platform's.
	// +optional
	CloudInit *CloudInit `json:"cloudInit,omitempty"`

	// ignition sets up a guest that has Ignition: its configuration as JSON, of specification 3 unless agent is false. The start of
	// the platform's agent is merged into it. KubeVirt's feature gate ExperimentalIgnitionSupport must be on.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	Ignition string `json:"ignition,omitempty"`

	// sshKeys that may log in as root, as lines of authorized_keys.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=2048
	// +kubebuilder:validation:items:XValidation:rule="self != '' && !self.startsWith(' ')",message="must be a line of authorized_keys, without a space before it"
	// +listType=atomic
	// +optional
	SSHKeys []string `json:"sshKeys,omitempty"`

	// agent: false is for a guest in which the platform's agent cannot run. Such a node has no apps, and counts as ready once its machine runs;
	// its traffic can still be captured and counted. By default the guest runs the agent.
	// +optional
	Agent *bool `json:"agent,omitempty"`
}

// CloudInit is user data for cloud-init's data source NoCloud.
//
// +kubebuilder:validation:XValidation:rule="has(self.userData) != has(self.secret)",message="cloudInit needs either userData or secret"
type CloudInit struct {
	// userData, such as a #cloud-config or a script. The start of the platform's agent is added to it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	UserData string `json:"userData,omitempty"`

	// secret in the experiment's namespace whose key userdata has the user data, with the label vignette.dev/for-experiments=true. The platform
	// does not read it and adds nothing to it, so it must start the agent itself, or the node must have agent: false.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	Secret string `json:"secret,omitempty"`
}

// MemorySize is a number of bytes as a quantity, such as 512Mi or 1.5Gi.
//
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).compareTo(quantity('64Mi')) >= 0 && quantity(self).compareTo(quantity('1Ti')) <= 0",message="must be a size from 64Mi to 1Ti, such as 512Mi: no guest boots with less"
type MemorySize string

// Quantity returns the number of bytes, 0 if it is invalid. The API server admits only valid ones.
func (m MemorySize) Quantity() resource.Quantity {
	quantity, err := resource.ParseQuantity(string(m))
	if err != nil {
		return resource.Quantity{}
	}
	return quantity
}

// DiskBus is the bus of a guest's disk.
//
// +kubebuilder:validation:Enum=virtio;sata
type DiskBus string

// The buses of disks.
const (
	DiskBusVirtio DiskBus = "virtio"
	DiskBusSATA   DiskBus = "sata"
)

// HasAgent reports whether the guest runs the platform's agent.
func (m *VirtualMachine) HasAgent() bool { return m == nil || m.Agent == nil || *m.Agent }

// OwnDisk reports whether the machine boots from a disk of the user.
func (m *VirtualMachine) OwnDisk() bool {
	return m != nil && (m.Image != "" || m.PersistentVolumeClaim != "")
}

// Over returns the settings of a machine with defaults from a template. The disk and the settings of its guest are never mixed.
func (m *VirtualMachine) Over(template *VirtualMachine) *VirtualMachine {
	if template == nil {
		return m
	}
	merged := *m.DeepCopy()
	merged.Template = ""
	if !m.OwnDisk() {
		merged.Image, merged.PersistentVolumeClaim = template.Image, template.PersistentVolumeClaim
	}
	if m.CloudInit == nil && m.Ignition == "" {
		merged.CloudInit, merged.Ignition = template.CloudInit.DeepCopy(), template.Ignition
	}
	merged.DiskBus = cmp.Or(m.DiskBus, template.DiskBus)
	merged.Cores = cmp.Or(m.Cores, template.Cores)
	merged.Memory = cmp.Or(m.Memory, template.Memory)
	if m.SSHKeys == nil {
		merged.SSHKeys = template.SSHKeys
	}
	return &merged
}

// NodeTemplateSpec is a node that many experiments have.
//
// +kubebuilder:validation:XValidation:rule="!has(self.vm.template)",message="a template is not made from another one",fieldPath=".vm.template",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.vm.agent)",message="whether a guest runs the agent is for the experiment's node to say, as its apps depend on it",fieldPath=".vm.agent",reason=FieldValueForbidden
type NodeTemplateSpec struct {
	// description for people: what the node stands for.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`

	// vm has the settings of the node's virtual machine.
	VM VirtualMachine `json:"vm"`
}

// NodeTemplate has settings of a virtual machine that nodes of experiments share by vm.template. One in the experiment's own
// namespace precedes one of the same name in the platform's, which all teams may use.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=nt
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.vm.image`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.spec.vm.memory`
// +kubebuilder:printcolumn:name="Description",type=string,JSONPath=`.spec.description`,priority=1
type NodeTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec of the template. Existing machines do not change.
	Spec NodeTemplateSpec `json:"spec"`
}

// NodeTemplateList is a list of node templates.
//
// +kubebuilder:object:root=true
type NodeTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeTemplate `json:"items"`
}

func init() { SchemeBuilder.Register(&NodeTemplate{}, &NodeTemplateList{}) }
