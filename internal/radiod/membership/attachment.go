package membership

import (
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/vmnic"
	"vignette.dev/vignette/internal/radiod/wire"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Attachment is one member's radio on this host, as it outlives the worker. In a Store it does not change.
type Attachment struct {
	PodUID       string `json:"podUID"`
	PodNamespace string `json:"podNamespace"`
	PodName      string `json:"podName"`
	ContainerID  string `json:"containerID"`
	// Interface of the member, that is the network's name.
	Interface     string `json:"interface"`
	Configuration string `json:"configuration"`
	// NamespacePath on the host, and Namespace, the identity that must be found there.
	NamespacePath string         `json:"namespacePath"`
	Namespace     netns.Identity `json:"namespace"`
	// Index of the interface in the pod's namespace.
	Index int `json:"index"`
	// NetworkUID of the RadioNetwork, and the attachment's member.
	NetworkUID string `json:"networkUID"`
	// RunUID is the experiment's, Network the network's name in it.
	RunUID  string          `json:"runUID,omitempty"`
	Network string          `json:"network,omitempty"`
	Member  v1alpha1.Member `json:"member"`
	// Gateways of the pod's default routes, from which a host without an address there may probe.
	Gateways []string `json:"gateways,omitempty"`
	// Pinned reports whether the descriptor was opened in the pod's namespace, and so keeps it alive.
	Pinned bool `json:"pinned,omitempty"`
	// Settings of the kernel in the namespace, for the run record.
	Settings map[string]string `json:"settings,omitempty"`
	// Engine that carries the frames, if it is not radiod's own.
	Engine v1alpha1.Engine `json:"engine,omitempty"`
	// Guest is the additional part of a virtual machine; nil for pods.
	Guest *Guest `json:"guest,omitempty"`
}

// Guest is the part of an attachment that only a virtual machine has.
type Guest struct {
	// TAP that QEMU opens in the launcher's namespace, with the name that the runtime requires, and its
	// index.
	TAP   string `json:"tap"`
	Index int    `json:"index"`
	// Management is the index of eth0 in that namespace.
	Management int `json:"management"`
}

// Link returns the name of radiod's interface in the namespace.
func (a *Attachment) Link() string {
	if a.Guest != nil {
		return vmnic.RadioName(a.Interface)
	}
	return a.Interface
}

// Wire returns the attachment as the runtime requested it.
func (a *Attachment) Wire() wire.Attachment {
	if a.Guest != nil {
		return wire.Attachment{ContainerID: a.ContainerID, Interface: a.Guest.TAP}
	}
	return wire.Attachment{ContainerID: a.ContainerID, Interface: a.Interface}
}

// Key of the attachment's member.
func (a *Attachment) Key() Key { return Key{a.PodUID, a.Interface} }

// ID identifies the attachment's descriptor at the parent, and its file.
func (a *Attachment) ID() string { return a.PodUID + "_" + a.Interface }
