package render

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// emaneScript starts a process for each NEM once radiod has moved the members' radio interfaces into the pod. It fails as soon
// as one process ends, because the network needs all. It names a missing interface after a timeout.
// Time slots need real-time priority, which not every control group allows. Other models go without: it is before all else on the host.
const emaneScript = `waited=0
for nem in "$@"; do
  until [ -e "/sys/class/net/nem$nem" ] && [ "$(cat "/sys/class/net/nem$nem/operstate")" != down ]; do
    waited=$((waited + 1))
    [ "$waited" -lt "$((5 * EMANE_PATIENCE_SECONDS))" ] || { echo "no radio nem$nem after $EMANE_PATIENCE_SECONDS s: radiod has not put it here" >&2; exit 2; }
    sleep 0.2
  done
done
realtime=
if [ -n "$EMANE_SLOTS" ]; then
  chrt --rr 50 true 2>/dev/null && realtime=-r || echo "no real-time priority here: time slots may be missed" >&2
fi
trap 'kill $(jobs -p); exit 0' TERM
for nem in "$@"; do (cd "` + emane.PodDirectory + `/$nem" && exec emane $realtime -l 2 ` + emane.Platform + `) & done
wait -n
echo "an EMANE process has ended" >&2
exit 1`

// emaneRadioTimeout is the time in seconds for the members' radios, which appear with their pods.
const emaneRadioTimeout = 600

// emaneFilesLimit is the limit of a ConfigMap's data in bytes.
const emaneFilesLimit = 1 << 20

// EMANEPod is the pod that emulates a network's members on one host with EMANE, and the files of its processes. members are
// those of the network whose pods are on the host. antennas are nil if no member has an antenna profile.
func EMANEPod(network *v1alpha1.RadioNetwork, host string, members []v1alpha1.Member, antennas *emane.Antennas, options Options) (*corev1.Pod, *corev1.ConfigMap, error) {
	meta := emaneMeta(network, EMANEPodName(network.Name, host))
	files := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta, Data: map[string]string{}, Immutable: ptr.To(true)}
	var items []corev1.KeyToPath
	var nems []string
	members = slices.SortedFunc(slices.Values(members), func(a, b v1alpha1.Member) int { return cmp.Compare(a.NEM, b.NEM) })
	for i := range members {
		process := emane.InPod(network, members[i].NEM)
		process.Antennas = antennas
		rendered, err := emane.Render(&network.Spec, &members[i], process)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", members[i].Node, err)
		}
		nem := strconv.Itoa(int(members[i].NEM))
		nems = append(nems, nem)
		items = append(items, addEMANEFiles(files, nem, rendered)...)
	}
	if size := sizeOf(files); antennas != nil && size > emaneFilesLimit {
		return nil, nil, errors.New(noRoomForAntennas(len(members), size, emaneFilesLimit))
	}
	return emanePod(meta, host, nems, items, emane.HasSlots(&network.Spec.Waveform), options), files, nil
}

// emaneMeta is of an object that a network owns.
func emaneMeta(network *v1alpha1.RadioNetwork, name string) metav1.ObjectMeta {
	owner := *metav1.NewControllerRef(network, v1alpha1.GroupVersion.WithKind("RadioNetwork"))
	owner.BlockOwnerDeletion = nil // it would need permission for the network's finalizers
	return metav1.ObjectMeta{Name: name, Namespace: network.Namespace, Labels: network.Labels, OwnerReferences: []metav1.OwnerReference{owner}}
}

// sizeOf is the size of a ConfigMap's data in bytes.
func sizeOf(files *corev1.ConfigMap) (size int) {
	for key, text := range files.Data {
		size += len(key) + len(text)
	}
	return size
}

func noRoomForAntennas(nodes, size, room int) string {
	return fmt.Sprintf("EMANE's files of %d nodes with their antenna patterns have %d bytes, and a ConfigMap has room for %d: want patterns with fewer ranges, or engine native", nodes, size, room)
}

