package experiment

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"vignette.dev/vignette/operators/experiment/render"
	"vignette.dev/vignette/operators/experiment/topology"
)

// unschedulableTimeout so long is a failure: room was checked, so something else is wrong.
const unschedulableTimeout = 2 * time.Minute

// imageReasons of a waiting container that waiting alone does not heal soon.
var imageReasons = map[string]bool{
	"ErrImagePull": true, "ImagePullBackOff": true, "InvalidImageName": true, "ErrImageNeverPull": true, "ImageInspectError": true,
}

// containerReasons of a waiting container that waiting alone does not heal.
var containerReasons = map[string]bool{
	"CreateContainerConfigError": true, "CreateContainerError": true, "RunContainerError": true, "CrashLoopBackOff": true,
}

// podTrouble says why a pod will not become ready; an empty reason where it still may.
func podTrouble(pod *corev1.Pod, now time.Time) (reason, message string) {
	if !pod.DeletionTimestamp.IsZero() {
		return ReasonNodeFailed, "its pod was deleted before the experiment started"
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if reason, message := containerTrouble(pod, status); reason != "" {
			return reason, message
		}
	}
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return ReasonNodeFailed, fmt.Sprintf("its pod ended before the experiment started: %s %s", pod.Status.Reason, pod.Status.Message)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable &&
			now.Sub(c.LastTransitionTime.Time) > unschedulableTimeout {
			return ReasonUnschedulable, fmt.Sprintf("no host takes it for %s: %s", unschedulableTimeout, c.Message)
		}
	}
	return "", ""
}

func containerTrouble(pod *corev1.Pod, status corev1.ContainerStatus) (reason, message string) {
	if waiting := status.State.Waiting; waiting != nil {
		image := status.Image
		if image == "" {
			image = specImage(pod, status.Name)
		}
		switch {
		case imageReasons[waiting.Reason]:
			return ReasonImage, fmt.Sprintf("%s: image %s: %s: %s", describeContainer(pod, status.Name), image, waiting.Reason, waiting.Message)
		case containerReasons[waiting.Reason]:
			return startTrouble(describeContainer(pod, status.Name), waiting)
		}
	}
	if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 {
		return ReasonContainer, fmt.Sprintf("%s: %s", describeContainer(pod, status.Name), describeEnd(ended))
	}
	return "", ""
}

// describeContainer a node is what a container stands for.
func describeContainer(pod *corev1.Pod, container string) string {
	disk, isDisk := strings.CutPrefix(strings.TrimSuffix(container, "-init"), render.DiskContainerPrefix)
	switch {
	case !render.IsLauncher(pod):
		return "app " + container
	case isDisk:
		return "disk " + disk
	case container == render.ComputeContainer:
		return "its virtual machine"
	}
	return "KubeVirt's container " + container
}

// missingReference matches what the kubelet says of a variable whose source is not there.
var (
	missingReference = regexp.MustCompile(`^(secret|configmap) "([^"]+)" not found$`)
	missingKey       = regexp.MustCompile(`^couldn't find key (\S+) in (Secret|ConfigMap) \S*?([^/\s]+)$`)
)

// createItHint is what helps where a Secret, a ConfigMap, or a key of one is missing.
const createItHint = "make it, then make the experiment anew"

// startTrouble says in plain words why a container cannot be made. The operator does not read what Secrets have, so that this is the first
// that anybody hears of a key that is missing.
func startTrouble(part string, waiting *corev1.ContainerStateWaiting) (reason, message string) {
	if found := missingReference.FindStringSubmatch(waiting.Message); found != nil {
		reason, kind := ReasonSecretNotFound, "Secret"
		if found[1] == "configmap" {
			reason, kind = ReasonConfigMapNotFound, "ConfigMap"
		}
		return reason, fmt.Sprintf("%s takes a variable from %s %s, which is not in this namespace: %s", part, kind, found[2], createItHint)
	}
	if found := missingKey.FindStringSubmatch(waiting.Message); found != nil {
		return ReasonKeyNotFound, fmt.Sprintf("%s takes a variable from key %s of %s %s, which has no such key: %s", part, found[1], found[2], found[3], createItHint)
	}
	return ReasonContainer, fmt.Sprintf("%s does not start: %s%s: %s", part, waiting.Reason, runtimeHint(waiting.Message), waiting.Message)
}

