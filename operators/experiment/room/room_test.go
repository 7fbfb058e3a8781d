package room

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func resources(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func pods(count int, cpu, memory string) (made []*corev1.Pod) {
	for range count {
		made = append(made, &corev1.Pod{Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: resources("10m", "32Mi")}}},
			Containers:     []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: resources(cpu, memory)}}},
		}})
	}
	return made
}

func quota(hard, used corev1.ResourceList) corev1.ResourceQuota {
	return corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: used}}
}

func countPods(n string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourcePods: resource.MustParse(n)}
}

func hostOf(cpu, memory, count string) Host {
	free := resources(cpu, memory)
	free[corev1.ResourcePods] = resource.MustParse(count)
	return Host{Name: "n1", Allocatable: free, Free: free}
}

func TestRoom(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	big := []Host{hostOf("8", "16Gi", "110")}
	cpuQuota := corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("100m")}
	cases := map[string]struct {
		in      Input
		reason  string
		message string
	}{
		"there is room": {Input{Pods: pods(4, "10m", "32Mi"), Hosts: big}, ReasonAdmitted, "there is room for all 4 nodes"},
		"a quota that never holds so many pods": {
			Input{Pods: pods(4, "10m", "32Mi"), Hosts: big, Quotas: []corev1.ResourceQuota{quota(countPods("4"), nil)}},
			ReasonQuotaTooSmall, "quota team allows 4 of pods in all, and 4 nodes and the workflow need 5"},
		"a quota that is used up by others": {
			Input{Pods: pods(4, "10m", "32Mi"), Hosts: big, Quotas: []corev1.ResourceQuota{quota(countPods("9"), countPods("5"))}},
			ReasonNoRoom, "quota team has 4 of pods free (of 9), and 4 nodes and the workflow need 5"},
		"a quota that another experiment is about to use": {
			Input{Pods: pods(4, "10m", "32Mi"), Reserved: pods(4, "10m", "32Mi"), Hosts: big, Quotas: []corev1.ResourceQuota{quota(countPods("8"), nil)}},
			ReasonNoRoom, "quota team has 4 of pods free (of 8), and 4 nodes and the workflow need 5"},
		"a quota of CPU": {
			Input{Pods: pods(4, "30m", "32Mi"), Hosts: big, Quotas: []corev1.ResourceQuota{quota(cpuQuota, nil)}},
			ReasonQuotaTooSmall, "quota team allows 100m of requests.cpu in all, and 4 nodes need 120m"},
		"a cluster that is full": {
			Input{Pods: pods(4, "500m", "1Gi"), Hosts: []Host{{Name: "n1", Allocatable: big[0].Allocatable, Free: hostOf("1", "16Gi", "100").Free}}},
			ReasonNoRoom, "at present the cluster's 1 schedulable hosts take 2 of 4 nodes: all need cpu 2 and memory 4Gi, free are cpu 1, memory 16Gi and 100 pods"},
		"a cluster that is too small": {
			Input{Pods: pods(4, "3", "1Gi"), Hosts: []Host{hostOf("8", "16Gi", "110")}}, ReasonClusterTooSmall, "even when empty"},
		"no more pods on the host": {
			Input{Pods: pods(4, "10m", "32Mi"), Hosts: []Host{{Allocatable: big[0].Allocatable, Free: hostOf("8", "16Gi", "3").Free}}}, ReasonNoRoom, "take 3 of 4 nodes"},
		"an older experiment of the team": {
			Input{Namespace: "a", Name: "x", Created: now, Pods: pods(1, "10m", "32Mi"), Hosts: big, Waiters: []Waiter{{Namespace: "a", Name: "y", Created: now.Add(-time.Second)}}},
			ReasonWaitingForTurn, "experiment a/y has waited longer and comes first"},
		"a younger experiment of the team": {
			Input{Namespace: "a", Name: "x", Created: now, Pods: pods(1, "10m", "32Mi"), Hosts: big, Waiters: []Waiter{{Namespace: "a", Name: "y", Created: now.Add(time.Second)}}}, ReasonAdmitted, ""},
		"an older one of another team that waits for its quota": {
			Input{Namespace: "a", Name: "x", Created: now, Pods: pods(1, "10m", "32Mi"), Hosts: big, Waiters: []Waiter{{Namespace: "b", Name: "y", Created: now.Add(-time.Second), Reason: ReasonWaitingForTurn}}}, ReasonAdmitted, ""},
		"an older one of another team that waits for the cluster": {
			Input{Namespace: "a", Name: "x", Created: now, Pods: pods(1, "10m", "32Mi"), Hosts: big, Waiters: []Waiter{{Namespace: "b", Name: "y", Created: now.Add(-time.Second), Reason: ReasonNoRoom}}}, ReasonWaitingForTurn, ""},
		"an older one that can never start blocks nobody": {
			Input{Namespace: "a", Name: "x", Created: now, Pods: pods(1, "10m", "32Mi"), Hosts: big, Waiters: []Waiter{{Namespace: "a", Name: "y", Created: now.Add(-time.Second), Reason: ReasonQuotaTooSmall}}}, ReasonAdmitted, ""},
		"equal age goes by name": {
			Input{Namespace: "a", Name: "x", Created: now, Pods: pods(1, "10m", "32Mi"), Hosts: big, Waiters: []Waiter{{Namespace: "a", Name: "w", Created: now}}}, ReasonWaitingForTurn, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := Decide(c.in)
			if got.Reason != c.reason || !strings.Contains(got.Message, c.message) || got.Admitted != (c.reason == ReasonAdmitted) {
				t.Errorf("got %+v, want %s, %q", got, c.reason, c.message)
			}
		})
	}
}

func TestTwoOfEqualAgeDoNotWaitForEachOther(t *testing.T) {
	now := time.Now()
	blocked := 0
	for _, pair := range [][2]string{{"x", "y"}, {"y", "x"}} {
		if reason, _ := Turn(Input{Namespace: "a", Name: pair[0], Created: now, Waiters: []Waiter{{Namespace: "a", Name: pair[1], Created: now}}}); reason != "" {
			blocked++
		}
	}
	if blocked != 1 {
		t.Errorf("%d of two wait, want 1", blocked)
	}
}

func TestHostsThatTakeNoPodsDoNotCount(t *testing.T) {
	ready := corev1.NodeStatus{Allocatable: resources("1", "1Gi"), Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}
	nodes := []corev1.Node{
		{ObjectMeta: metav1.ObjectMeta{Name: "good"}, Status: ready},
		{ObjectMeta: metav1.ObjectMeta{Name: "cordoned"}, Status: ready, Spec: corev1.NodeSpec{Unschedulable: true}},
		{ObjectMeta: metav1.ObjectMeta{Name: "tainted"}, Status: ready, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Effect: corev1.TaintEffectNoSchedule}}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "down"}, Status: corev1.NodeStatus{Allocatable: resources("1", "1Gi")}},
	}
	busy := *pods(1, "250m", "256Mi")[0]
	busy.Spec.NodeName = "good"
	ended := busy
	ended.Status.Phase = corev1.PodSucceeded
	hosts := Hosts(nodes, []corev1.Pod{busy, ended}, nil)
	if len(hosts) != 1 || hosts[0].Name != "good" || hosts[0].Free.Cpu().String() != "750m" {
		t.Errorf("hosts are %+v, want one with 750m of CPU left", hosts)
	}
}
