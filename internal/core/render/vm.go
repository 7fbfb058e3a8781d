package render

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"vignette.dev/vignette/internal/core/queue"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/guestconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

const (
	// RadioBinding is the network binding plugin of the platform's radio in the KubeVirt object. It attaches the guest to the
	// TAP of the CNI plugin.
	RadioBinding = "vignette-radio"
	// managementInterface is KubeVirt's name of the pod's network. No network of an experiment may have it.
	managementInterface = "default"
	// managementMAC is that of every guest's management interface, which is on no shared network.
	managementMAC = "02:76:67:00:00:01"

	// Disks of a virtual machine, in their order, and the volumes behind them.
	rootDisk, guestDisk, toolsDisk, cloudInitDisk = "root", "vignette", "tools", "cidata"
)

// ignitionAnnotation is KubeVirt's annotation with a guest's Ignition configuration.
const ignitionAnnotation = kubevirtv1.IgnitionAnnotation

// VM is a node's virtual machine, which does not start without its Secret. KubeVirt has no scheduling gates, but the kubelet
// calls no CNI plugin before it has every volume of a pod. The Secret has another name for each new machine, so that it is
// never confused with that of an earlier one.
func VM(in Input, node topology.Node, made time.Time) *kubevirtv1.VirtualMachineInstance {
	e := in.Experiment
	vm := &kubevirtv1.VirtualMachineInstance{
		TypeMeta:   metav1.TypeMeta{APIVersion: kubevirtv1.GroupVersion.String(), Kind: "VirtualMachineInstance"},
		ObjectMeta: ownedMeta(e, PodName(e.Name, node.Name), labels(e, v1alpha1.LabelNode, node.Name, v1alpha1.LabelGroup, node.Group)),
	}
	vm.Annotations = stayAnnotations() // KubeVirt gives them to the launcher's pod
	spec := settingsOf(in, node)
	vm.Spec = kubevirtv1.VirtualMachineInstanceSpec{
		Hostname:                      node.Name,
		Affinity:                      queue.HostAffinity(),
		EvictionStrategy:              ptr.To(kubevirtv1.EvictionStrategyNone),
		TerminationGracePeriodSeconds: ptr.To(int64(5)),
		Domain: kubevirtv1.DomainSpec{
			CPU:    &kubevirtv1.CPU{Cores: uint32(spec.Cores), Sockets: 1, Threads: 1},
			Memory: &kubevirtv1.Memory{Guest: ptr.To(spec.Memory.Quantity())},
			// Explicit requests do not depend on the cluster's settings for overcommitment.
			Resources: kubevirtv1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: coresRequest(spec.Cores), corev1.ResourceMemory: spec.Memory.Quantity(),
			}},
			Devices: kubevirtv1.Devices{
				AutoattachGraphicsDevice: ptr.To(false), AutoattachMemBalloon: ptr.To(false),
				AutoattachSerialConsole: ptr.To(true), LogSerialConsole: ptr.To(true),
				Rng: &kubevirtv1.Rng{},
			},
		},
	}
	vm.Spec.DNSPolicy, vm.Spec.DNSConfig = dnsOf(in, node)
	addDisks(vm, in, node, spec, GuestSecretName(e, node.Name, made))
	addInterfaces(vm, e, node)
	if spec.Ignition != "" {
		vm.Annotations[ignitionAnnotation] = ignitionOf(node, spec)
	}
	return vm
}

// settingsOf are a virtual machine's settings, with defaults from its template and then from the platform.
func settingsOf(in Input, node topology.Node) v1alpha1.VirtualMachine {
	return settings(in, node.VM)
}

func settings(in Input, given *v1alpha1.VirtualMachine) v1alpha1.VirtualMachine {
	settings := v1alpha1.VirtualMachine{}
	if given != nil {
		settings = *given.DeepCopy()
	}
	if template, known := in.Templates[settings.Template]; known {
		settings = *settings.Over(&template)
	}
	settings.Cores = cmp.Or(settings.Cores, v1alpha1.DefaultCores)
	settings.Memory = cmp.Or(settings.Memory, v1alpha1.DefaultMemory)
	settings.DiskBus = cmp.Or(settings.DiskBus, v1alpha1.DiskBusVirtio)
	return settings
}

// GuestSecretName is the Secret's name of a virtual machine that is created at a time.
func GuestSecretName(e *v1alpha1.Experiment, node string, made time.Time) string {
	hash := fnv.New32a()
	fmt.Fprint(hash, e.UID, made.UnixNano())
	return fmt.Sprintf("%s-guest-%08x", PodName(e.Name, node), hash.Sum32())
}

// GuestSecretOf is the name of the Secret that a virtual machine waits for, empty for none.
func GuestSecretOf(vm *kubevirtv1.VirtualMachineInstance) string {
	for _, volume := range vm.Spec.Volumes {
		if volume.Name == guestDisk && volume.Secret != nil {
			return volume.Secret.SecretName
		}
	}
	return ""
}

