// Package nodes reads from the status of pods and virtual machines why a node cannot start, and how it was lost. It
// decides nothing: run and provisioning do.
package nodes

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/experiment/scope"
)

// unschedulableTimeout is the time after which an unschedulable pod is a failure. Room was checked, so the cause is another. It
// counts from the release of all nodes, as a pod with a scheduling gate counts as not scheduled too.
const unschedulableTimeout = 2 * time.Minute

// imageReasons are the reasons of a waiting container whose image cannot be pulled.
var imageReasons = map[string]bool{
	"ErrImagePull": true, "ImagePullBackOff": true, "InvalidImageName": true, "ErrImageNeverPull": true, "ImageInspectError": true,
}

// containerReasons are the reasons of a waiting container that cannot start.
var containerReasons = map[string]bool{
	"CreateContainerConfigError": true, "CreateContainerError": true, "RunContainerError": true, "CrashLoopBackOff": true,
}

// Trouble is why a pod does not become ready.
type Trouble struct {
	Reason, Message string
	// Passes means that another pod in its place may start.
	Passes bool
}

// PodTrouble returns why a pod cannot become ready, nil while it still can. released is when it could first be scheduled,
// zero if it cannot yet.
func PodTrouble(pod *corev1.Pod, released, now time.Time) *Trouble {
	if !pod.DeletionTimestamp.IsZero() {
		return &Trouble{Reason: scope.ReasonNodeFailed, Message: "its pod was deleted before the experiment started" + disruption(pod)}
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if trouble := containerTrouble(pod, status, now); trouble != nil {
			return trouble
		}
	}
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return &Trouble{Reason: scope.ReasonNodeFailed, Message: fmt.Sprintf("its pod ended before the experiment started: %s %s", pod.Status.Reason, pod.Status.Message)}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable &&
			!released.IsZero() && now.Sub(released) > unschedulableTimeout && now.Sub(c.LastTransitionTime.Time) > unschedulableTimeout {
			return &Trouble{Reason: scope.ReasonUnschedulable, Message: fmt.Sprintf("not scheduled for %s: %s", unschedulableTimeout, c.Message)}
		}
	}
	return nil
}

func containerTrouble(pod *corev1.Pod, status corev1.ContainerStatus, now time.Time) *Trouble {
	if waiting := status.State.Waiting; waiting != nil {
		image := status.Image
		if image == "" {
			image = specImage(pod, status.Name)
		}
		switch {
		case imageReasons[waiting.Reason] && pulledAgain(pod, waiting.Message, now):
			return nil
		case imageReasons[waiting.Reason]:
			return &Trouble{Reason: scope.ReasonImage, Message: fmt.Sprintf("%s: image %s: %s: %s", describeContainer(pod, status.Name), image, waiting.Reason, waiting.Message)}
		case containerReasons[waiting.Reason]:
			reason, message := startTrouble(describeContainer(pod, status.Name), waiting)
			return &Trouble{Reason: reason, Message: message, Passes: hostWasBusy(waiting.Message)}
		}
	}
	if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 {
		return &Trouble{Reason: scope.ReasonContainer, Message: fmt.Sprintf("%s: %s", describeContainer(pod, status.Name), describeEnd(ended)),
			Passes: ended.Reason == reasonStartError && hostWasBusy(ended.Message)}
	}
	return nil
}

// pullTimeout is how long after a pod's start its host may have trouble to reach a registry. The kubelet tries again by itself.
const pullTimeout = 30 * time.Second

// unreachable are parts of the runtime's messages about a registry that cannot be reached, or has no time.
var unreachable = []string{"i/o timeout", "connection refused", "connection reset", "deadline exceeded", "TLS handshake timeout",
	"unexpected EOF", "429 Too Many Requests", "500 Internal Server Error", "502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout"}

// pulledAgain reports whether an image may still come, as its registry could not be reached.
func pulledAgain(pod *corev1.Pod, runtime string, now time.Time) bool {
	return pod.Status.StartTime != nil && now.Sub(pod.Status.StartTime.Time) < pullTimeout &&
		slices.ContainsFunc(unreachable, func(part string) bool { return strings.Contains(runtime, part) })
}

// reasonStartError is the kubelet's reason of a container that the runtime could not start.
const reasonStartError = "StartError"

