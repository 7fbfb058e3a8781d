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

// unschedulableTimeout is the time after which an unschedulable pod is a failure. Room was checked, so the cause is another.
const unschedulableTimeout = 2 * time.Minute

// imageReasons are the reasons of a waiting container whose image cannot be pulled.
var imageReasons = map[string]bool{
	"ErrImagePull": true, "ImagePullBackOff": true, "InvalidImageName": true, "ErrImageNeverPull": true, "ImageInspectError": true,
}

// containerReasons are the reasons of a waiting container that cannot start.
var containerReasons = map[string]bool{
	"CreateContainerConfigError": true, "CreateContainerError": true, "RunContainerError": true, "CrashLoopBackOff": true,
}

// podTrouble returns why a pod cannot become ready. The reason is empty while it still can.
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
			return ReasonUnschedulable, fmt.Sprintf("not scheduled for %s: %s", unschedulableTimeout, c.Message)
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

// describeContainer names a container in the user's terms.
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

// The kubelet's messages about a variable whose source does not exist.
var (
	missingReference = regexp.MustCompile(`^(secret|configmap) "([^"]+)" not found$`)
	missingKey       = regexp.MustCompile(`^couldn't find key (\S+) in (Secret|ConfigMap) \S*?([^/\s]+)$`)
)

// createItHint is the advice if a Secret, a ConfigMap, or a key of one is missing.
const createItHint = "create it, then create the experiment again"

// startTrouble explains why a container cannot start. The operator cannot read Secrets, so a missing key shows only here.
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

// runtimeHint explains known messages of the container runtime.
func runtimeHint(runtime string) string {
	switch {
	case strings.Contains(runtime, "exec format error"):
		return " (the platform's images are not built for this host's architecture)"
	case strings.Contains(runtime, "error mounting"):
		return " (a file of the app has the path of a folder in its image, or is in a folder that is a file there)"
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

// reasonOOMKilled is the kubelet's reason of a container that the kernel killed for its memory.
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

// Incidents of losses.
const (
	incidentNodeFailed = "NodeFailed"
	incidentEvicted    = "Evicted"
	incidentAppFailed  = "AppFailed"
)

// loss is the failure of a node, or of one of its apps, in a running experiment.
type loss struct {
	node string
	// app is empty if the whole node is lost.
	app          string
	what, reason string
	// at is when it happened, zero if unknown.
	at time.Time
}

// losses finds the losses in the status of the pods and virtual machines.
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

// deletedAt is when the deletion was requested. The pod's timestamp is the end of the grace period.
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
