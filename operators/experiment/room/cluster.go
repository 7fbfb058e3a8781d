package room

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Hosts that take pods, less what their pods request. Pods that have no host yet, and those of
// reserved, are placed first where most is free.
func Hosts(nodes []corev1.Node, pods []corev1.Pod, reserved []*corev1.Pod) []Host {
	var hosts []Host
	index := map[string]int{}
	for _, node := range nodes {
		if !takesPods(node) {
			continue
		}
		index[node.Name] = len(hosts)
		hosts = append(hosts, Host{Name: node.Name, Allocatable: node.Status.Allocatable, Free: node.Status.Allocatable.DeepCopy()})
	}
	var homeless []*corev1.Pod
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if pod.Spec.NodeName == "" {
			homeless = append(homeless, pod)
		} else if at, found := index[pod.Spec.NodeName]; found {
			take(hosts[at].Free, demand(&pod.Spec))
		}
	}
	for _, pod := range slices.Concat(homeless, reserved) {
		place(hosts, demand(&pod.Spec))
	}
	return hosts
}

func takesPods(node corev1.Node) bool {
	if node.Spec.Unschedulable {
		return false
	}
	for _, taint := range node.Spec.Taints {
		if taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute {
			return false
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// demand of a pod on a host: what it requests, and one pod.
func demand(spec *corev1.PodSpec) corev1.ResourceList {
	d := Requests(spec)
	d[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return d
}

func take(free, what corev1.ResourceList) {
	for name, quantity := range what {
		if left, found := free[name]; found {
			left = left.DeepCopy()
			left.Sub(quantity)
			free[name] = left
		}
	}
}

// place puts a pod on the host with the most pods left to take; false if none has room.
func place(hosts []Host, what corev1.ResourceList) bool {
	best := -1
	for i := range hosts {
		if !fits(hosts[i].Free, what) {
			continue
		}
		if best < 0 || hosts[i].Free.Pods().Cmp(*hosts[best].Free.Pods()) > 0 {
			best = i
		}
	}
	if best >= 0 {
		take(hosts[best].Free, what)
	}
	return best >= 0
}

func fits(free, what corev1.ResourceList) bool {
	for name, quantity := range what {
		left, found := free[name]
		if !found && (name != corev1.ResourceEphemeralStorage) && !quantity.IsZero() {
			return false
		}
		if found && quantity.Cmp(left) > 0 {
			return false
		}
	}
	return true
}

// ClusterIsLargeEnough refuses what would not fit even the empty cluster.
func ClusterIsLargeEnough(in Input) (string, string) {
	hosts := make([]Host, len(in.Hosts))
	for i, h := range in.Hosts {
		hosts[i] = Host{Name: h.Name, Free: h.Allocatable.DeepCopy()}
	}
	if placed := placeAll(hosts, in.Pods); placed < len(in.Pods) && len(in.Hosts) > 0 {
		return ReasonClusterTooSmall, capacityMessage(in, placed, "even when empty, the cluster's")
	}
	return "", ""
}

// ClusterHasRoom waits until every pod finds a host.
func ClusterHasRoom(in Input) (string, string) {
	hosts := make([]Host, len(in.Hosts))
	for i, h := range in.Hosts {
		hosts[i] = Host{Name: h.Name, Free: h.Free.DeepCopy()}
	}
	if placed := placeAll(hosts, in.Pods); placed < len(in.Pods) {
		return ReasonNoRoom, capacityMessage(in, placed, "at present the cluster's")
	}
	return "", ""
}

// placeAll places the largest pods first, so that small ones do not take their room, and counts what it placed.
func placeAll(hosts []Host, pods []*corev1.Pod) (placed int) {
	demands := make([]corev1.ResourceList, len(pods))
	for i, pod := range pods {
		demands[i] = demand(&pod.Spec)
	}
	slices.SortStableFunc(demands, func(a, b corev1.ResourceList) int {
		return cmp.Or(b.Memory().Cmp(*a.Memory()), b.Cpu().Cmp(*a.Cpu()))
	})
	for _, d := range demands {
		if place(hosts, d) {
			placed++
		}
	}
	return placed
}

func capacityMessage(in Input, placed int, lead string) string {
	total := corev1.ResourceList{}
	for _, pod := range in.Pods {
		add(total, demand(&pod.Spec))
	}
	free := corev1.ResourceList{}
	for _, h := range in.Hosts {
		add(free, h.Free)
	}
	return fmt.Sprintf("%s %d schedulable hosts take %d of %d nodes: all need cpu %s and memory %s, free are cpu %s, memory %s and %s pods",
		lead, len(in.Hosts), placed, len(in.Pods), total.Cpu(), total.Memory(), free.Cpu(), free.Memory(), free.Pods())
}