// hostWasBusy reports whether the runtime had no time to start a container.
func hostWasBusy(runtime string) bool {
	return strings.Contains(runtime, "/proc/0/ns/") || // the sandbox's process is 0 where its shim did not answer within task.state
		strings.Contains(runtime, "context deadline exceeded")
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

// startTrouble explains why a container cannot start. The operator reads no Secret's content, so a missing key shows only here.
func startTrouble(part string, waiting *corev1.ContainerStateWaiting) (reason, message string) {
	if found := missingReference.FindStringSubmatch(waiting.Message); found != nil {
		reason, kind := scope.ReasonSecretNotFound, "Secret"
		if found[1] == "configmap" {
			reason, kind = scope.ReasonConfigMapNotFound, "ConfigMap"
		}
		return reason, fmt.Sprintf("%s takes a variable from %s %s, which is not in this namespace: %s", part, kind, found[2], createItHint)
	}
	if found := missingKey.FindStringSubmatch(waiting.Message); found != nil {
		return scope.ReasonKeyNotFound, fmt.Sprintf("%s takes a variable from key %s of %s %s, which has no such key: %s", part, found[1], found[2], found[3], createItHint)
	}
	return scope.ReasonContainer, fmt.Sprintf("%s does not start: %s%s: %s", part, waiting.Reason, runtimeHint(waiting.Message), waiting.Message)
}

// runtimeHint explains known messages of the container runtime.
func runtimeHint(runtime string) string {
	switch {
	case strings.Contains(runtime, "exec format error"):
		return " (the platform's images are not built for this host's architecture)"
	case strings.Contains(runtime, "error mounting"):
		return " (a file of the app has the path of a folder in its image, or is in a folder that is a file there)"
	case hostWasBusy(runtime):
		return " (the host was too busy to answer containerd in time: run fewer at once, or raise containerd's timeout task.state)"
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

// CannotStart reports whether a waiting container's reason means that it cannot start.
func CannotStart(reason string) bool { return imageReasons[reason] || containerReasons[reason] }

// VMTrouble returns why a virtual machine cannot become ready. The reason is empty while it still can.
func VMTrouble(vm *kubevirtv1.VirtualMachineInstance) (reason, message string) {
	switch {
	case !vm.DeletionTimestamp.IsZero():
		return scope.ReasonNodeFailed, "its virtual machine was deleted before the experiment started"
	case vm.Status.Phase == kubevirtv1.Failed || vm.Status.Phase == kubevirtv1.Succeeded:
		return scope.ReasonNodeFailed, "its virtual machine ended before the experiment started" + wording.InParentheses(vm.Status.Reason)
	}
	if refused := LauncherRefusal(vm); refused != "" && !strings.Contains(refused, "exceeded quota") {
		return scope.ReasonPodRefused, "KubeVirt cannot create the pod of its virtual machine: " + refused
	}
	return "", ""
}

// LauncherRefusal is why KubeVirt could not create a machine's pod, empty if it could or has not tried.
func LauncherRefusal(vm *kubevirtv1.VirtualMachineInstance) string {
	for _, c := range vm.Status.Conditions {
		if c.Type == kubevirtv1.VirtualMachineInstanceSynchronized && c.Status == corev1.ConditionFalse &&
			(c.Reason == failedCreatePod && strings.Contains(c.Message, "forbidden") || c.Reason == failedValidation) {
			return c.Message
		}
	}
	return ""
}

// KubeVirt's reasons if the API server refuses a launcher or the machine itself.
const (
	failedCreatePod  = "FailedCreate"
	failedValidation = "FailedCreateValidation"
)

// LauncherStarted reports whether a launcher has its network and so all its volumes.
func LauncherStarted(launcher *corev1.Pod) bool {
	return launcher.Status.Phase != corev1.PodPending && launcher.Status.Phase != "" || launcher.Status.PodIP != ""
}

// podProgress says why a pod is not scheduled, or that its image is still awaited.
func podProgress(pod *corev1.Pod) string {
	if pod == nil || pod.Status.Phase == corev1.PodRunning {
		return ""
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if waiting := status.State.Waiting; waiting != nil && imageReasons[waiting.Reason] {
			return fmt.Sprintf(" (image %s: %s, tried again)", specImage(pod, status.Name), waiting.Reason)
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Message != "" {
			return " (" + c.Message + ")"
		}
	}
	return ""
}

// Progress describes the progress of a node that has not reported.
func Progress(s *scope.Scope, node string) string {
	if vm := s.VMs[node]; vm != nil && vm.Status.Phase == kubevirtv1.Running {
		return " (its virtual machine runs)"
	}
	return podProgress(s.Pods[node])
}