// runtimeHint says in plain words what the container runtime means, where that is known.
func runtimeHint(runtime string) string {
	switch {
	case strings.Contains(runtime, "exec format error"):
		return " (the platform's images are not built for this host's architecture)"
	case strings.Contains(runtime, "error mounting"):
		return " (a file of the app is to be where its image has a folder, or in a folder that is a file there)"
	}
	return ""
}

func specImage(pod *corev1.Pod, container string) string {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name == container {
			return c.Image
		}
	}
	return ""
}

// reasonOOMKilled of a container that the kernel ended, as the kubelet calls it.
const reasonOOMKilled = "OOMKilled"

func describeEnd(ended *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("its container ended with exit code %d", ended.ExitCode)
	if ended.Reason != "" && ended.Reason != "Error" && ended.Reason != "Completed" {
		text += " (" + ended.Reason + ")"
	}
	if ended.Reason == reasonOOMKilled {
		text += ": it needed more memory than its limit, which resources.limits.memory of the app sets"
	}
	if ended.Message != "" {
		text += runtimeHint(ended.Message) + ": " + ended.Message
	}
	return text
}

// What is lost, in the words of incidents.
const (
	incidentNodeFailed = "NodeFailed"
	incidentEvicted    = "Evicted"
	incidentAppFailed  = "AppFailed"
)

// loss of a node, or of one app of it, while an experiment runs.
type loss struct {
	node string
	// app is empty where the whole node is lost.
	app          string
	what, reason string
	// at is when it happened; zero where nobody knows.
	at time.Time
}

// losses in a running experiment, by what its pods show.
func losses(t *topology.Topology, pods map[string]*corev1.Pod, vms map[string]*kubevirtv1.VirtualMachineInstance) (found []loss) {
	for _, node := range t.Nodes {
		pod := pods[node.Name]
		if node.IsVM() {
			if l := vmLoss(node.Name, vms[node.Name], pod); l != nil {
				found = append(found, *l)
			}
			continue
		}
		if l := nodeLoss(node.Name, pod); l != nil {
			found = append(found, *l)
			continue
		}
		for _, status := range pod.Status.ContainerStatuses {
			if ended := status.State.Terminated; ended != nil {
				found = append(found, loss{node: node.Name, app: status.Name, what: incidentAppFailed,
					reason: "app " + status.Name + ": " + describeEnd(ended), at: ended.FinishedAt.Time})
			}
		}
	}
	return found
}

func nodeLoss(node string, pod *corev1.Pod) *loss {
	switch {
	case pod == nil:
		return &loss{node: node, what: incidentNodeFailed, reason: "its pod is gone"}
	case pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
		l := &loss{node: node, what: incidentNodeFailed, reason: "its pod has ended", at: lastEnd(pod)}
		if pod.Status.Reason != "" {
			l.reason += ": " + pod.Status.Reason + " " + pod.Status.Message
		}
		if pod.Status.Reason == incidentEvicted {
			l.what = incidentEvicted
		}
		return l
	case !pod.DeletionTimestamp.IsZero():
		return &loss{node: node, what: incidentNodeFailed, reason: "its pod was deleted", at: deletedAt(pod)}
	}
	return nil
}

// deletedAt is when somebody asked for the deletion; the timestamp itself is the end of the grace period.
func deletedAt(pod *corev1.Pod) time.Time {
	grace := int64(0)
	if pod.DeletionGracePeriodSeconds != nil {
		grace = *pod.DeletionGracePeriodSeconds
	}
	return pod.DeletionTimestamp.Add(-time.Duration(grace) * time.Second)
}

func lastEnd(pod *corev1.Pod) (at time.Time) {
	for _, status := range pod.Status.ContainerStatuses {
		if ended := status.State.Terminated; ended != nil && ended.FinishedAt.After(at) {
			at = ended.FinishedAt.Time
		}
	}
	return at
}
