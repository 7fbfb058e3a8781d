package render

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/topology"
)

// What KubeVirt adds to a guest's memory for the programs around it, as its GetMemoryOverhead has it (pkg/virt-controller/services/renderresources.go
// of KubeVirt 1.7): monitor, launcher, virtlogd, virtqemud and QEMU itself, 8 MiB for each core and 8 MiB for an I/O thread, and a 512th of
// the guest's memory for page tables. There is no graphics device. On arm64 the firmware has 128 MiB more, and a cluster may have
// additionalGuestMemoryOverheadRatio: what launchers then request is counted as soon as they are there.
const (
	launcherFixedMiB   = 25 + 100 + 25 + 40 + 30
	launcherPerCoreMiB = 8
	launcherIOMiB      = 8
	pageTableFraction  = 512
)

// KubeVirt's names in a launcher's pod: of the container with the guest, of the one that logs its console, and of those that hold its disks'
// images, which add the disk's name.
const (
	ComputeContainer    = "compute"
	GuestLogContainer   = "guest-console-log"
	DiskContainerPrefix = "volume"
)

// IsLauncher tells whether a pod is that of a virtual machine, by the kind of its controller.
func IsLauncher(pod metav1.Object) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == kubevirtv1.VirtualMachineInstanceGroupVersionKind.Kind
}

// TunDevice is what only hosts have on which KubeVirt's virt-handler runs.
const TunDevice = "devices.kubevirt.io/tun"

// coresRequest is KubeVirt's default for one core that is shared: a tenth of a processor for each.
func coresRequest(cores int32) resource.Quantity {
	return *resource.NewMilliQuantity(int64(cores)*100, resource.DecimalSI)
}

// launcherMemory is what the container with the guest requests.
func launcherMemory(guest resource.Quantity, cores int32) resource.Quantity {
	overhead := guest.Value()/pageTableFraction + (launcherFixedMiB+launcherPerCoreMiB*int64(cores)+launcherIOMiB)<<20
	return *resource.NewQuantity(guest.Value()+overhead, resource.BinarySI)
}

// Footprints are the pods that all nodes take room as, in order: those of pods themselves, and of a virtual machine what KubeVirt will make of it.
func Footprints(in Input) []*corev1.Pod {
	pods := Pods(in)
	for _, node := range VMNodes(in.Topology) {
		pods = append(pods, launcherFootprint(in, node))
	}
	return pods
}

// launcherFootprint has what the queue counts of a launcher's pod, and no more.
func launcherFootprint(in Input, node topology.Node) *corev1.Pod {
	e, spec := in.Experiment, settingsOf(in, node)
	p := &corev1.Pod{ObjectMeta: ownedMeta(e, PodName(e.Name, node.Name), labels(e, v1alpha1.LabelNode, node.Name, v1alpha1.LabelGroup, node.Group))}
	image := spec.Image
	if image == "" {
		image = in.Options.GuestImage
	}
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