func addDisks(vm *kubevirtv1.VirtualMachineInstance, in Input, node topology.Node, spec v1alpha1.VirtualMachine, secret string) {
	add := func(name string, bus kubevirtv1.DiskBus, readOnly bool, source kubevirtv1.VolumeSource) {
		addDisk(vm, name, bus, readOnly, source)
	}
	bus := kubevirtv1.DiskBus(spec.DiskBus)
	add(rootDisk, bus, false, rootSource(in, spec))
	add(guestDisk, bus, true, kubevirtv1.VolumeSource{Secret: &kubevirtv1.SecretVolumeSource{SecretName: secret, VolumeLabel: guestconfig.ConfigLabel}})
	if node.HasAgent() {
		add(toolsDisk, bus, true, kubevirtv1.VolumeSource{ContainerDisk: &kubevirtv1.ContainerDiskSource{
			Image: in.Options.GuestToolsImage, ImagePullPolicy: in.Options.PullPolicy,
		}})
	}
	if usesCloudInit(in, node, spec) {
		add(cloudInitDisk, bus, false, cloudInitSource(spec, secret))
	}
}

// addDisk adds a disk to a machine. libvirt refuses read-only SATA disks, so a guest's writes to those are lost with the
// machine.
func addDisk(vm *kubevirtv1.VirtualMachineInstance, name string, bus kubevirtv1.DiskBus, readOnly bool, source kubevirtv1.VolumeSource) {
	readOnly = readOnly && bus != kubevirtv1.DiskBusSATA
	devices := &vm.Spec.Domain.Devices
	devices.Disks = append(devices.Disks, kubevirtv1.Disk{Name: name, DiskDevice: kubevirtv1.DiskDevice{Disk: &kubevirtv1.DiskTarget{Bus: bus, ReadOnly: readOnly}}})
	vm.Spec.Volumes = append(vm.Spec.Volumes, kubevirtv1.Volume{Name: name, VolumeSource: source})
}

// rootSource is the source of a machine's own disk. Its writes go to a temporary overlay, not to the image or claim.
func rootSource(in Input, spec v1alpha1.VirtualMachine) kubevirtv1.VolumeSource {
	switch {
	case spec.PersistentVolumeClaim != "":
		return kubevirtv1.VolumeSource{Ephemeral: &kubevirtv1.EphemeralVolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: spec.PersistentVolumeClaim, ReadOnly: true},
		}}
	case spec.Image != "":
		return kubevirtv1.VolumeSource{ContainerDisk: &kubevirtv1.ContainerDiskSource{Image: spec.Image}}
	default:
		return kubevirtv1.VolumeSource{ContainerDisk: &kubevirtv1.ContainerDiskSource{Image: in.Options.GuestImage, ImagePullPolicy: in.Options.PullPolicy}}
	}
}

func addInterfaces(vm *kubevirtv1.VirtualMachineInstance, e *v1alpha1.Experiment, node topology.Node) {
	interfaces := []kubevirtv1.Interface{{
		Name: managementInterface, MacAddress: managementMAC,
		InterfaceBindingMethod: kubevirtv1.InterfaceBindingMethod{Masquerade: &kubevirtv1.InterfaceMasquerade{}},
	}}
	networks := []kubevirtv1.Network{{Name: managementInterface, NetworkSource: kubevirtv1.NetworkSource{Pod: &kubevirtv1.PodNetwork{}}}}
	for _, a := range node.Attachments {
		interfaces = append(interfaces, kubevirtv1.Interface{Name: a.Network, MacAddress: a.MAC, Binding: &kubevirtv1.PluginBinding{Name: RadioBinding}})
		networks = append(networks, kubevirtv1.Network{Name: a.Network, NetworkSource: kubevirtv1.NetworkSource{
			Multus: &kubevirtv1.MultusNetwork{NetworkName: NetworkName(e.Name, a.Network)},
		}})
	}
	vm.Spec.Domain.Devices.Interfaces, vm.Spec.Networks = interfaces, networks
}

// VMNodes are the nodes that are virtual machines, in order.
func VMNodes(t *topology.Topology) (nodes []topology.Node) {
	for _, node := range t.Nodes {
		if node.IsVM() {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// annotateMetrics lets the cluster's Prometheus scrape a machine's apps by its pod.
func annotateMetrics(vm *kubevirtv1.VirtualMachineInstance, sites []apps.Site) {
	var ports []int
	for _, site := range sites {
		ports = append(ports, KindOf(site.App).Render(site).MetricsPorts...)
	}
	maps.Copy(vm.Annotations, scrapeAnnotations(ports))
}

// BootsOwnDisks reports whether a machine boots from a disk of the user, whose boot time is unknown.
func BootsOwnDisks(in Input) bool {
	return slices.ContainsFunc(in.Experiment.Spec.Nodes, func(n v1alpha1.Node) bool {
		spec := settings(in, n.VM)
		return n.Runtime == v1alpha1.RuntimeVM && spec.OwnDisk()
	})
}

// VMs are the virtual machines of nodes for which wanted returns true, in order.
func VMs(in Input, made time.Time, wanted func(topology.Node) bool) (vms []*kubevirtv1.VirtualMachineInstance) {
	nodes := slices.DeleteFunc(VMNodes(in.Topology), func(n topology.Node) bool { return !wanted(n) })
	if len(nodes) == 0 {
		return nil
	}
	sites := MakeSites(in)
	for _, node := range nodes {
		vm := VM(in, node, made)
		addSecrets(vm, in, node, sites[node.Name])
		annotateMetrics(vm, sites[node.Name])
		vms = append(vms, vm)
	}
	return vms
}
