// Package room decides whether there is room for all nodes of an experiment, and whose turn it is.
// It is pure; the order of the policies is the order in which a person would ask.
package room

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Reasons of Admitted=False, and of True.
const (
	// ReasonQuotaTooSmall: it never fits, whatever else ends.
	ReasonQuotaTooSmall = "QuotaTooSmall"
	// ReasonClusterTooSmall: not even the empty cluster has room.
	ReasonClusterTooSmall = "ClusterTooSmall"
	// ReasonNoRoom: it fits once something else has ended.
	ReasonNoRoom = "NoRoom"
	// ReasonQuotaRefused: there seemed to be room, and yet the API server refused a pod for a quota's sake.
	ReasonQuotaRefused = "QuotaRefused"
	// ReasonWaitingForTurn: an older experiment comes first.
	ReasonWaitingForTurn = "WaitingForTurn"
	// ReasonAdmitted: there is room.
	ReasonAdmitted = "Admitted"
)

// WorkflowPods run beside an experiment's nodes: one of its steps at a time.
const WorkflowPods = 1

// Verdict of the policies.
type Verdict struct {
	Admitted bool
	Reason   string
	Message  string
}

// Host is a Kubernetes node that takes pods.
type Host struct {
	Name string
	// Allocatable, less what runs there.
	Allocatable, Free corev1.ResourceList
}

// Waiter is another experiment in the queue.
type Waiter struct {
	Namespace, Name string
	Created         time.Time
	// Reason of its Admitted=False.
	Reason string
}

// Input of the policies.
type Input struct {
	Namespace, Name string
	Created         time.Time
	// Pods that are to be created, before anything fills in defaults.
	Pods   []*corev1.Pod
	Quotas []corev1.ResourceQuota
	// Reserved in the namespace for admitted experiments whose pods are not created yet.
	Reserved []*corev1.Pod
	Hosts    []Host
	// Waiters are the other experiments in the queue.
	Waiters []Waiter
}

// Policy says why an experiment may not start; an empty reason lets it pass.
type Policy func(Input) (reason, message string)

// Chain of policies, in order; the first that objects decides.
var Chain = []Policy{QuotaIsLargeEnough, ClusterIsLargeEnough, Turn, QuotaHasRoom, ClusterHasRoom}

// Decide asks every policy.
func Decide(in Input) Verdict {
	for _, policy := range Chain {
		if reason, message := policy(in); reason != "" {
			return Verdict{Reason: reason, Message: message}
		}
	}
	return Verdict{Admitted: true, Reason: ReasonAdmitted, Message: fmt.Sprintf("there is room for all %d nodes", len(in.Pods))}
}

// QuotaIsLargeEnough refuses what no quota of the namespace would ever hold.
func QuotaIsLargeEnough(in Input) (string, string) {
	need := quotaDemand(in.Pods, WorkflowPods)
	for _, quota := range in.Quotas {
		for _, name := range counted(quota) {
			want, hard := need[name], quota.Status.Hard[name]
			if want.Cmp(hard) > 0 {
				return ReasonQuotaTooSmall, fmt.Sprintf("quota %s allows %s of %s in all, and %d nodes%s need %s",
					quota.Name, hard.String(), name, len(in.Pods), andWorkflow(name), want.String())
			}
		}
	}
	return "", ""
}

// QuotaHasRoom waits until enough of every quota is free.
func QuotaHasRoom(in Input) (string, string) {
	need, reserved := quotaDemand(in.Pods, WorkflowPods), quotaDemand(in.Reserved, 0)
	for _, quota := range in.Quotas {
		for _, name := range counted(quota) {
			want, free := need[name], quota.Status.Hard[name].DeepCopy()
			free.Sub(quota.Status.Used[name])
			free.Sub(reserved[name])
			if want.Cmp(free) > 0 {
				hard := quota.Status.Hard[name]
				return ReasonNoRoom, fmt.Sprintf("quota %s has %s of %s free (of %s), and %d nodes%s need %s",
					quota.Name, free.String(), name, hard.String(), len(in.Pods), andWorkflow(name), want.String())
			}
		}
	}
	return "", ""
}

