package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// Runtime is what a node runs in: a pod, or a virtual machine. Where absent it is a pod.
//
// +kubebuilder:validation:Enum=pod;vm
type Runtime string

// The runtimes of nodes.
const (
	RuntimePod Runtime = "pod"
	RuntimeVM  Runtime = "vm"
)

// What a virtual machine has where nobody says anything else.
const (
	DefaultCores  = 1
	DefaultMemory = "512Mi"
)

// VirtualMachine says what a node with runtime vm runs in. What is left out is the platform's: its own guest, one core, 512 MiB.
//
// +kubebuilder:validation:XValidation:rule="!has(self.image) || !has(self.persistentVolumeClaim)",message="a virtual machine begins from one disk: leave out image or persistentVolumeClaim",fieldPath=".persistentVolumeClaim",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.cloudInit) || !has(self.ignition)",message="a guest is set up by cloud-init or by Ignition: leave out one of the two",fieldPath=".ignition",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="has(self.image) || has(self.persistentVolumeClaim) || !has(self.cloudInit) && !has(self.ignition)",message="the platform's own guest has neither cloud-init nor Ignition: name an image that has, or leave out both",fieldPath=".image",reason=FieldValueRequired
type VirtualMachine struct {
	// image of the disk, as KubeVirt's container disks are: an image with one qcow2 or raw file in /disk. Without image and
	// persistentVolumeClaim it is the platform's own guest.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^[:space:]]+$')",message="must be the name of an image, without spaces"
	// +optional
	Image string `json:"image,omitempty"`

	// persistentVolumeClaim in the experiment's namespace that holds the disk, instead of an image. Nothing is written to it: what the guest
	// writes goes with the machine, so that every run begins from the same disk.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	PersistentVolumeClaim string `json:"persistentVolumeClaim,omitempty"`

	// diskBus is what the guest sees its disk on: virtio, the default, or sata for a guest without virtio's drivers.
	// +optional
	DiskBus DiskBus `json:"diskBus,omitempty"`

	// cores of the machine; 1 by default.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +optional
	Cores int32 `json:"cores,omitempty"`

	// memory of the guest; 512Mi by default. What KubeVirt and QEMU need beside it is added to what the node's pod requests.
	// +optional
	Memory MemorySize `json:"memory,omitempty"`

	// cloudInit sets up a guest that has cloud-init; for images other than the platform's.
	// +optional
	CloudInit *CloudInit `json:"cloudInit,omitempty"`

	// ignition sets up a guest that has Ignition: its configuration as JSON. KubeVirt's feature gate ExperimentalIgnitionSupport has to be on.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	Ignition string `json:"ignition,omitempty"`

	// sshKeys that may log in as root, as lines of authorized_keys.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=2048
	// +kubebuilder:validation:items:Pattern=`^[^\s].*$`
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
	// userData, such as a #cloud-config or a script. What starts the platform's agent is added to it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	UserData string `json:"userData,omitempty"`

	// secret in the experiment's namespace whose key userdata has the user data. The platform cannot read Secrets and adds nothing to
	// it: it has to start the agent itself, or the node has agent: false.
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

// Quantity of bytes; 0 where it is none. What the API server has admitted always is one.
func (m MemorySize) Quantity() resource.Quantity {
	quantity, err := resource.ParseQuantity(string(m))
	if err != nil {
		return resource.Quantity{}
	}
	return quantity
}

// DiskBus is what a guest sees its disk on.
//
// +kubebuilder:validation:Enum=virtio;sata
type DiskBus string

// The buses of disks.
const (
	DiskBusVirtio DiskBus = "virtio"
	DiskBusSATA   DiskBus = "sata"
)

// HasAgent tells whether the guest runs the platform's agent.
func (m *VirtualMachine) HasAgent() bool { return m == nil || m.Agent == nil || *m.Agent }

// OwnDisk tells whether the machine begins from a disk of the user's own.
func (m *VirtualMachine) OwnDisk() bool {
	return m != nil && (m.Image != "" || m.PersistentVolumeClaim != "")
}
