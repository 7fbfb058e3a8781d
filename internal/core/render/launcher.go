package render

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// KubeVirt's memory overhead of a guest, from GetMemoryOverhead (pkg/virt-controller/services/renderresources.go of KubeVirt
// 1.7). It is for monitor, launcher, virtlogd, virtqemud and QEMU itself. It has 8 MiB for each core and 8 MiB for an I/O
// thread, and a 512th of the guest's memory for page tables. There is no graphics device. On arm64 the firmware needs 128
// MiB more, and a cluster may have additionalGuestMemoryOverheadRatio. The queue counts existing launchers exactly.
const (
	launcherFixedMiB   = 25 + 100 + 25 + 40 + 30
	launcherPerCoreMiB = 8
	launcherIOMiB      = 8
	pageTableFraction  = 512
)

// KubeVirt's names of containers in a launcher's pod: the guest, the log of its console, and the prefix of its disks' images.
const (
	ComputeContainer    = "compute"
	GuestLogContainer   = "guest-console-log"
	DiskContainerPrefix = "volume"
)

// IsLauncher reports whether a pod is that of a virtual machine, by the kind of its controller.
func IsLauncher(pod metav1.Object) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == kubevirtv1.VirtualMachineInstanceGroupVersionKind.Kind
}

// TunDevice is a device that only hosts with KubeVirt's virt-handler have.
const TunDevice = "devices.kubevirt.io/tun"

// coresRequest is KubeVirt's default for shared cores, a tenth of a processor for each.
func coresRequest(cores int32) resource.Quantity {
	return *resource.NewMilliQuantity(int64(cores)*100, resource.DecimalSI)
}

// launcherMemory is the memory request of the container with the guest.
func launcherMemory(guest resource.Quantity, cores int32) resource.Quantity {
	overhead := guest.Value()/pageTableFraction + (launcherFixedMiB+launcherPerCoreMiB*int64(cores)+launcherIOMiB)<<20
	return *resource.NewQuantity(guest.Value()+overhead, resource.BinarySI)
}

// Footprints are the pods by which all nodes take room, in order. For a virtual machine it is the expected launcher.
func Footprints(in Input) []*corev1.Pod {
	pods := Pods(in)
	for _, node := range VMNodes(in.Topology) {
		pods = append(pods, launcherFootprint(in, node))
	}
	return pods
}

// launcherFootprint has only those parts of a launcher's pod that the queue counts.
func launcherFootprint(in Input, node topology.Node) *corev1.Pod {
	e, spec := in.Experiment, settingsOf(in, node)
	p := &corev1.Pod{ObjectMeta: ownedMeta(e, PodName(e.Name, node.Name), labels(e, v1alpha1.LabelNode, node.Name, v1alpha1.LabelGroup, node.Group))}
	image := cmp.Or(spec.Image, in.Options.GuestImage)
	p.Spec.InitContainers = []corev1.Container{{Name: GuestLogContainer, RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways), Resources: requests("5m", "35M", "0")}}
	compute := requests("0", "0", "50M")
	compute.Requests[TunDevice] = resource.MustParse("1")
	compute.Requests[corev1.ResourceCPU], compute.Requests[corev1.ResourceMemory] = coresRequest(spec.Cores), launcherMemory(spec.Memory.Quantity(), spec.Cores)
	p.Spec.Containers = []corev1.Container{{Name: ComputeContainer, Image: image, Resources: compute}}
	if spec.PersistentVolumeClaim == "" {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: DiskContainerPrefix + rootDisk, Resources: requests("1m", "1M", "50M")})
	}
	if node.HasAgent() {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: DiskContainerPrefix + toolsDisk, Resources: requests("1m", "1M", "50M")})
	}
	return p
}

func requests(cpu, memory, storage string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourceEphemeralStorage: resource.MustParse(storage),
	}}
}
