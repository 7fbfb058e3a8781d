package nodes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/wording"
)

// Incidents of losses.
const (
	IncidentNodeFailed = "NodeFailed"
	IncidentEvicted    = "Evicted"
	IncidentAppFailed  = "AppFailed"
)

// Loss is the failure of a node, or of one of its apps, in a running experiment.
type Loss struct {
	Node string
	// App is empty if the whole node is lost.
	App          string
	What, Reason string
	// At is when it happened, zero if unknown.
	At time.Time
}

// Losses finds the losses in the status of the pods and virtual machines.
func Losses(t *topology.Topology, pods map[string]*corev1.Pod, vms map[string]*kubevirtv1.VirtualMachineInstance) (found []Loss) {
	for _, node := range t.Nodes {
		pod := pods[node.Name]
		if node.IsVM() {
			if l := vmLoss(node.Name, vms[node.Name], pod); l != nil {
				found = append(found, *l)
			}
			continue
		}
		if l := LossOf(node.Name, pod); l != nil {
			found = append(found, *l)
			continue
		}
		for _, status := range pod.Status.ContainerStatuses {
			if ended := status.State.Terminated; ended != nil {
				found = append(found, Loss{Node: node.Name, App: status.Name, What: IncidentAppFailed,
					Reason: "app " + status.Name + ": " + describeEnd(ended), At: ended.FinishedAt.Time})
			}
		}
	}
	return found
}

// LossOf finds the end of a pod, nil while it runs.
func LossOf(node string, pod *corev1.Pod) *Loss {
	switch {
	case pod == nil:
		return &Loss{Node: node, What: IncidentNodeFailed, Reason: "its pod is gone"}
	case pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
		l := &Loss{Node: node, What: IncidentNodeFailed, Reason: "its pod has ended", At: lastEnd(pod)}
		if pod.Status.Reason != "" {
			l.Reason += ": " + pod.Status.Reason + " " + pod.Status.Message
		} else {
			l.Reason += disruption(pod)
		}
		if pod.Status.Reason == IncidentEvicted {
			l.What = IncidentEvicted
		}
		return l
	case !pod.DeletionTimestamp.IsZero():
		return &Loss{Node: node, What: IncidentNodeFailed, Reason: "its pod was deleted" + disruption(pod), At: deletedAt(pod)}
	}
	return nil
}

// disruption says which part of Kubernetes ended a pod, such as the Eviction API for kubectl drain; empty if none did.
func disruption(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return wording.InParentheses(c.Message)
		}
	}
	return ""
}

// deletedAt is when the deletion was requested. The pod's timestamp is the end of the grace period.
func deletedAt(pod *corev1.Pod) time.Time {
	grace := ptr.Deref(pod.DeletionGracePeriodSeconds, 0)
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

// vmLoss finds the end of a virtual machine. A guest that shuts down is lost like one that fails.
func vmLoss(node string, vm *kubevirtv1.VirtualMachineInstance, launcher *corev1.Pod) *Loss {
	l := &Loss{Node: node, What: IncidentNodeFailed}
	if launcher != nil {
		l.At = lastEnd(launcher)
	}
	switch {
	case launcher != nil && launcher.Status.Reason == IncidentEvicted:
		return LossOf(node, launcher)
	case vm == nil:
		l.Reason = "its virtual machine is gone"
	case !vm.DeletionTimestamp.IsZero():
		l.Reason, l.At = "its virtual machine was deleted", vm.DeletionTimestamp.Add(-time.Duration(ptr.Deref(vm.DeletionGracePeriodSeconds, 0))*time.Second)
	case vm.Status.Phase == kubevirtv1.Failed:
		l.Reason = "its virtual machine has failed" + wording.InParentheses(vm.Status.Reason)
	case vm.Status.Phase == kubevirtv1.Succeeded:
		l.Reason = "its guest has shut down"
	default:
		return LossOf(node, launcher)
	}
	return l
}