func andWorkflow(name corev1.ResourceName) string {
	if name == corev1.ResourcePods || name == "count/pods" {
		return " and the workflow"
	}
	return ""
}

// counted are the resources of a quota that pods use up. A scoped quota is left to the API server.
func counted(quota corev1.ResourceQuota) []corev1.ResourceName {
	if len(quota.Spec.Scopes) > 0 || quota.Spec.ScopeSelector != nil {
		return nil
	}
	var names []corev1.ResourceName
	for _, name := range []corev1.ResourceName{
		corev1.ResourcePods, "count/pods", corev1.ResourceRequestsCPU, corev1.ResourceCPU, corev1.ResourceRequestsMemory, corev1.ResourceMemory,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceRequestsEphemeralStorage,
	} {
		if _, found := quota.Status.Hard[name]; found {
			names = append(names, name)
		}
	}
	return names
}

func quotaDemand(pods []*corev1.Pod, more int64) corev1.ResourceList {
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	for _, pod := range pods {
		add(requests, Requests(&pod.Spec))
		add(limits, podResources(&pod.Spec, func(c corev1.Container) corev1.ResourceList { return c.Resources.Limits }))
	}
	count := *resource.NewQuantity(int64(len(pods))+more, resource.DecimalSI)
	return corev1.ResourceList{
		corev1.ResourcePods: count, "count/pods": count,
		corev1.ResourceRequestsCPU: requests[corev1.ResourceCPU], corev1.ResourceCPU: requests[corev1.ResourceCPU],
		corev1.ResourceRequestsMemory: requests[corev1.ResourceMemory], corev1.ResourceMemory: requests[corev1.ResourceMemory],
		corev1.ResourceLimitsCPU: limits[corev1.ResourceCPU], corev1.ResourceLimitsMemory: limits[corev1.ResourceMemory],
		corev1.ResourceRequestsEphemeralStorage: requests[corev1.ResourceEphemeralStorage],
	}
}

// Requests of a pod: the sum of its containers, or its largest init container.
func Requests(spec *corev1.PodSpec) corev1.ResourceList {
	return podResources(spec, func(c corev1.Container) corev1.ResourceList { return c.Resources.Requests })
}

func podResources(spec *corev1.PodSpec, of func(corev1.Container) corev1.ResourceList) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, c := range spec.Containers {
		add(sum, of(c))
	}
	for _, c := range spec.InitContainers {
		for name, quantity := range of(c) {
			if has := sum[name]; quantity.Cmp(has) > 0 {
				sum[name] = quantity.DeepCopy()
			}
		}
	}
	return sum
}

func add(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total := sum[name].DeepCopy()
		total.Add(quantity)
		sum[name] = total
	}
}

// Turn keeps the queue in order of age. An experiment waits behind older ones of its namespace, and
// behind older ones anywhere that wait for room in the cluster; what can never start blocks nobody.
func Turn(in Input) (string, string) {
	for _, w := range in.Waiters {
		if !older(w, in) || w.Reason == ReasonQuotaTooSmall || w.Reason == ReasonClusterTooSmall {
			continue
		}
		if w.Namespace == in.Namespace || w.Reason == ReasonNoRoom {
			return ReasonWaitingForTurn, fmt.Sprintf("experiment %s/%s has waited longer and comes first", w.Namespace, w.Name)
		}
	}
	return "", ""
}

func older(w Waiter, in Input) bool {
	if !w.Created.Equal(in.Created) {
		return w.Created.Before(in.Created)
	}
	return strings.Compare(w.Namespace+"/"+w.Name, in.Namespace+"/"+in.Name) < 0
}