// checkEMANEFiles checks that the files of all of a network's members fit a ConfigMap, as all may be on one host. antennas is
// the size of the antenna profiles' files, which are not known here.
func checkEMANEFiles(network *v1alpha1.RadioNetwork, path *field.Path, antennas, room int) field.ErrorList {
	_, files, err := EMANEPod(network, "any", network.Spec.Members, nil, Options{})
	if err != nil {
		return field.ErrorList{field.Invalid(path, v1alpha1.EngineEMANE, err.Error())}
	}
	size := sizeOf(files) + antennas
	if size <= room {
		return nil
	}
	if antennas > 0 {
		return field.ErrorList{field.Invalid(path, v1alpha1.EngineEMANE, noRoomForAntennas(len(network.Spec.Members), size, room))}
	}
	return field.ErrorList{field.Invalid(path, v1alpha1.EngineEMANE, fmt.Sprintf("EMANE's files of %d nodes have %d bytes, and a ConfigMap has room for %d: "+
		"attach fewer nodes, or use engine native", len(network.Spec.Members), size, room))}
}

// EMANEPodName is the name of a network's pod on a host.
func EMANEPodName(network, host string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(host)) // never fails
	return fmt.Sprintf("%s-emane-%08x", network, h.Sum32())
}

// addEMANEFiles adds the files of a NEM. Equal files of several NEMs are stored once, and shared ones have a common path.
func addEMANEFiles(to *corev1.ConfigMap, nem string, files []emane.File) (items []corev1.KeyToPath) {
	for _, f := range files {
		key := f.Name
		if text, taken := to.Data[key]; taken && text != string(f.Text) {
			key = nem + "." + f.Name
		} else if taken && f.Shared {
			continue
		}
		to.Data[key] = string(f.Text)
		path := nem + "/" + f.Name
		if f.Shared {
			path = f.Name
		}
		items = append(items, corev1.KeyToPath{Key: key, Path: path})
	}
	return items
}

// emaneResources of the processes of some NEMs. The memory limit is several times what a process takes.
func emaneResources(nems int) corev1.ResourceRequirements {
	quantity := func(each, more int64, format resource.Format) resource.Quantity {
		return *resource.NewQuantity(int64(nems)*each+more, format)
	}
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(nems)*10, resource.DecimalSI), corev1.ResourceMemory: quantity(16<<20, 0, resource.BinarySI)},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: quantity(128<<20, 256<<20, resource.BinarySI)},
	}
}

// EMANEFootprints are the pods by which EMANE takes room on hosts, one for each of its networks, as if all nodes were on one host.
// They are in the platform's namespace and so in no quota of the experiment's.
func EMANEFootprints(in Input) (pods []*corev1.Pod) {
	for _, network := range in.Experiment.Spec.Networks {
		if network.Engine == v1alpha1.EngineEMANE {
			nems := 0
			for _, node := range in.Topology.Nodes {
				if _, attached := node.Address(network.Name); attached {
					nems++
				}
			}
			resources := emaneResources(nems)
			pods = append(pods, &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "emane", Resources: resources}}}})
		}
	}
	return pods
}

func emanePod(meta metav1.ObjectMeta, host string, nems []string, items []corev1.KeyToPath, hasSlots bool, options Options) *corev1.Pod {
	slots := ""
	// NET_RAW for the nodes' veths, NET_ADMIN to set them up, SYS_NICE for -r.
	capabilities := []corev1.Capability{"NET_ADMIN", "NET_RAW"}
	if hasSlots {
		slots, capabilities = "true", append(capabilities, "SYS_NICE")
	}
	meta.Annotations = options.EMANEAnnotations
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta, Spec: corev1.PodSpec{
		NodeName: host, RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To(int64(5)), AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, ImagePullSecrets: options.PullSecrets,
		Containers: []corev1.Container{{
			Name: "emane", Image: options.EMANEImage, ImagePullPolicy: options.PullPolicy,
			Command: append([]string{"bash", "-c", emaneScript, "emane"}, nems...),
			// The last output says why it ended.
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			Env:                      []corev1.EnvVar{{Name: "EMANE_PATIENCE_SECONDS", Value: strconv.Itoa(emaneRadioTimeout)}, {Name: "EMANE_SLOTS", Value: slots}},
			Resources:                emaneResources(len(nems)),
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), RunAsUser: ptr.To(int64(0)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: capabilities}},
			VolumeMounts: []corev1.VolumeMount{{Name: "files", MountPath: emane.PodDirectory, ReadOnly: true}},
		}},
		Volumes: []corev1.Volume{{Name: "files", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: meta.Name}, Items: items}}}},
	}}
}
