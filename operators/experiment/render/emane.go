package render

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Where things are in an EMANE pod.
const (
	emaneFolder  = "/etc/emane"
	emaneDevice  = "eth0"
	emaneControl = 47000
)

// emaneScript starts a process for each NEM, and ends with an error as soon as one of them has: a network of which a radio is
// missing is none.
const emaneScript = `for nem in "$@"; do (cd ` + emaneFolder + `/$nem && exec emane -r -l 2 ` + emane.Platform + `) & done; wait -n; exit 1`

// EMANEInterface is what radiod calls the end in the EMANE pod of the veth that is a member's radio.
func EMANEInterface(nem int32) string { return "nem" + strconv.Itoa(int(nem)) }

// EMANEPod is the pod of the platform's that carries a network's members on one host by EMANE, with the files of its processes.
// members are those of the network whose pods are on the host.
func EMANEPod(network *v1alpha1.RadioNetwork, host string, members []v1alpha1.Member, options Options) (*corev1.Pod, *corev1.ConfigMap, error) {
	name := EMANEPodName(network.Name, host)
	meta := metav1.ObjectMeta{Name: name, Namespace: network.Namespace, Labels: network.Labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(network, v1alpha1.GroupVersion.WithKind("RadioNetwork"))}}
	files := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{}}
	var items []corev1.KeyToPath
	var nems []string
	members = slices.SortedFunc(slices.Values(members), func(a, b v1alpha1.Member) int { return cmp.Compare(a.NEM, b.NEM) })
	for i := range members {
		rendered, err := emane.Render(&network.Spec, &members[i], emaneProcess(network, &members[i], i))
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", members[i].Node, err)
		}
		nem := strconv.Itoa(int(members[i].NEM))
		nems = append(nems, nem)
		items = append(items, addEMANEFiles(files, nem, rendered)...)
	}
	return emanePod(meta, host, nems, items, options), files, nil
}

// EMANEPodName of a network's pod on a host.
func EMANEPodName(network, host string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(host)) // never fails
	return fmt.Sprintf("%s-emane-%08x", network, h.Sum32())
}

// emaneProcess of the i-th member in a pod, whose processes share its network namespace.
func emaneProcess(network *v1alpha1.RadioNetwork, member *v1alpha1.Member, i int) emane.Process {
	h := fnv.New32a()
	_, _ = h.Write([]byte(network.UID)) // never fails
	sum := h.Sum32()
	// A group of its own for each network, of those for the use within an organisation (RFC 2365).
	group := netip.AddrFrom4([4]byte{239, 192 | byte(sum>>16&3), byte(sum >> 8), byte(sum)})
	return emane.Process{Directory: emaneFolder, Device: emaneDevice, Loopback: true, Interface: EMANEInterface(member.NEM), Raw: true,
		OTAGroup:   netip.AddrPortFrom(group, emane.DefaultOTAGroup.Port()),
		EventGroup: netip.AddrPortFrom(group, emane.DefaultEventGroup.Port()),
		Control:    netip.AddrPortFrom(emane.DefaultControl.Addr(), uint16(emaneControl+i))}
}

// addEMANEFiles of a NEM. Those that are the same for several are kept once, and the curve is where all look for it.
func addEMANEFiles(to *corev1.ConfigMap, nem string, files []emane.File) (items []corev1.KeyToPath) {
	for _, f := range files {
		key := f.Name
		if text, taken := to.Data[key]; taken && text != string(f.Text) {
			key = nem + "." + f.Name
		} else if taken && f.Name == emane.PCR {
			continue
		}
		to.Data[key] = string(f.Text)
		path := nem + "/" + f.Name
		if f.Name == emane.PCR {
			path = f.Name
		}
		items = append(items, corev1.KeyToPath{Key: key, Path: path})
	}
	return items
}

func emanePod(meta metav1.ObjectMeta, host string, nems []string, items []corev1.KeyToPath, options Options) *corev1.Pod {
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta, Spec: corev1.PodSpec{
		NodeName: host, RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{
			Name: "emane", Image: options.EMANEImage, ImagePullPolicy: options.PullPolicy,
			Command: append([]string{"bash", "-c", emaneScript, "emane"}, nems...),
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), RunAsUser: ptr.To(int64(0)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				// NET_RAW for the nodes' veths, NET_ADMIN to set them up, SYS_NICE for -r.
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_ADMIN", "NET_RAW", "SYS_NICE"}}},
			VolumeMounts: []corev1.VolumeMount{{Name: "files", MountPath: emaneFolder, ReadOnly: true}},
		}},
		Volumes: []corev1.Volume{{Name: "files", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: meta.Name}, Items: items}}}},
	}}
}
